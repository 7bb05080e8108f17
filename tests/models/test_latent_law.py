"""The distribution of one vector given another: its likelihood and its bound."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import kernels
from jaxanon.models.guided_diffusion import MAX_LOG_VARIANCE, LatentLaw, gaussian_nll


def test_surprise_is_the_negative_log_likelihood():
    stats = pytest.importorskip("scipy.stats")
    y, mean, log_variance = np.random.default_rng(0).normal(size=(3, 6, 2))
    own = stats.norm.logpdf(y, mean, np.exp(log_variance / 2)).sum(axis=1)
    got = gaussian_nll(*map(jnp.float32, (y, mean, log_variance)))
    np.testing.assert_allclose(got + np.log(2 * np.pi), -own.mean(), rtol=1e-5)


def test_a_law_that_was_learned_bounds_gaussians_by_the_closed_form():
    """A correlation of 0.8 gives r^2 / (1 - r^2), all of it in the first number."""
    r, random = 0.8, np.random.default_rng(0)
    x, noise = random.normal(size=(2, 4000, 2))
    y = np.stack([r * x[:, 0] + (1 - r**2) ** 0.5 * noise[:, 0], noise[:, 1]], axis=1)
    x, y = map(jnp.float32, (x, y))
    net, adam = LatentLaw(2, hidden=(16,)), optax.adam(1e-2)
    params = net.init(jax.random.key(0), x)

    @jax.jit
    def learn(params):
        loss_fn = lambda params: gaussian_nll(y, *net.apply(params, x))

        def step(carry, _):
            params, state = carry
            updates, state = adam.update(jax.grad(loss_fn)(params), state)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, adam.init(params)), length=300)[0][0]

    law = net.apply(learn(params), x)
    want = r**2 / (1 - r**2)
    assert float(kernels.club_bound(y, *law)) == pytest.approx(want, rel=0.1)
    # With another window's numbers, the same distribution carries no information.
    assert abs(float(kernels.club_bound(jnp.roll(y, 1, axis=0), *law))) < 0.2


def test_deviations_stay_within_their_bounds():
    net, x = LatentLaw(2), 1e4 * jnp.ones((1, 3))
    params = net.init(jax.random.key(0), x)
    _, log_variance = net.apply(params, x)
    assert (
        np.all(np.abs(log_variance) <= MAX_LOG_VARIANCE)
        and np.abs(log_variance).max() > 2.9
    )
