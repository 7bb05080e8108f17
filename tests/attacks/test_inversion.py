"""Gradient inversion: recovers a window from its gradient, but not from noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import attacks

TIME, CHANNELS, CLASSES = 16, 2, 3


def loss_fn(params, window, label):
    hidden = jnp.tanh(window.ravel() @ params["first"] + params["bias"])
    return -jnp.sum(label * jax.nn.log_softmax(hidden @ params["last"]))


def client():
    """Returns a small network, and a window with its label."""
    one, other = jax.random.split(jax.random.key(0))
    params = {
        "first": jax.random.normal(one, (TIME * CHANNELS, 24)) / 6,
        "bias": jnp.zeros(24),
        "last": jax.random.normal(other, (24, CLASSES)) / 5,
    }
    t = jnp.arange(TIME) / TIME
    window = jnp.stack([jnp.sin(9 * t), jnp.cos(5 * t) + 0.3 * jnp.sin(30 * t)], 1)
    return params, window, jax.nn.one_hot(2, CLASSES)


def stolen(**options):
    params, window, label = client()
    sent = attacks.client_gradient(
        jax.random.key(1), loss_fn, params, window[None], label[None], **options
    )
    found = attacks.invert_gradient(
        jax.random.key(2), loss_fn, params, sent, (TIME, CHANNELS), (CLASSES,),
        steps=120, restarts=3,
    )  # fmt: skip
    return found, abs(float(attacks.correlation(window, found.window)))


def test_a_gradient_gives_the_window_and_its_label_back():
    found, alike = stolen()
    assert alike > 0.99 and found.distance < 1e-4
    assert found.label.argmax() == 2 and found.label[2] > 0.9


def test_clipping_alone_protects_nothing():
    assert stolen(clip_norm=0.5)[1] > 0.99


def test_noise_of_differential_privacy_protects():
    # 32 independent numbers correlate by 0.18 by chance.
    found, alike = stolen(clip_norm=0.5, noise_multiplier=1.0)
    assert alike < 0.6 and found.distance > 0.3


def test_a_client_sends_the_mean_of_clipped_gradients_and_noise():
    params, window, label = client()
    windows, labels = jnp.stack([window, 2 * window]), jnp.stack([label, label])

    def send(seed=0, **options):
        own = lambda key: attacks.client_gradient(
            key, loss_fn, params, windows, labels, **options
        )
        return jax.jit(own)(jax.random.key(seed))

    flat = lambda tree: np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])
    own = [flat(jax.jit(jax.grad(loss_fn))(params, x, label)) for x in windows]
    np.testing.assert_allclose(flat(send()), np.mean(own, 0), rtol=1e-4, atol=1e-6)
    clipped = [x * min(1, 0.5 / np.linalg.norm(x)) for x in own]
    sent = flat(send(clip_norm=0.5))
    np.testing.assert_allclose(sent, np.mean(clipped, 0), rtol=1e-4, atol=1e-6)
    # 864 draws estimate the standard deviation to 2.4 %; it is 2 * 0.5 over 2 windows.
    drawn = flat(send(clip_norm=0.5, noise_multiplier=2.0)) - sent
    assert np.std(drawn) == pytest.approx(0.5, rel=0.12)
    again = flat(send(1, clip_norm=0.5, noise_multiplier=2.0)) - sent
    assert np.any(again != drawn)


def test_correlation_by_hand():
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert attacks.correlation(x, -2 * x + 5) == pytest.approx(-1)
    assert attacks.correlation(x, jnp.ones((2, 2))) == 0
    want = np.corrcoef(np.ravel(x), [1, 5, 2, 0])[0, 1]
    other = jnp.array([[1.0, 5.0], [2.0, 0.0]])
    np.testing.assert_allclose(attacks.correlation(x, other), want, rtol=1e-5)


def test_says_what_was_wrong():
    params, window, label = client()
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="noise_multiplier 1.0 requires clip_norm"):
        attacks.client_gradient(
            key, loss_fn, params, window[None], label[None], noise_multiplier=1.0
        )
    invert = lambda gradient, **options: attacks.invert_gradient(
        key, loss_fn, params, gradient, (TIME, CHANNELS), (CLASSES,), **options
    )
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        invert(params, steps=0)
    with pytest.raises(ValueError, match="gradient must be a tree like params"):
        invert({"first": params["first"]})
