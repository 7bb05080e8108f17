"""CLUB against plain loops, hand arithmetic and the Gaussian closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels.dependence import club_bound, reference

BOUND = jax.jit(club_bound)


def rows(n=40, d=3, offset=0.0):
    random = np.random.default_rng(0)
    y = random.normal(size=(n, d)) + offset
    mean = 0.7 * y + 0.3 * random.normal(size=(n, d)) + 0.2
    return y, mean, random.normal(size=(n, d)) - 0.5


def test_agrees_with_loops_over_all_pairs():
    given = rows()
    expected = reference.club_bound(*given)
    assert abs(expected) > 0.5
    np.testing.assert_allclose(BOUND(*map(jnp.float32, given)), expected, rtol=1e-4)
    with jax.enable_x64(True):
        wide = club_bound(*map(jnp.asarray, given))
    assert wide.dtype == jnp.float64
    np.testing.assert_allclose(wide, expected, rtol=1e-12)


def test_where_y_lies_far_from_0_nothing_is_lost():
    y, mean, log_variance = rows(offset=1000.0)
    mean = mean + 300  # As 0.7 of y is 300 less.
    expected = reference.club_bound(y, mean, log_variance)
    got = BOUND(*map(jnp.float32, (y, mean, log_variance)))
    np.testing.assert_allclose(got, expected, rtol=1e-2)


def test_by_hand():
    # 0 and 3 under N(1, 1) and N(2, 1/4): scores -1, 2 and -4, 2. Own: 1/2 and 2 off
    # the top, pairs 1/2, 2, 8 and 2; the laws' normalisers cancel. -5/4 + 25/8.
    y, mean = jnp.array([[0.0], [3.0]]), jnp.array([[1.0], [2.0]])
    log_variance = jnp.log(jnp.array([[1.0], [0.25]]))
    np.testing.assert_allclose(club_bound(y, mean, log_variance), 15 / 8, rtol=1e-6)
    assert float(club_bound(y[:1], mean[:1], log_variance[:1])) == 0
    # A distribution that is the same for every row carries no information.
    same = jnp.full((2, 1), 5.0)
    np.testing.assert_allclose(club_bound(y, same, 0 * same), 0, atol=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.8])
def test_of_gaussians_it_is_r_squared_over_1_less_r_squared(correlation):
    """It exceeds the mutual information, -log(1 - r^2) / 2; two pairs add up."""
    random = np.random.default_rng(1)
    x, noise = random.normal(size=(2, 100_000, 2))
    y = correlation * x + np.sqrt(1 - correlation**2) * noise
    log_variance = np.full_like(y, np.log(1 - correlation**2))
    got = float(BOUND(*map(jnp.float32, (y, correlation * x, log_variance))))
    each = correlation**2 / (1 - correlation**2)
    assert got == pytest.approx(2 * each, rel=0.02, abs=1e-3)
    assert got >= -np.log(1 - correlation**2) - 1e-6


def test_what_x_says_can_be_moved_against_it():
    """Gradient descent on x removes its information about y."""
    y, mean, log_variance = map(jnp.float32, rows(d=1))
    slope = jax.grad(lambda mean: BOUND(y, mean, log_variance))(mean)
    # d/d mean_i = (y_i - mean y) / (n variance_i)
    want = (y - y.mean()) / np.exp(log_variance) / len(y)
    np.testing.assert_allclose(slope, want, rtol=1e-4, atol=1e-6)


def test_half_precision_is_widened():
    given = [jnp.bfloat16(array) for array in rows()]
    got = BOUND(*given)
    assert got.dtype == jnp.float32
    expected = reference.club_bound(*(np.float64(array) for array in given))
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"mean": jnp.ones((2, 2))}, ValueError, r"got shapes \(2, 1\), \(2, 2\), \(2"),
        ({"y": jnp.ones(2)}, ValueError, r"must be non-empty float\[n, d\]"),
        ({name: jnp.ones((0, 1)) for name in ("y", "mean", "log_variance")},
         ValueError, "must be non-empty"),
        ({"y": jnp.ones((2, 1), int)}, TypeError, "y must hold floats, got int32"),
    ],
)  # fmt: skip
def test_says_what_was_wrong(change, error, message):
    good = {name: jnp.ones((2, 1)) for name in ("y", "mean", "log_variance")}
    with pytest.raises(error, match=message):
        club_bound(**(good | change))
