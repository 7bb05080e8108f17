"""Condition dropout, and condition statistics by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models import conditions

SIZES = {"activity": 3, "gender": 2}


def _told(batch):
    classes = {
        "activity": jnp.arange(batch) % 3,
        "gender": jnp.arange(batch) % 2,
    }
    features = jnp.ones((batch, 4))
    return conditions.Condition(classes, features, jnp.ones(batch, bool))


def test_parts_are_forgotten_each_on_its_own():
    told = _told(20_000)
    got = conditions.drop_conditions(jax.random.key(0), told, SIZES, 0.2)
    gone = [np.asarray(got.classes[name] == size) for name, size in SIZES.items()]
    gone.append(~np.asarray(got.known))
    for fall in gone:  # Standard deviation 0.003.
        assert fall.mean() == pytest.approx(0.2, abs=0.012)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = (gone[one] & gone[other]).mean()
        assert both == pytest.approx(0.04, abs=0.006)
    kept = ~gone[0]
    rest = np.asarray(got.classes["activity"])[kept]
    np.testing.assert_array_equal(rest, np.arange(20_000)[kept] % 3)


def test_nothing_is_forgotten_at_rate_0_and_all_at_1():
    told = _told(6)
    same = conditions.drop_conditions(jax.random.key(1), told, SIZES, 0.0)
    jax.tree.map(np.testing.assert_array_equal, same, told)
    none = conditions.drop_conditions(jax.random.key(1), told, SIZES, 1.0)
    empty = conditions.null_condition(SIZES, 4, 6)
    jax.tree.map(np.testing.assert_array_equal, none.classes, empty.classes)
    np.testing.assert_array_equal(none.known, empty.known)


def test_statistics_by_hand():
    windows = jnp.array([[[0.0, 5.0], [4.0, 5.0]]])  # Means 2, 5; std 2, 0.
    moments = conditions.moments(windows)
    np.testing.assert_array_equal(moments, [[2, 5, 2, 0]])
    got = conditions.statistics(moments, jnp.array([[1.0, 3.0]]), jnp.array([[0.5, 0]]))
    # (2 - 1) / 0.5; a class whose windows share one mean has no z-score.
    np.testing.assert_array_equal(got, [[2, 5, 2, 0, 2, 0]])
