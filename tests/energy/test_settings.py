"""What a person sets of a street: refused where it is wrong, passed on where not."""

import numpy as np
import pytest

from jaxanon import energy, federated
from jaxanon.energy import PFDRLSettings, settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sharing": "fedavg"}, "sharing must be one of .'local', 'cloud'"),
        ({"forecaster": "arima"}, "forecaster must be one of .'lr'"),
        ({"graph": "star"}, "graph must be one of .'full', 'ring'"),
        ({"homes": 0}, "homes must be >= 1, got 0"),
        ({"held_out": 0}, "held_out must be >= 1, got 0"),
        ({"joining": -1}, "joining must be >= 0, got -1"),
        ({"fit_rate": 0.0}, "fit_rate must be > 0, got 0.0"),
        ({"epsilon": 1.5}, r"epsilon must lie in \[0, 1\], got 1.5"),
        ({"lost": 0.8, "late": 0.4}, "lost and late must be probabilities"),
        ({"slot_min": 7}, "slot_min must divide 1440, the minutes of a day, got 7"),
        ({"slot_min": 0}, "slot_min must be >= 1, got 0"),
    ],
)
def test_settings_check_themselves(wrong, message):
    with pytest.raises(ValueError, match=message):
        PFDRLSettings(**wrong)


def test_settings_reach_the_parts():
    chosen = PFDRLSettings(
        sharing="frl", forecaster="bp", lost=0.1, late=0.2, max_age=3, slot_min=30,
        hidden=[8, 8], alpha=2, gamma_hours=6.0, double=True,
    )  # fmt: skip
    config = settings.config_of(chosen)
    assert config.method == "frl" and config.forecast.kind == "bp"
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
