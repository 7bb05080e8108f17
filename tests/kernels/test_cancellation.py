"""Distances between rows far from 0, against the same rows in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxanon import kernels, metrics
from jaxanon.federated.clustering import clusterfl, grouping

N, WIDTH, K = 40, 6, 3
some = settings(max_examples=25, deadline=None)
offsets = st.sampled_from([0.0, 1e3, -3e4, 1e6])
seeds = st.integers(0, 2**32 - 1)


def rows(seed, offset, outlier=0.0, gap=0.0):
    """Returns float32 rows of spread 1 around an offset, in two groups, and one far."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, WIDTH)) + offset + gap * rng.integers(0, 2, (N, 1))
    x[0] += outlier
    return np.float32(x)


def apart(x):
    x = np.asarray(x, np.float64)
    return np.square(x[:, None] - x[None]).sum(-1)


find_neighbors = jax.jit(kernels.same_class_neighbors, static_argnums=3)


@some
@given(seeds, offsets, st.sampled_from([0.0, 1e4, 1e6]), st.sampled_from([0.0, 1e3]))
@example(0, 0.0, 1e6, 0.0).via("an outlier moves the mean")
@example(0, 0.0, 0.0, 1e5).via("two groups, of which no centre is near both")
def test_neighbours_are_the_nearest(seed, offset, outlier, gap):
    x = rows(seed, offset, outlier, gap)
    labels = (np.arange(N) < 4).astype(int)
    found, _ = find_neighbors(x, labels, np.ones(N, bool), K)
    distances = apart(x)
    peers = (labels[:, None] == labels) & ~np.eye(N, dtype=bool)
    nearest = np.sort(np.where(peers, distances, np.inf), axis=1)[:, :K]
    assert np.take_along_axis(peers, np.asarray(found), 1).all()
    got = np.take_along_axis(distances, np.asarray(found), 1)
    np.testing.assert_allclose(got, nearest, rtol=2e-6)


def test_neighbours_of_many_clients_at_once_are_the_nearest():
    """Clients that need the second search beside clients that do not."""
    x = np.stack([rows(0, 0.0), rows(1, 0.0, gap=1e5), rows(2, 1e6, 1e6)])
    labels, mask = np.zeros((3, N), int), np.ones((3, N), bool)
    find = jax.vmap(lambda *own: kernels.same_class_neighbors(*own, K))
    found = np.asarray(jax.jit(find)(x, labels, mask)[0])
    for own, places in zip(x, found, strict=True):
        distances = apart(own) + np.diag([np.inf] * N)
        got = np.take_along_axis(distances, places, 1)
        np.testing.assert_allclose(got, np.sort(distances, 1)[:, :K], rtol=2e-6)


squared_distances = jax.jit(kernels.squared_distances)


@some
@given(seeds, offsets, st.sampled_from([0.0, 1e4, 1e6]), st.sampled_from([0.0, 1e4]))
def test_clients_distances_are_those_of_their_differences(seed, offset, outlier, gap):
    x = rows(seed, offset, outlier, gap)
    got = squared_distances({"a": x[:, :2], "b": x[:, 2:]})
    np.testing.assert_allclose(got, apart(x), rtol=3e-5)


def test_distances_have_gradients():
    x = jnp.asarray(rows(0, 0.0, gap=1e3)[:4])
    total = lambda x: jnp.sum(kernels.squared_distances(x))
    want = 4 * (4 * x - jnp.sum(x, axis=0, keepdims=True))
    np.testing.assert_allclose(jax.grad(total)(x), want, rtol=1e-4, atol=0.1)


@some
@given(seeds, offsets)
def test_divergences_of_alike_clients(seed, offset):
    """Gaussians of standard deviation 1, whose means differ by about 1."""
    x = rows(seed, offset)
    got = clusterfl.divergences(x[:, :, None], 1.0, numbers=True)
    np.testing.assert_allclose(got, apart(x) / (2 * WIDTH), rtol=1e-5)


grouped = jax.jit(
    lambda x, present: grouping.k_means(
        grouping.inner_products(grouping.centre(x, present)), present, 2
    )
)


@some
@given(seeds, offsets)
def test_k_means_finds_groups_far_from_zero(seed, offset):
    group = np.arange(N) // 7 % 2
    x = rows(seed, offset) + 20 * group[:, None].astype(np.float32)
    found = np.asarray(grouped(x, np.ones(N, bool)))
    np.testing.assert_array_equal(found != found[0], group.astype(bool))


@some
@given(seeds, st.sampled_from([1e6, 1e8]), st.sampled_from([0.0, 1e9]))
def test_nearest_training_windows_are_the_nearest(seed, offset, outlier):
    rng = np.random.default_rng(seed)
    training, windows = rng.normal(size=(2, 30, 4, 2)) + offset
    training[0] += outlier
    exact = np.square(windows[:, None] - training[None]).mean((2, 3)).min(1)
    got = metrics.nearest_distances(windows, training)
    np.testing.assert_allclose(got, np.sqrt(exact), rtol=1e-9)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_equal_rows_are_neighbours_in_order(kind):
    """More equal rows than candidates: the lowest indices come first."""
    x = np.full((N, WIDTH), 7, kind)
    found, _ = find_neighbors(x, np.zeros(N, int), np.ones(N, bool), K)
    np.testing.assert_array_equal(found[-1], np.arange(K))
    np.testing.assert_array_equal(found[0], 1 + np.arange(K))
