"""Windows matched by kind and cut into runs: drawn people and kinds."""

import collections

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import attacks

some = settings(max_examples=60, deadline=None)
kinds = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=9
)


@some
@given(kinds, kinds, st.integers(1, 12), st.integers(0, 99))
def test_both_sides_have_as_many_of_each_kind(members, others, most, seed):
    key = jax.random.key(seed)
    common = collections.Counter(members) & collections.Counter(others)
    if not common:
        with pytest.raises(ValueError, match="no window outside the training data"):
            attacks.match(key, np.array(members), np.array(others), most)
        return
    own, other = attacks.match(key, np.array(members), np.array(others), most)
    assert len(own) == len(other) == min(most, common.total())
    # No person twice, and one kind at each position.
    assert len({*own.tolist()}) == len(own) and len({*other.tolist()}) == len(other)
    assert [members[i] for i in own] == [others[i] for i in other]


@some
@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 5))
def test_runs_are_a_person_s_windows_in_order_each_once(persons, length):
    found = attacks.runs(persons, length)
    assert found.shape[1:] == (length,)
    expected = []
    for who in dict.fromkeys(persons):
        own = [at for at, other in enumerate(persons) if other == who]
        expected += [own[i : i + length] for i in range(0, len(own), length)]
    expected = [run for run in expected if len(run) == length]
    assert sorted(found.tolist()) == sorted(expected)


@some
@given(st.integers(-3, 0))
def test_lengths_and_numbers_below_one_are_refused(number):
    with pytest.raises(ValueError, match="length must be"):
        attacks.runs([0, 0], number)
    one = np.zeros((2, 1), int)
    with pytest.raises(ValueError, match="most must be"):
        attacks.match(jax.random.key(0), one, one, number)
