"""Balanced errors by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.losses import balanced_error, distance_from_chance


def _logits(*right):
    """Returns logits of two classes with probability ``right`` for class 0 per row."""
    p = jnp.array(right)
    return jnp.log(jnp.stack([p, 1 - p], axis=1))


LOGITS = _logits(0.9, 0.7, 0.2, 0.5)
LABELS = jnp.array([0, 0, 0, 1])


def test_every_class_counts_the_same_however_many_rows_it_has():
    # Errors .1 .3 .8 of class 0, .5 of class 1: (.4 + .5) / 2, not their mean .425.
    found = jax.jit(balanced_error, static_argnums=3)(LOGITS, LABELS, LABELS, 2)
    np.testing.assert_allclose(found, 0.45, rtol=1e-6)


def test_groups_may_be_those_of_another_attribute():
    # Rows 0 and 3 are one group, rows 1 and 2 the other: (.3 + .55) / 2.
    groups = jnp.array([0, 1, 1, 0])
    np.testing.assert_allclose(
        balanced_error(LOGITS, LABELS, groups, 2), 0.425, rtol=1e-6
    )


@pytest.mark.parametrize(("absent", "expected"), [(False, 0.4), (True, 0.2)])
def test_a_group_without_rows(absent, expected):
    # Errors .1 .3 .8 of class 0; class 1 has no row: dropped, or without error.
    found = balanced_error(LOGITS[:3], LABELS[:3], LABELS[:3], 2, absent=absent)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_guess_that_does_not_look_is_at_no_distance_from_chance(classes):
    labels = jnp.arange(20) % classes
    logits = jnp.tile(jnp.arange(float(classes)), (20, 1))
    error = balanced_error(logits, labels, labels, classes)
    np.testing.assert_allclose(distance_from_chance(error, classes), 0, atol=1e-6)
    # Always wrong is as informative as always right.
    for error in (0.0, 2 - 2 / classes):
        distance = distance_from_chance(jnp.float32(error), classes)
        np.testing.assert_allclose(distance, 1 - 1 / classes, rtol=1e-6)


def test_an_empty_batch_has_no_error():
    nothing = jnp.zeros(0, jnp.int32)
    found = balanced_error(jnp.zeros((0, 2)), nothing, nothing, 2, absent=True)
    assert found == 0
