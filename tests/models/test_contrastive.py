"""The contrastive loss by hand, its minimum, and excluded rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.losses import supervised_contrastive_loss


def plain(features, labels, temperature):
    """Computes equation 2 of the paper, row by row."""
    z = features / np.linalg.norm(features, axis=1, keepdims=True)
    found = []
    for i in range(len(z)):
        others = [a for a in range(len(z)) if a != i]
        alike = [p for p in others if labels[p] == labels[i]]
        total = sum(np.exp(z[i] @ z[a] / temperature) for a in others)
        logs = [np.log(np.exp(z[i] @ z[p] / temperature) / total) for p in alike]
        if alike:
            found.append(-np.mean(logs))
    return np.mean(found)


def test_by_hand():
    # Rows 0 and 1 are at a right angle, row 2 is row 0 twice as long: cosines 0, 1, 0.
    features = jnp.array([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]])
    labels = jnp.array([0, 0, 1])
    # Row 0 prefers row 2 by e^2 at temperature 1/2. Row 1 is equally close to both. Row
    # 2 has no other row of its class.
    want = (np.log(1 + np.exp(2)) + np.log(2)) / 2
    got = supervised_contrastive_loss(features, labels, 0.5)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_agrees_with_loops(temperature):
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(20, 5)), random.integers(0, 4, 20)
    labels[3] = 9  # No other row of its class.
    got = jax.jit(supervised_contrastive_loss)(
        jnp.float32(features), jnp.asarray(labels), temperature
    )
    np.testing.assert_allclose(got, plain(features, labels, temperature), rtol=1e-4)


def test_apart_is_better_than_mixed_and_nothing_to_compare_is_0():
    labels = jnp.array([0, 0, 1, 1])
    apart = jnp.array([[1.0, 0], [1, 0], [-1, 0], [-1, 0]])
    mixed = apart[jnp.array([0, 2, 1, 3])]
    loss = lambda x, labels=labels: float(supervised_contrastive_loss(x, labels, 0.1))
    assert loss(apart) < 1e-6 and loss(mixed) > 10
    assert loss(jnp.ones((4, 2))) == pytest.approx(np.log(3))
    assert loss(apart, jnp.arange(4)) == 0


def test_gradients_are_finite_even_of_zeros():
    slope = jax.grad(supervised_contrastive_loss)
    for features in (jnp.zeros((3, 2)), jnp.eye(3)):
        for labels in (jnp.array([0, 0, 1]), jnp.arange(3)):
            assert np.isfinite(slope(features, labels, 0.1)).all()


@pytest.mark.parametrize(("rows", "labels"), [(1, 1), (3, 2)])
def test_says_what_was_wrong(rows, labels):
    message = rf"n >= 2, .* got shapes \({rows}, 2\) and \({labels},\)"
    with pytest.raises(ValueError, match=message):
        supervised_contrastive_loss(jnp.ones((rows, 2)), jnp.zeros(labels, int), 1.0)
