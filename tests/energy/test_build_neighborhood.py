"""Neighborhoods: order of agents, and mixing weights."""

import numpy as np
import pytest

from jaxanon import energy, federated


def power():
    """Three homes, two devices, the second home without the second one."""
    watts = np.zeros((3, 100, 2))
    for home in range(3):
        for device in range(2):
            watts[home, :60, device] = 1 + home
            watts[home, 60:, device] = 100 * (1 + device)
    watts[1, :, 1] = np.nan
    return watts


def test_agents_are_homes_by_devices():
    made = energy.build_neighborhood(power())
    assert made.power.shape == (6, 100)
    assert made.power[4, 0] == 3 and made.power[5, 99] == 200
    assert made.levels.standby.tolist() == [1, 1, 2, 0, 3, 3]
    assert made.levels.on.tolist() == [100, 200, 100, 0, 100, 200]
    assert made.present.tolist() == [True, True, True, False, True, True]
    # (60 * 1 + 40 * 100) / 100, and 1 without power.
    np.testing.assert_allclose(made.scale[0], 40.6)
    assert made.scale[3] == 1


def test_only_devices_of_a_kind_that_are_there_learn_of_each_other():
    made = energy.build_neighborhood(power())
    third, half = 1 / 3, 1 / 2
    expected = [
        [third, 0, third, 0, third, 0],
        [0, half, 0, 0, 0, half],
        [third, 0, third, 0, third, 0],
        [0, 0, 0, 1, 0, 0],
        [third, 0, third, 0, third, 0],
        [0, half, 0, 0, 0, half],
    ]
    np.testing.assert_allclose(made.server_weights, expected, atol=1e-6)
    np.testing.assert_allclose(made.neighbor_weights, expected, atol=1e-6)


def test_kinds_may_stand_in_any_column():
    made = energy.build_neighborhood(power(), kinds=[[0, 1], [1, 2], [0, 1]])
    hears = np.asarray(made.server_weights) > 0
    assert np.flatnonzero(hears[1]).tolist() == [1, 2, 5]


def test_a_graph_of_homes_is_one_of_agents():
    homes = np.repeat(power()[:1], 4, axis=0)
    made = energy.build_neighborhood(homes, graph=federated.ring_graph(4))
    federated.check_mixing(made.neighbor_weights)
    assert np.flatnonzero(made.neighbor_weights[0]).tolist() == [0, 2, 6]
    assert np.flatnonzero(made.server_weights[0]).tolist() == [0, 2, 4, 6]


def test_levels_are_of_the_minutes_one_may_learn_from():
    watts = power()
    watts[:, 80:] = 900.0
    watts[1, :, 1] = np.nan
    made = energy.build_neighborhood(watts, learn_minutes=80)
    assert made.levels.on[0] == 100
    assert (
        energy.build_neighborhood(watts[:, :80]).scale.tolist() == made.scale.tolist()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learn_minutes": 101}, r"learn_minutes must be in \[1, 100\]"),
        ({"learn_minutes": 0}, "got 0"),
        ({"kinds": [[0, 1]]}, r"kinds must have shape \(3, 2\)"),
        ({"graph": np.eye(3, k=1, dtype=bool)}, "graph must be symmetric"),
        ({"graph": np.eye(2, dtype=bool)}, r"graph must have shape \(3, 3\)"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        energy.build_neighborhood(power(), **options)


def test_bad_meters_are_refused_by_name():
    watts = power()
    watts[2, 7, 1] = -5
    names = ("Elm 1", "Elm 2", "Elm 3"), ("oven", "lamp")
    with pytest.raises(ValueError, match=r"got -5\.0 W for lamp of Elm 3 in minute 7"):
        energy.build_neighborhood(watts, names=names)
