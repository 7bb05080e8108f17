"""Grid points that a method's settings exclude."""

import pytest
import toy

from jaxanon.cli import arguments
from jaxanon.methods.dysan.dysan import dysan
from jaxanon.methods.dysan.sanitizers import DySanConfig
from jaxanon.sweeps import space

SMALL = {"filters": (2, 2), "hidden_sizes": (2, 2), "predictor_filters": (2,)}


@pytest.fixture(scope="module")
def spec():
    return toy.data().spec


def test_the_published_grid_has_36_points(spec):
    grid = arguments.parse(("alpha=0.1:0.9:0.1,lambda=0.1:0.9:0.1",), DySanConfig)
    with pytest.warns(UserWarning, match="45 of 81 points .* alpha . lambda_ must"):
        plan = space.plan(dysan, spec, grid, 2, SMALL)
    cells = [place.settings for place in plan.members if place.seed == 0]
    assert len(cells) == 36 and len(plan.members) == 72
    # As in the paper: tenths, with at least one for distortion.
    tenths = {(round(10 * c["alpha"]), round(10 * c["lambda_"])) for c in cells}
    assert tenths == {(a, b) for a in range(1, 10) for b in range(1, 10 - a)}
    (group,) = plan.groups  # All of them share one program.
    assert len(group.indices) == 72


def test_a_grid_without_a_possible_point(spec):
    with pytest.raises(
        ValueError, match="at least one possible point: .* must be < 1.*got 0.9 . 0.3"
    ):
        space.plan(dysan, spec, {"alpha": [0.8, 0.9]}, 1, SMALL)


def test_a_value_out_of_its_range_is_no_point_to_leave_out(spec):
    with pytest.raises(ValueError, match="alpha must be finite and >= 0, got -0.1"):
        space.plan(dysan, spec, {"alpha": [0.1, -0.1]}, 1, SMALL)


def test_a_value_stands_once_in_its_axis():
    with pytest.raises(ValueError, match=r"grid\['gamma'\] must have each value once"):
        space.check_values("gamma", [1, 2, 1.0])
