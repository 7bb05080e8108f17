"""What a person sets of a street: refused where it is wrong, passed on where not."""

import dataclasses
import re

import hypothesis
import numpy as np
import pytest
from any_values import VALUES
from hypothesis import given
from hypothesis import strategies as st

from jaxanon import energy, federated
from jaxanon.energy import PFDRLSettings, settings
from jaxanon.energy.config import PFDRLConfig
from jaxanon.energy.forecasting import ForecastConfig
from jaxanon.energy.q_learning import DQNConfig


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sharing": "fedavg"}, "sharing must be one of .'local', 'cloud'"),
        ({"forecaster": "arima"}, "forecaster must be one of .'lr'"),
        ({"graph": "star"}, "graph must be one of .'full', 'ring'"),
        ({"homes": 0}, "homes must be >= 1, got 0"),
        ({"held_out": 0}, "held_out must be >= 1, got 0"),
        ({"joining": -1}, "joining must be >= 0, got -1"),
        ({"degree": -3}, "degree must be >= 1, got -3"),
        ({"hidden": (8, 0)}, r"hidden must be >= 1, got \(8, 0\)"),
        ({"fit_rate": 0.0}, "fit_rate must be a finite number > 0, got 0.0"),
        ({"fit_rate": np.inf}, "fit_rate must be a finite number > 0, got inf"),
        ({"beta_hours": np.nan}, "beta_hours must be a finite number > 0, got nan"),
        ({"gamma_hours": np.inf}, "gamma_hours must be a finite number > 0, got inf"),
        ({"cents": np.nan}, "cents must be a finite number >= 0, got nan"),
        ({"cents": -1.0}, "cents must be a finite number >= 0, got -1.0"),
        ({"noise_multiplier": np.nan}, "noise_multiplier must be a finite number >= 0"),
        ({"lost": np.nan}, r"lost must be in \[0, 1\], got nan"),
        ({"late": 0.1, "max_age": 0}, "max_age must be >= 1 where messages are late"),
        ({"lookback": 7}, "every must divide lookback, got 5 and 7"),
        ({"capacity": 20}, "capacity must be >= 32, a batch"),
        ({"alpha": 10}, r"alpha must lie in \[0, 9\], the Q-network's layers, got 10"),
        ({"gamma_hours": 0.5}, "gamma_hours must be at least a slot, 60 minutes"),
        ({"epsilon": 1.5}, r"epsilon must be in \[0, 1\], got 1.5"),
        ({"lost": 0.8, "late": 0.4}, "lost and late must be probabilities"),
        ({"slot_min": 7}, "slot_min must divide 1440, the minutes of a day, got 7"),
        ({"slot_min": 0}, "slot_min must be >= 1, got 0"),
    ],
)
def test_settings_check_themselves(wrong, message):
    with pytest.raises(ValueError, match=message):
        PFDRLSettings(**wrong)


@pytest.mark.parametrize(
    "name", ["alpha", "days", "joining", "max_age", "degree", "slot_min", "batch_size"]
)
def test_counts_are_whole_numbers(name):
    with pytest.raises(TypeError, match=f"{name} must be whole, got 2.5"):
        PFDRLSettings(**{name: 2.5})


CONFIGS = (PFDRLSettings, PFDRLConfig, ForecastConfig, DQNConfig, federated.Messages)


@pytest.mark.parametrize("config", CONFIGS)
@hypothesis.settings(max_examples=100)
@given(draw=st.data())
def test_settings_are_taken_or_refused_by_name(config, draw):
    fields = [field.name for field in dataclasses.fields(config)]
    given_ = draw.draw(st.dictionaries(st.sampled_from(fields), VALUES, max_size=3))
    try:
        made = config(**given_)
    except (TypeError, ValueError) as error:
        assert any(field in str(error) for field in fields), (given_, repr(error))
        return
    # What was taken is of the kind of what stands there without asking.
    for field in dataclasses.fields(config):
        if isinstance(field.default, tuple | str | bool):
            value = getattr(made, field.name)
            assert isinstance(value, (type(field.default), np.bool_)), given_


