"""Ross's estimator against loops, scikit-learn, hand arithmetic and closed forms."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon.kernels.dependence import cases, mutual_information, reference

SMALL = pytest.mark.parametrize("name", ["one_number", "ragged", "vectors"])


@functools.cache
def _estimator(num_neighbors=3, block=256):
    return jax.jit(
        functools.partial(mutual_information, num_neighbors=num_neighbors, block=block)
    )


@SMALL
def test_agrees_with_reference(name):
    case = cases.CASES[name]
    x, labels, mask = cases.sample(case, 0)
    got = _estimator(case.num_neighbors, 17)(x, labels, mask)
    expected = reference.mutual_information(
        x[mask].astype(float), labels[mask], case.num_neighbors
    )
    assert got.dtype == jnp.float32 and expected > 0.05
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.slow
def test_agrees_with_scikit_learn():
    # Its noise is 1e-10 of the scale; drawn numbers are further apart than that.
    selection = pytest.importorskip("sklearn.feature_selection")
    columns = np.random.default_rng(0).normal(size=(120, 3))
    labels = np.random.default_rng(1).integers(0, 4, 120)
    columns = columns + labels[:, None] * np.array([0.0, 0.7, 2.0])
    theirs = selection.mutual_info_classif(
        columns, labels, discrete_features=False, random_state=0
    )
    with jax.enable_x64(True):
        each = jax.jit(jax.vmap(mutual_information, in_axes=(1, None)))
        wide = each(columns, labels)
        assert wide.dtype == jnp.float64
        np.testing.assert_allclose(wide, theirs, atol=1e-9)
        narrow = each(columns.astype(np.float32), labels)
    np.testing.assert_allclose(narrow, theirs, atol=1e-5)
    assert theirs[2] > theirs[1] > theirs[0]


@pytest.mark.slow
def test_by_hand():
    # 0 and 1 have each other at distance 1, with only themselves nearer. So has 9,
    # whose peer is at distance 6. But 3, with the same peer, has 0, 1 and itself.
    x = jnp.array([0.0, 1.0, 3.0, 9.0])
    labels = jnp.array([0, 0, 1, 1])
    psi = reference.digamma
    expected = psi(4) + psi(1) - psi(2) - (3 * psi(1) + psi(3)) / 4
    got = mutual_information(x, labels, num_neighbors=1)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_two_distant_classes_tell_one_bit():
    # Every neighbourhood contains only its class: m = k, and psi(n) - psi(n / 2) is
    # within 1 / n of log 2.
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    got = _estimator()(rng.normal(size=400) + 100 * labels, labels)
    np.testing.assert_allclose(got, math.log(2), atol=1 / 400)


def test_uniform_classes_that_overlap_by_half():
    # On [0, 1] and [1/2, 3/2] half of the rows determine the label: half a bit. A
    # factor of 2/3 or 3/2 would be off by 0.12; the estimate varies by about 0.02.
    labels = np.arange(1200) % 2
    x = np.random.default_rng(2).uniform(size=1200) + 0.5 * labels
    got = _estimator()(x, labels)
    np.testing.assert_allclose(got, math.log(2) / 2, atol=0.06)


def test_labels_drawn_apart_from_the_rows_tell_nothing():
    rng = np.random.default_rng(3)
    got = _estimator()(rng.normal(size=1200), rng.integers(0, 2, 1200))
    assert 0 <= got < 0.06


@pytest.mark.slow
def test_nothing_to_compare_is_zero_and_padding_changes_nothing():
    estimate = _estimator()
    x, labels = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 2])
    assert estimate(x, labels, np.ones(3, bool)) == 0  # No class has two rows.
    assert estimate(x, labels, np.zeros(3, bool)) == 0
    x, labels, mask = cases.sample(cases.CASES["ragged"], 1)
    alone = estimate(x[mask], labels[mask])
    np.testing.assert_allclose(estimate(x, labels, mask), alone, atol=1e-6)
    other = np.where(mask, labels, 2_000_000_000)
    assert estimate(x, other, mask) == estimate(x, labels, mask)


def test_padding_with_the_largest_label_is_not_counted():
    # The largest integer marks padding internally; a real label of that value must
    # survive.
    largest = np.iinfo(np.int32).max
    x = np.array([0.0, 1.0, 10.0, 11.0, 50.0, 51.0])
    labels = np.array([0, 0, largest, largest, largest, largest])
    mask = np.arange(6) < 4
    np.testing.assert_allclose(_estimator()(x, labels, mask), 1 / 2 + 1 / 3, atol=1e-6)


def test_rows_equally_far_may_come_in_any_order():
    # Six equal rows, three of a class: the second of its two peers is expected at place
    # 2 * 6 / 3 of the six, so psi(6) + psi(2) - psi(3) - psi(4), which is below 0.
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert _estimator(2)(np.zeros(6), labels) == 0
    # The label itself, as a number: psi(6) - psi(3) = 1/3 + 1/4 + 1/5.
    for x in (labels, np.stack([labels, labels], axis=1)):
        got = _estimator(2)(x.astype(float), labels)
        np.testing.assert_allclose(got, 1 / 3 + 1 / 4 + 1 / 5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1.0, 0.1, 1 / 16])
def test_rounded_numbers_tell_what_scikit_learn_finds_behind_its_noise(step):
    selection = pytest.importorskip("sklearn.feature_selection")
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 600)
    x = step * np.round((rng.normal(size=600) + 2 * labels) / step)
    x = x.astype(np.float32)
    line = _estimator()(x, labels)
    plane = _estimator()(np.stack([x, x], axis=1), labels)
    loops = reference.mutual_information(x[:, None].astype(float), labels, 3)
    theirs = selection.mutual_info_classif(
        x[:, None].astype(float), labels, discrete_features=False, random_state=0
    )
    np.testing.assert_allclose([line, plane], loops, atol=2e-3)
    # Its noise selects one order of the ties; ours is the mean of all orders.
    np.testing.assert_allclose(line, theirs[0], atol=0.05)
    assert line > 0.25


@pytest.mark.parametrize("scale", [1e-22, 1e-3, 1e20, 1e30])
def test_the_unit_changes_nothing(scale):
    x, labels, mask = cases.sample(cases.CASES["vectors"], 3)
    power = np.float32(2.0 ** round(math.log2(scale)))
    estimate = _estimator(4)
    np.testing.assert_allclose(
        estimate(power * x, labels, mask), estimate(x, labels, mask), atol=1e-6
    )


@settings(deadline=None, max_examples=15, derandomize=True)
@given(st.integers(0, 2**31), st.permutations(range(3)), st.floats(0.01, 100))
def test_order_names_and_units_change_nothing(seed, names, scale):
    x, labels, mask = cases.sample(cases.CASES["one_number"], seed % 1000)
    shuffle = np.random.default_rng(seed).permutation(len(x))
    other = np.array(names)[labels] * 7 - 3
    estimate = _estimator()
    # Exact, so that no tie is created or broken.
    scale = 2.0 ** round(math.log2(scale))
    got = estimate(scale * x[shuffle], other[shuffle], mask[shuffle])
    np.testing.assert_allclose(got, estimate(x, labels, mask), atol=2e-6)


@pytest.mark.slow
def test_a_column_beside_zeros_is_the_column():
    # Sorted along the line or with all distances in the plane, the estimate is equal.
    x, labels, mask = cases.sample(cases.CASES["ragged"], 2)
    plane = np.concatenate([x, np.zeros_like(x)], axis=1)
    line, plane = _estimator(5)(x, labels, mask), _estimator(5)(plane, labels, mask)
    np.testing.assert_allclose(line, plane, atol=1e-6)


def test_half_precision_is_widened():
    # 300^2 overflows float16; neither rounds anything here.
    x = np.array([[0.0, 0.0], [300.0, 0.0], [0.0, 1000.0], [310.0, 1000.0]])
    labels = np.array([0, 0, 1, 1])
    wide = _estimator()(x.astype(np.float32), labels)
    for dtype in (jnp.float16, jnp.bfloat16):
        got = _estimator()(jnp.asarray(x, dtype), labels)
        assert got.dtype == jnp.float32 and got == wide > 0


def test_not_a_number_is_told():
    x = np.array([0.0, np.nan, 2.0, 3.0])
    labels = np.array([0, 0, 1, 1])
    assert np.isnan(_estimator()(x, labels))


def test_gradient_is_zero_and_it_compiles_once(traced_once):
    value_and_grad = jax.jit(jax.value_and_grad(traced_once(mutual_information)))
    for seed in range(2):
        x, labels, mask = cases.sample(cases.CASES["one_number"], seed)
        value, gradient = value_and_grad(x, labels, mask)
        assert value > 0 and not gradient.any()


@pytest.mark.slow
def test_clients_side_by_side_and_over_a_mesh(over_a_mesh):
    samples = [cases.sample(cases.CASES["ragged"], seed) for seed in range(2)]
    x, labels, mask = map(np.stack, zip(*samples, strict=True))
    sharded = over_a_mesh(jax.vmap(mutual_information))
    alone = [_estimator()(*one) for one in samples]
    np.testing.assert_allclose(sharded(x, labels, mask), alone, atol=1e-6)


def test_memory_is_bounded_by_the_block():
    # All distances of 4,096 rows at once would be 67 MB.
    x = jax.ShapeDtypeStruct((4096, 2), jnp.float32)
    labels = jax.ShapeDtypeStruct((4096,), jnp.int32)
    lowered = jax.jit(functools.partial(mutual_information, block=64)).lower(x, labels)
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 16_000_000


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"labels": jnp.zeros(3, int)}, ValueError, r"got shapes \(4, 2\), \(3,\)"),
        ({"x": jnp.zeros((4, 2, 2))}, ValueError, r"x must be non-empty float\[n\] or"),
        ({"x": jnp.zeros((4, 0))}, ValueError, "must be non-empty"),
        ({"x": jnp.zeros((4, 2), int)}, TypeError, "x must hold floats, got int32"),
        ({"labels": jnp.zeros(4)}, TypeError, "labels must be integers"),
        ({"num_neighbors": 0}, ValueError, "num_neighbors must be >= 1, got 0"),
        ({"block": -1}, ValueError, "block must be >= 1, got -1"),
    ],
)
def test_says_what_was_wrong(change, error, message):
    good = {"x": jnp.zeros((4, 2)), "labels": jnp.zeros(4, int)}
    with pytest.raises(error, match=message):
        mutual_information(**(good | change))
