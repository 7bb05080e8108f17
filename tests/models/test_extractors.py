"""Feature extractors against NumPy, SciPy and scikit-learn."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso

from jaxanon.models import feature_extraction

TIMES = pytest.mark.parametrize("time", [1, 2, 3, 7, 8, 10, 13])


@TIMES
@pytest.mark.parametrize("name", sorted(feature_extraction.BASES))
def test_every_basis_is_orthonormal(name, time):
    basis = feature_extraction.BASES[name](time)
    assert basis.shape == (time, time)
    np.testing.assert_allclose(basis @ basis.T, np.eye(time), atol=1e-12)
    np.testing.assert_allclose(basis[0], time**-0.5)  # The mean comes first.


@TIMES
def test_the_cosine_transform_is_scipy_s(time):
    x = np.random.default_rng(time).normal(size=(4, time))
    want = scipy.fft.dct(x, norm="ortho")
    np.testing.assert_allclose(x @ feature_extraction.cosine(time).T, want, atol=1e-12)


@TIMES
def test_a_frequency_has_the_power_that_numpy_finds(time):
    x = np.random.default_rng(time).normal(size=time)
    found = feature_extraction.fourier(time) @ x
    want = np.abs(np.fft.rfft(x)) ** 2 / time
    pairs = [found[:1] ** 2, *(found[k : k + 2] ** 2 for k in range(1, time, 2))]
    twice = np.full(len(want), 2.0)
    twice[0] = 1.0
    if time % 2 == 0:
        twice[-1] = 1.0
    np.testing.assert_allclose([pair.sum() for pair in pairs], twice * want)


def test_haar_of_an_odd_length_by_hand():
    a, b = 1 / 30**0.5, 1 / 6**0.5
    want = [
        [5**-0.5] * 5,
        [2 * a, 2 * a, 2 * a, -3 * a, -3 * a],
        [b, b, -2 * b, 0, 0],
        [0, 0, 0, 2**-0.5, -(2**-0.5)],
        [2**-0.5, -(2**-0.5), 0, 0, 0],
    ]
    np.testing.assert_allclose(feature_extraction.haar(5), want, atol=1e-12)


def test_channels_are_transformed_each_by_itself():
    windows = np.random.default_rng(0).normal(size=(3, 8, 2))
    basis = feature_extraction.repeat_for_channels(feature_extraction.cosine(8), 2)
    want = scipy.fft.dct(windows, axis=1, norm="ortho")
    found = (windows.reshape(3, -1) @ basis.T).reshape(3, 8, 2)
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_the_most_varied_rows_and_principal_components_keep_the_most():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 6)) * [3.0, 0.1, 2.0, 1.0, 0.2, 0.5]
    x = x @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    covariance = np.float32(np.cov(x.T, bias=True))
    basis = np.float32(feature_extraction.haar(6))
    rows = feature_extraction.select_most_variable(basis, covariance, 2)
    varied = (x @ basis.T).var(0)
    np.testing.assert_array_equal(rows, basis[np.argsort(-varied)[:2]])
    found = np.asarray(feature_extraction.principal(covariance, 3))
    want = PCA(3).fit(x).components_
    np.testing.assert_allclose(np.abs(np.sum(found * want, axis=1)), 1, atol=1e-4)
    kept = lambda rows: ((x @ np.asarray(rows).T) ** 2).sum()
    assert kept(found[:2]) > kept(rows)


def test_codes_are_those_of_the_lasso():
    rng = np.random.default_rng(2)
    atoms = np.float32(feature_extraction.normalize_rows(rng.normal(size=(4, 8))))
    x = np.float32(rng.normal(size=(5, 8)))
    found = feature_extraction.sparse_codes(jnp.asarray(atoms), x, 0.3, steps=300)
    # Scikit-learn divides the squares by 2 n.
    lasso = Lasso(alpha=0.3 / 8, fit_intercept=False, tol=1e-9)
    want = np.stack(
        [lasso.fit(np.float64(atoms.T), row).coef_ for row in np.float64(x)]
    )
    np.testing.assert_allclose(found, want, atol=1e-4)
    assert 0 < (want == 0).mean() < 1  # The penalty drops some atoms.
    np.testing.assert_array_equal(np.asarray(found) == 0, want == 0)


def test_few_steps_are_near():
    rng = np.random.default_rng(3)
    atoms = feature_extraction.normalize_rows(np.float32(rng.normal(size=(7, 30))))
    x = np.float32(rng.normal(size=(50, 30)))
    codes = jax.jit(functools.partial(feature_extraction.sparse_codes, penalty=0.05))
    exact = feature_extraction.sparse_codes(atoms, x, 0.05, steps=300)
    assert np.abs(codes(atoms, x) - exact).max() < 0.05 * np.abs(exact).max()
