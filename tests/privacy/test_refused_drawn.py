"""Accountants reject drawn invalid arguments by name."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import privacy

NAN, INF = math.nan, math.inf
LAYERS = st.lists(
    st.tuples(st.floats(0.05, 50.0), st.floats(0.01, 1.0)), min_size=1, max_size=6
)
NUMBERS = st.sampled_from([0, -1, -0.5, NAN, INF, -INF, "1", None, True, 1j, [1.0]])
COUNTS = st.sampled_from([0, -3, 1.5, "1", None, True, NAN])
DELTAS = st.sampled_from([0.0, -0.1, 1.0, 2.0, NAN, INF, "1e-5", None])
GOOD = {
    "epsilon_per_hour": {"epsilon": 1.0, "stride_s": 1.0},
    "raw_error": {"inputs": 8, "width": 1.0, "epsilon": 1.0},
    "feature_error": {"features": 2, "sensitivity": 1.0, "epsilon": 1.0},
    "rebuilt_error": {"inputs": 8, "features": 2, "sensitivity": 1.0, "epsilon": 1.0},
    "responses_spent": {"epsilon": 1.0, "count": 2, "delta": 1e-5},
    "response_epsilon_for": {"epsilon": 1.0, "count": 2, "delta": 1e-5},
    "layer_noise_multipliers": {"joint": 1.0, "weights": [1.0]},
    "noise_multiplier_for": {
        "epsilon": 1.0, "delta": 1e-5, "steps": 1, "sampling_probability": 1.0,
        "accountant": "rdp",
    },
    "steps_within": {
        "epsilon": 1.0, "delta": 1e-5, "noise_multiplier": 1.0,
        "sampling_probability": 1.0, "accountant": "rdp",
    },
    "epsilon_spent": {"releases": [], "delta": 1e-5, "accountant": "rdp"},
    "warn_of_delta": {"delta": 1e-5, "max_examples": 9},
}  # fmt: skip
WRONG = {
    **dict.fromkeys(["inputs", "features", "count", "steps"], COUNTS),
    "delta": DELTAS,
    "accountant": st.sampled_from(["moments", "", None, 3]),
    "weights": st.sampled_from([[], [1.0, 0.0], [NAN], [INF, 1.0]]),
}
PLACES = [
    (name, one)
    for name, given in GOOD.items()
    for one in given
    if one not in ("max_examples", "releases")
]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(PLACES))
def test_what_is_out_of_range_is_refused_by_its_name(data, place):
    name, one = place
    value = data.draw(WRONG.get(one, NUMBERS))
    if (name, one, value) == ("responses_spent", "count", 0):
        return  # Without answers, the cost is 0.
    with pytest.raises((TypeError, ValueError), match=one.replace("weights", "noise_")):
        getattr(privacy, name)(**GOOD[name] | {one: value})


@settings(max_examples=50, deadline=None)
@given(LAYERS, st.sampled_from([0.0, -1.0, NAN, INF]), st.data())
def test_layers_that_are_no_mechanism(own, wrong, data):
    z, scores = (list(column) for column in zip(*own, strict=True))
    place = data.draw(st.integers(0, len(z) - 1))
    harmed = [*z[:place], wrong, *z[place + 1 :]]
    joint = privacy.noise_multiplier_of_layers
    for call, message in [
        (lambda: joint(harmed), "noise_multiplier must be finite and > 0"),
        (lambda: joint(z, [wrong, *scores][: len(z)]), r"scores must be in \(0, 1\]"),
        (
            lambda: joint(z, [*scores, 1.0]),
            f"scores must have {len(z)} entries, one for each",
        ),
        (lambda: joint(z, reading=str(wrong)), "reading must be one of"),
        (lambda: privacy.sequential({wrong: 1}), "epsilon must be finite and > 0"),
        (lambda: privacy.sequential({1.0: -1 - place}), "releases must have"),
        (lambda: privacy.sequential({1.0: wrong}), "must have whole counts"),
        (lambda: privacy.rebuilt_error(place, place + 1, 1.0, 1.0), "inputs|features"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8])
def test_numbers_of_few_bits_cost_what_python_s_do(kind):
    """In half precision 300 answers would cost less, and in eight bits none fit."""
    spent = privacy.responses_spent(2.0, 300, 1e-5)
    assert privacy.responses_spent(kind(2), 300, 1e-5) == spent
    each = privacy.response_epsilon_for(20.0, 10, 1e-5)
    assert privacy.response_epsilon_for(kind(20), 10, 1e-5) == each
    assert privacy.epsilon_per_hour(kind(20), kind(1)) == 72_000
    assert privacy.raw_error(300, kind(1), 2.0) == 45_000
    assert privacy.feature_error(300, kind(1), kind(2)) == 150
    assert privacy.rebuilt_error(300, 150, kind(1), kind(2)) == 150


def test_what_no_float_holds_is_infinite():
    assert privacy.sequential({1e308: 1, 1.5e308: 1}) == INF
    assert privacy.sequential({1.0: 10**400}) == INF
    with pytest.raises(ValueError, match="epsilon must be finite and > 0"):
        privacy.epsilon_per_hour(10**400, 1.0)
