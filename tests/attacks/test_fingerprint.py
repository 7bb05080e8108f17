"""Model choices as a fingerprint: by hand."""

import jax
import numpy as np
import pytest

from jaxanon import attacks


def unique(choices, **options):
    return attacks.uniqueness(jax.random.key(0), choices, **options)


def test_sets_by_hand():
    # The first has 0, 1, 2; the second 0, 1; the third 1, 3.
    choices = [[0, 1, 2, 0], [0, 1, 1], [3, 1]]
    found = unique(choices, sizes=[1, 2, 3], draws=600)
    # With one model each: only 2 is unique to the first, none to the second, 3 to the
    # third. 600 draws of a third have a standard deviation of 0.02.
    np.testing.assert_allclose(found[:, 0], [1 / 3, 0, 1 / 2], atol=0.09)
    # With two models: {0, 1} is shared, {0, 2} and {1, 2} are not.
    np.testing.assert_allclose(found[:, 1], [2 / 3, 0, 1], atol=0.09)
    # A user with fewer models shows all of them.
    np.testing.assert_array_equal(found[:, 2], [1, 0, 1])


def test_order_by_hand():
    choices = [[0, 1, 0, 1], [1, 0, 0, 0]]
    found = unique(choices, sizes=[2, 3], draws=600, ordered=True)
    # First: 01, 10, 01, of which 10 also belongs to the second. Second: 10, 00, 00.
    np.testing.assert_allclose(found[:, 0], [2 / 3, 2 / 3], atol=0.09)
    np.testing.assert_array_equal(found[:, 1], [1, 1])
    # As sets, the two users are equal.
    assert not unique(choices, sizes=[1, 2]).any()


def test_more_choices_are_more_unique_and_fewer_models_less():
    rng = np.random.default_rng(0)
    people = lambda models: [rng.choice(models, 8) for _ in range(20)]
    many, few = unique(people(36)).mean(0), unique(people(4)).mean(0)
    assert np.all(np.diff(many) >= 0) and many[-1] > 0.9
    assert np.all(few < many)


def test_the_key_decides():
    choices = [np.arange(9), np.arange(5, 14)]
    one, again = (unique(choices, sizes=[2], draws=9) for _ in range(2))
    np.testing.assert_array_equal(one, again)


@pytest.mark.parametrize(
    ("choices", "options", "message"),
    [
        ([[0]], {}, "at least 2 users, got 1"),
        ([[0], []], {}, r"choices of user 1 must be int\[windows\] >= 0.*float64\[0\]"),
        ([[0], [-1]], {}, "choices of user 1 must be"),
        ([[0], [1]], {"sizes": [0]}, r"sizes and draws must be at least 1, got \(0,\)"),
        ([[0], [1]], {"draws": 0}, "and 0"),
    ],
)
def test_says_what_was_wrong(choices, options, message):
    with pytest.raises(ValueError, match=message):
        unique(choices, **options)
