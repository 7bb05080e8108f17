"""Messages that a server rejects, one by one, and messages that it accepts."""

import numpy as np
import pytest

from jaxanon.federated.engine import exchange

LIKE = {"w": np.zeros((2, 3), np.float32), "n": np.zeros((), np.int32)}


def _good():
    return exchange.pack({"w": np.ones((2, 3), np.float32), "n": np.int32(1)})


def test_a_good_message_comes_through_as_it_was():
    found = exchange.unpack(_good(), LIKE)
    assert found["w"].tolist() == [[1.0] * 3] * 2 and found["n"] == 1
    assert found["w"].dtype == np.float32


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (
            "['w']",
            np.zeros((3, 2), np.float32),
            r"\['w'\] must be float32\[2, 3\], got",
        ),
        ("['w']", np.zeros((2, 3)), r"must be float32\[2, 3\], got float64\[2, 3\]"),
        ("['w']", np.full((2, 3), np.nan, np.float32), "w.* must be finite"),
        ("['w']", np.full((2, 3), np.inf, np.float32), "w.* must be finite"),
        ("['n']", np.zeros(1, np.int32), r"\['n'\] must be int32\[\], got int32\[1\]"),
        ("['v']", np.zeros(1), r"0 missing \[\] and 1 unknown"),
        ("['w']", None, "1 missing .*'w'"),
    ],
)
def test_bad_ones_are_refused_by_name(name, value, why):
    arrays = _good() | {name: value}
    arrays = {key: array for key, array in arrays.items() if array is not None}
    with pytest.raises(ValueError, match=why):
        exchange.unpack(arrays, LIKE)


@pytest.mark.parametrize("weight", [-1.0, 5.5, np.nan, np.inf])
def test_no_client_weighs_more_than_its_rows(weight):
    exchange.check_weight(0.0, 5.0)
    exchange.check_weight(5.0, 5.0)
    with pytest.raises(ValueError, match=r"weight must be in \[0, 5\]"):
        exchange.check_weight(weight, 5.0)


def test_norms_are_of_all_arrays_and_do_not_overflow():
    assert exchange.norm({"a": np.float32([3e30]), "b": np.float32([4e30])}) == (
        pytest.approx(5e30)
    )
    assert exchange.norm({}) == 0.0


def test_far_ones_are_those_beyond_ten_medians_or_the_bound():
    norms = {4: 1.0, 7: 2.0, 9: 20.0, 11: 20.5}
    assert exchange.find_oversized(norms, None) == {}  # The median is 11.
    norms = {4: 1.0, 7: 2.0, 9: 20.0, 11: 2.0, 2: 20.5}
    # The median is 2, so 20 is accepted.
    assert [*exchange.find_oversized(norms, None)] == [2]
    assert "at most 20, got 20.5" in exchange.find_oversized(norms, None)[2]
    assert [*exchange.find_oversized(norms, 1.5)] == [7, 9, 11, 2]
    # Two clients have no median.
    assert exchange.find_oversized({1: 1.0, 2: 1e9}, None) == {}
    assert [*exchange.find_oversized({1: 1.0, 2: 1e9}, 5.0)] == [2]
    assert exchange.find_oversized({1: 0.0, 2: 0.0, 3: 1.0}, None) == {}
    assert [*exchange.find_oversized({1: np.nan}, 5.0)] == [1]
