"""Knowledge inheritance and smoothing against SciPy, and their invariances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from jaxanon.models.kd_blinder import inheritance_loss

LOGITS = np.array([[1.0, -0.5, 0.3, 2.0], [0.2, 0.1, -1.0, 0.5]], np.float32)
TEACHER = np.array([[0.0, 0.4, -0.7, 1.0], [1.5, -2.0, 0.6, 0.2]], np.float32)
TARGETS = np.eye(4, dtype=np.float32)[[0, 2]]
PRESENT = np.array([True, False, True, False])

loss = jax.jit(inheritance_loss, static_argnames="restricted")
grads = jax.jit(jax.grad(inheritance_loss), static_argnames="restricted")


def _loss(logits=LOGITS, teacher=TEACHER, weights=(1.0, 1.0), present=PRESENT, **more):
    given = (logits, teacher, TARGETS, np.float32(weights), np.asarray(present))
    return loss(*map(jnp.asarray, given), **more)


def _gradient(logits=LOGITS, teacher=TEACHER, present=PRESENT, **more):
    given = (logits, teacher, TARGETS, np.ones(2, np.float32), np.asarray(present))
    return np.asarray(grads(*map(jnp.asarray, given), **more))


@pytest.mark.parametrize("restricted", [True, False])
def test_agrees_with_scipy(restricted):
    own = scipy.special.log_softmax(LOGITS[:, PRESENT], axis=1)
    graded = own if restricted else scipy.special.log_softmax(LOGITS, axis=1)
    entropy = -np.array([graded[0, 0], graded[1, 1 if restricted else 2]])
    smooth = scipy.stats.entropy(np.exp(own), axis=1)
    soft = lambda x: scipy.special.softmax(x[:, ~PRESENT] / 3, axis=1)
    apart = scipy.stats.entropy(soft(TEACHER), soft(LOGITS), axis=1)
    rows = entropy + 0.7 * 9 * apart - 0.2 * smooth
    settings = {"temperature": 3.0, "distillation": 0.7, "smoothing": 0.2}
    for weights in ((1, 1), (1, 3), (1, 0)):
        got = _loss(weights=weights, restricted=restricted, **settings)
        expected = np.average(rows, weights=weights)
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_published_weights_are_the_defaults():
    given = {"temperature": 2.0, "distillation": 1.0, "smoothing": 0.002}
    assert _loss() == _loss(restricted=True, **given)


def test_cross_entropy_leaves_absent_classes_alone_unless_it_is_over_all():
    alone = {"distillation": 0.0, "smoothing": 0.0}
    assert not np.any(_gradient(**alone)[:, ~PRESENT])
    # Descent lowers their logits: the classes are unlearned.
    assert np.all(_gradient(restricted=False, **alone)[:, ~PRESENT] > 0)


def test_inheritance_moves_absent_classes_and_rests_where_they_agree():
    alone = {"smoothing": 0.0}
    moved = _gradient(**alone) - _gradient(distillation=0.0, **alone)
    assert np.all(moved[:, ~PRESENT]) and not np.any(moved[:, PRESENT])
    # The gradient of T² KL is T (softmax - teacher's softmax): 2 times their
    # difference.
    soft = lambda x: scipy.special.softmax(x[:, ~PRESENT] / 2, axis=1)
    expected = 2 * (soft(LOGITS) - soft(TEACHER)) / len(LOGITS)
    np.testing.assert_allclose(moved[:, ~PRESENT], expected, rtol=1e-4)
    agreed = np.where(PRESENT, LOGITS, TEACHER)
    np.testing.assert_array_equal(_gradient(agreed, **alone)[:, ~PRESENT], 0.0)


def test_smoothing_is_downhill_towards_even_present_classes():
    sharp = np.array([[4.0, 9.0, 0.0, 0.0]] * 2, np.float32)
    alone = {"distillation": 0.0}
    moved = _gradient(sharp, smoothing=1.0, **alone) - _gradient(
        sharp, smoothing=0.0, **alone
    )
    # A step against it lowers the larger present logit and raises the smaller one.
    assert np.all(moved[:, 0] > 0) and np.all(moved[:, 2] < 0)
    assert not np.any(moved[:, ~PRESENT])


def test_a_client_of_one_class_learns_nothing_while_it_agrees():
    one = [True, False, False, False]
    targets = np.eye(4, dtype=np.float32)[[0, 0]]
    given = (LOGITS, LOGITS, targets, np.ones(2, np.float32), np.array(one))
    gradient = lambda **more: np.asarray(grads(*map(jnp.asarray, given), **more))
    # Adam would amplify rounding errors.
    np.testing.assert_array_equal(gradient(), 0.0)
    assert np.all(np.abs(gradient(restricted=False)) > 1e-3)


def test_all_classes_present_or_none_is_defined():
    assert np.all(np.isfinite(_gradient(present=[True] * 4)))
    assert np.all(np.isfinite(_gradient(present=[False] * 4)))
    own = scipy.special.log_softmax(LOGITS, axis=1)
    plain = -(own[0, 0] + own[1, 2]) / 2
    got = _loss(present=[True] * 4, smoothing=0.0)
    np.testing.assert_allclose(got, plain, rtol=1e-5)
