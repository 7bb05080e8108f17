"""Settings of runs on homes: validation and conversion."""

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon import energy, federated
from jaxanon.energy import PFDRLSettings, settings
from jaxanon.energy.config import PFDRLConfig


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"delay_probability": 0.1, "max_age": 0},
            "max_age must be >= 1 with delay_probability",
        ),
        ({"lookback": 7}, "every must divide lookback, got 5 and 7"),
        ({"capacity": 20}, "capacity must be >= 32"),
        ({"alpha": 10}, r"alpha must be in \[0, 9\], .* got 10"),
        ({"gamma_hours": 0.5}, "gamma_hours must be at least one slot .60 minutes"),
        (
            {"drop_probability": 0.8, "delay_probability": 0.4},
            r"drop_probability \+ delay_probability must",
        ),
        ({"slot_min": 7}, "slot_min must divide 1440, the minutes per day, got 7"),
    ],
)
def test_settings_check_themselves(wrong, message):
    with pytest.raises(ValueError, match=message):
        PFDRLSettings(**wrong)


def test_parts_are_of_their_kind():
    with pytest.raises(TypeError, match="dqn must be a DQNConfig, got {}"):
        PFDRLConfig(dqn={})


@pytest.mark.parametrize(
    ("idle", "message"),
    [
        (
            {"sharing": "frl", "drop_probability": 0.1},
            "drop_probability must be unset for sharing 'frl'",
        ),
        (
            {"sharing": "local", "max_age": 3},
            "max_age must be unset for sharing 'local'",
        ),
        (
            {"sharing": "cloud", "graph": "ring"},
            "graph must be unset for sharing 'cloud'",
        ),
        ({"sharing": "fl", "degree": 2}, "degree must be unset for sharing 'fl'"),
        ({"degree": 2}, "degree must be unset for graph 'full', got 2"),
        (
            {"probability": 0.1, "graph": "ring"},
            "probability must be unset for graph 'ring'",
        ),
        ({"clip_norm": 2.0}, "clip_norm must be unset if noise_mult"),
        (
            {"sharing": "frl", "noise_multiplier": 1.0},
            "noise_multiplier must be 0 for 'frl'",
        ),
    ],
)
def test_what_would_do_nothing_is_refused(idle, message):
    with pytest.raises(ValueError, match=message):
        PFDRLSettings(**idle)


def test_layers_that_nobody_shares_need_not_be_there():
    for sharing in ("local", "cloud", "fl", "frl"):
        small = PFDRLSettings(sharing=sharing, hidden_sizes=(4,), days=1)
        assert "alpha" not in settings.build_hyper(small)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 2\]"):
        PFDRLSettings(hidden_sizes=(4,))


def test_settings_reach_the_parts():
    chosen = PFDRLSettings(
        forecaster="bp", drop_probability=0.1, delay_probability=0.2,
        max_age=3, slot_min=30, forecaster_batch_size=7,
        hidden_sizes=(8, 8), alpha=2, gamma_hours=6.0, double_dqn=True, lookback=60,
        batch_size=8, capacity=50, target_update_interval=9,
    )  # fmt: skip
    config = settings.build_config(chosen)
    assert settings.build_config(PFDRLSettings(sharing="frl")).method == "frl"
    assert config.method == "pfdrl" and config.forecast.kind == "bp"
    assert config.forecast.lookback == 60 and config.forecaster_batch_size == 7
    sizes = (
        config.dqn.batch_size,
        config.dqn.capacity,
        config.dqn.target_update_interval,
    )
    assert sizes == (8, 50, 9)
    # A reliable channel stores no messages.
    assert settings.build_config(PFDRLSettings(max_age=3)).messages.max_age == 0
    assert config.messages == federated.ChannelConfig(
        drop_probability=0.1, delay_probability=0.2, max_age=3
    )
    assert config.hidden_sizes == (8, 8) and config.dqn.double_dqn
    assert 30 % config.dqn.num_envs == 0
    hyper = settings.build_hyper(chosen)
    assert (hyper["alpha"], hyper["gamma_hours"], hyper["exploration_epsilon"]) == (
        2,
        6.0,
        0.1,
    )


@pytest.mark.parametrize(
    ("graph", "heard"), [("full", 5), ("ring", 2), ("k-regular", 4)]
)
def test_graphs(graph, heard):
    found = np.asarray(settings.build_graph(PFDRLSettings(graph=graph), 6))
    assert found.sum(axis=1).tolist() == [heard] * 6


def test_random_graphs_are_the_seed_s():
    draw = lambda **more: np.asarray(
        settings.build_graph(PFDRLSettings(graph="random", **more), 30)
    )
    np.testing.assert_array_equal(draw(), draw())
    assert (draw() != draw(homes_seed=1)).any()
    # 435 pairs: 4 deviations of a fair coin are 42.
    assert abs(draw().sum() / 2 - 217.5) < 42
    assert draw(probability=0.0).sum() == 0


@hypothesis.settings(max_examples=5)
@given(standby=st.integers(1, 9), later=st.integers(1, 9))
def test_levels_are_of_the_days_to_learn_from(standby, later):
    watts = np.repeat([standby, 100.0, later, 100.0], 720)[None, :, None]
    kinds = np.zeros((1, 1), np.int32)
    homes = energy.Homes(watts, kinds, ("tv",), ("a",), None)
    neighborhood = energy.neighborhood_from_settings(
        PFDRLSettings(days=1, test_days=1), homes
    )
    assert neighborhood.levels.standby.tolist() == [standby]
    assert neighborhood.power.shape == (1, 2880)