@pytest.mark.parametrize(
    ("config", "wrong", "refused"),
    [
        (PFDRLSettings, {"hidden": 8}, "hidden must be several, in a tuple, got 8"),
        (PFDRLSettings, {"double": "no"}, "double must be True or False, got 'no'"),
        (PFDRLSettings, {"kinds": ("tv",)}, "kinds must be a word, got ('tv',)"),
        (PFDRLConfig, {"dqn": {}}, "dqn must be a DQNConfig, got {}"),
        (ForecastConfig, {"kind": np.ones(2)}, "kind must be a word, got array"),
        (ForecastConfig, {"hidden": ("8",)}, "each of hidden must be whole, got ('8'"),
        (DQNConfig, {"num_envs": True}, "num_envs must be whole, got True"),
        (federated.Messages, {"lost": "0.1"}, "lost must be a number, got '0.1'"),
    ],
)
def test_a_setting_of_another_kind_is_refused(config, wrong, refused):
    with pytest.raises(TypeError, match=re.escape(refused)):
        config(**wrong)


@pytest.mark.parametrize(
    ("idle", "message"),
    [
        ({"sharing": "frl", "lost": 0.1}, "lost is of broadcasts, and 'frl' has none"),
        ({"sharing": "local", "max_age": 3}, "max_age is of broadcasts, and 'local'"),
        ({"sharing": "cloud", "graph": "ring"}, "graph is of broadcasts, and 'cloud'"),
        ({"sharing": "fl", "degree": 2}, "degree is of broadcasts, and 'fl' has none"),
        ({"degree": 2}, "degree is of graph 'k-regular', and it is 'full': got 2"),
        ({"probability": 0.1, "graph": "ring"}, "probability is of graph 'random'"),
        ({"clip_norm": 2.0}, "clip_norm is of broadcasts with noise, and noise_mult"),
        ({"sharing": "frl", "noise_multiplier": 1.0}, "noise_multiplier is for broadc"),
    ],
)
def test_what_would_do_nothing_is_refused(idle, message):
    with pytest.raises(ValueError, match=message):
        PFDRLSettings(**idle)


def test_layers_that_nobody_shares_need_not_be_there():
    for sharing in ("local", "cloud", "fl", "frl"):
        small = PFDRLSettings(sharing=sharing, hidden=(4,), days=1)
        assert "alpha" not in settings.hyper_of(small)
    with pytest.raises(ValueError, match=r"alpha must lie in \[0, 2\]"):
        PFDRLSettings(hidden=(4,))


def test_settings_reach_the_parts():
    chosen = PFDRLSettings(
        forecaster="bp", lost=0.1, late=0.2, max_age=3, slot_min=30, fit_batch=7,
        hidden=(8, 8), alpha=2, gamma_hours=6.0, double=True, lookback=60,
        batch_size=8, capacity=50, target_every=9,
    )  # fmt: skip
    config = settings.config_of(chosen)
    assert settings.config_of(PFDRLSettings(sharing="frl")).method == "frl"
    assert config.method == "pfdrl" and config.forecast.kind == "bp"
    assert config.forecast.lookback == 60 and config.fit_batch == 7
    sizes = config.dqn.batch_size, config.dqn.capacity, config.dqn.target_every
    assert sizes == (8, 50, 9)
    # Where every message arrives none is kept.
    assert settings.config_of(PFDRLSettings(max_age=3)).messages.max_age == 0
    assert config.messages == federated.Messages(lost=0.1, late=0.2, max_age=3)
    assert config.hidden == (8, 8) and config.dqn.double
    assert 30 % config.dqn.num_envs == 0
    hyper = settings.hyper_of(chosen)
    assert (hyper["alpha"], hyper["gamma_hours"], hyper["epsilon"]) == (2, 6.0, 0.1)


@pytest.mark.parametrize(
    ("graph", "heard"), [("full", 5), ("ring", 2), ("k-regular", 4)]
)
def test_graphs(graph, heard):
    found = np.asarray(settings.graph_of(PFDRLSettings(graph=graph), 6))
    assert found.sum(axis=1).tolist() == [heard] * 6


def test_random_graphs_are_the_seed_s():
    draw = lambda **more: np.asarray(
        settings.graph_of(PFDRLSettings(graph="random", **more), 30)
    )
    np.testing.assert_array_equal(draw(), draw())
    assert (draw() != draw(homes_seed=1)).any()
    # 435 pairs: 4 deviations of a fair coin are 42.
    assert abs(draw().sum() / 2 - 217.5) < 42
    assert draw(probability=0.0).sum() == 0


def test_levels_are_of_the_days_to_learn_from():
    watts = np.repeat([2.0, 100.0, 7.0, 100.0], 720)[None, :, None]
    kinds = np.zeros((1, 1), np.int32)
    homes = energy.Homes(watts, kinds, ("tv",), ("a",), None)
    street = energy.street_of(PFDRLSettings(days=1, held_out=1), homes)
    assert street.levels.standby.tolist() == [2] and street.power.shape == (1, 2880)
