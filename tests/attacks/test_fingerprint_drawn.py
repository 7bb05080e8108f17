"""Model choices that single out a user: against an enumeration of all draws."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import attacks

SEEDS = st.integers(0, 2**32 - 1)
CHOICES = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=2, max_size=4
)
DTYPES = st.sampled_from([np.int64, np.int8, np.uint8])


def pieces(own, size, ordered):
    """Returns all possible draws of a user."""
    if ordered:
        size = min(size, len(own))
        return [tuple(own[at : at + size]) for at in range(len(own) - size + 1)]
    models = sorted(set(own))
    return list(itertools.combinations(models, min(size, len(models))))


def holds(theirs, piece, ordered):
    if not ordered:
        return set(piece) <= set(theirs)
    ends = range(len(theirs) - len(piece) + 1)
    return any(tuple(theirs[at : at + len(piece)]) == piece for at in ends)


@settings(max_examples=60, deadline=None)
@given(SEEDS, CHOICES, st.booleans(), st.sampled_from([1, 40]), DTYPES)
def test_a_draw_is_unique_where_nobody_else_has_it(
    seed, choices, ordered, draws, dtype
):
    sizes = (1, 2, 5)
    arrays = [np.array(own, dtype) for own in choices]
    found = attacks.uniqueness(
        jax.random.key(seed), arrays, sizes=sizes, draws=draws, ordered=ordered
    )
    assert found.shape == (len(choices), 3) and found.dtype == np.float64
    np.testing.assert_allclose(found * draws, np.round(found * draws), atol=1e-9)
    for user, place in np.ndindex(found.shape):
        drawn = pieces(choices[user], sizes[place], ordered)
        others = choices[:user] + choices[user + 1 :]
        alone = [not any(holds(own, one, ordered) for own in others) for one in drawn]
        share = found[user, place]
        if len(set(alone)) == 1:
            assert share == alone[0]
        elif draws > 1:
            # All are equally likely; at most six standard deviations of 40 coins.
            assert abs(share - np.mean(alone)) < 6 * 0.5 / np.sqrt(draws)


@settings(max_examples=25, deadline=None)
@given(SEEDS, CHOICES, st.booleans())
def test_whoever_has_a_twin_is_never_unique(seed, choices, ordered):
    found = attacks.uniqueness(
        jax.random.key(seed), [*choices, choices[0]], draws=5, ordered=ordered
    )
    assert found.shape == (len(choices) + 1, len(attacks.SIZES))
    assert not found[[0, -1]].any()


@settings(max_examples=25, deadline=None)
@given(SEEDS, CHOICES, st.sampled_from([3, 7]))
def test_in_a_row_names_of_models_do_not_matter(seed, choices, factor):
    read = lambda choices: attacks.uniqueness(
        jax.random.key(seed), choices, draws=9, ordered=True
    )
    renamed = [[factor * (3 - one) for one in own] for own in choices]
    np.testing.assert_array_equal(read(choices), read(renamed))


@given(
    CHOICES,
    st.sampled_from([[], [-1], [0.5], [[0, 1]], ["0"], [True]]),
    st.integers(max_value=0),
)
def test_what_are_no_choices_is_refused(choices, wrong, number):
    read = lambda choices, **options: attacks.uniqueness(
        jax.random.key(0), choices, **options
    )
    with pytest.raises(ValueError, match=f"choices of user {len(choices)} must be int"):
        read([*choices, wrong])
    with pytest.raises(ValueError, match=r"of at least 2 users, got 1"):
        read(choices[:1])
    for options in ({"draws": number}, {"sizes": [1, number]}):
        with pytest.raises(ValueError, match="sizes and draws must be at least 1"):
            read(choices, **options)
