"""Derivatives of time warping, against finite differences and where they must be 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels.warping import cases, dtw


def test_padding_is_not_read_and_has_no_gradient():
    case = cases.CASES["ragged"]
    x, y, n, m = cases.series(case, 0)

    @jax.jit
    def gradients(x, y):
        of = lambda x, y: dtw(x, y, x_lengths=n, y_lengths=m, lanes=3).sum()
        return jax.grad(of, argnums=(0, 1))(x, y)

    for gradient, lengths in zip(gradients(x, y), (n, m), strict=True):
        padding = np.arange(gradient.shape[1])[None] >= lengths[:, None]
        assert np.isfinite(gradient).all()
        assert not gradient[padding].any()
        assert (np.abs(gradient).sum(axis=2) > 0)[~padding].all()


@pytest.mark.parametrize("local_cost", ["squared_euclidean", "euclidean", "absolute"])
def test_derivatives_are_those_of_finite_differences(local_cost):
    # Drawn in float64: the best path is unique, and steps of 1e-6 do not change it.
    case = cases.BenchmarkCase(3, 5, 7, 2)
    x, y, *_ = cases.series(case, 3, np.float64)
    weights = np.array([1.0, -2.0, 0.5])
    direction = cases.series(case, 4, np.float64)[:2]
    step = 1e-6
    ahead, behind = (
        [a + sign * step * d for a, d in zip((x, y), direction, strict=True)]
        for sign in (1, -1)
    )

    def of(x, y):
        return jnp.sum(weights * dtw(x, y, local_cost=local_cost, lanes=2))

    def slope(x, y):
        """Returns the slope along ``direction``, by reverse mode."""
        pairs = zip(jax.grad(of, argnums=(0, 1))(x, y), direction, strict=True)
        return sum(jnp.vdot(gradient, d) for gradient, d in pairs)

    with jax.enable_x64(True):
        value = jax.jit(lambda x, y: (of(x, y), slope(x, y)))
        after, slope_after = value(*ahead)
        before, slope_before = value(*behind)
        here, backward = value(x, y)
        numeric = (after - before) / (2 * step)
        np.testing.assert_allclose(backward, numeric, rtol=1e-7)
        forward = jax.jit(
            lambda x, y: (
                jax.jvp(of, (x, y), direction),
                jax.jvp(slope, (x, y), direction)[1],
            )
        )
        (same, tangent), bend = forward(x, y)
        np.testing.assert_allclose(same, here, rtol=1e-12)
        np.testing.assert_allclose(tangent, numeric, rtol=1e-7)
        numeric = (slope_after - slope_before) / (2 * step)
        np.testing.assert_allclose(bend, numeric, rtol=1e-5, atol=1e-8)


def test_gradient_of_equal_series_is_zero():
    x = jnp.arange(6.0).reshape(1, 3, 2)
    for local_cost in ("squared_euclidean", "euclidean"):
        of = lambda y, name=local_cost: dtw(x, y, local_cost=name).sum()
        value, gradient = jax.jit(jax.value_and_grad(of))(x)
        assert value == 0 and not gradient.any()
