"""Recovery from loss spikes is reported; smooth training reports nothing."""

import hypothesis
import pytest
from hypothesis import strategies as st

from jaxanon.training import metrics_log


def _history(*values, name="loss"):
    return [
        {"round": 10 * (at + 1), "losses": {name: value}}
        for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    "values, found",
    [
        ((3.0, 9e9, 2.0), ("loss", 20, 9e9)),
        ((3.0, -9e9, 2.0), ("loss", 20, -9e9)),
        ((3.0, 2999.0), None),
        ((3.0, 3000.0), ("loss", 20, 3000.0)),
        ((1e-9, 1e-4, 9.0), None),  # A large ratio to a tiny loss is not a spike.
        ((0.0, 0.0, 5000.0, 4000.0), None),  # Its phase had not begun.
        ((1.0, 4e3, 9e7), ("loss", 30, 9e7)),  # 22,500 times, after 4,000 times.
        ((1.0, 4e6, 9e7), ("loss", 20, 4e6)),  # A fall from there is not a spike.
        ((9e9, 3.0), None),
        ((), None),
    ],
)
def test_the_furthest_leap_by_hand(values, found):
    assert metrics_log.largest_spike(_history(*values)) == found


@hypothesis.given(
    st.lists(st.floats(-999.0, 999.0), max_size=20), st.integers(0, 20), st.booleans()
)
def test_a_planted_leap_is_found_wherever_it_is(values, at, down):
    values = [5.0, *values]
    assert metrics_log.largest_spike(_history(*values)) is None
    values.insert(1 + at, -1e7 if down else 1e7)
    place = values.index(-1e7 if down else 1e7)
    assert metrics_log.largest_spike(_history(*values)) == (
        "loss",
        10 * (place + 1),
        values[place],
    )


def test_the_warning_names_the_steps():
    with pytest.warns(
        UserWarning, match="'critic' spiked to 1.0e.08 .* round 20.*"
    ) as w:
        hyper = {"alpha": 1, "learning_rate": 2, "discriminator_learning_rate": 3}
        metrics_log.warn(_history(2.0, 1e8, name="critic"), hyper, stacklevel=1)
    assert "lower learning_rate or discriminator_learning_rate." in str(w[0].message)
    assert w[0].filename == __file__
    metrics_log.warn(_history(2.0, 3.0), {}, stacklevel=1)  # Otherwise an error here.
