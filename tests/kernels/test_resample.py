"""Resampling against plain loops, imbalanced-learn and the exact distribution."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imblearn.over_sampling import SMOTE
from scipy import stats

from jaxanon import kernels
from jaxanon.kernels.resample import cases, reference

pytestmark = pytest.mark.slow

SMALL = pytest.mark.parametrize("name", ["ragged", "no_padding"])
# One program each; separate operations would need dozens of compilations.
NEIGHBOURS = jax.jit(
    kernels.same_class_neighbors, static_argnums=3, static_argnames="block"
)
TABLE = jax.jit(kernels.balance_table, static_argnums=(3, 4))
SMOTED = jax.jit(kernels.smote, static_argnums=3)
DRAWN = jax.jit(kernels.draw_from_table, static_argnums=(3, 4))
BALANCED = jax.jit(kernels.balance, static_argnums=(4, 5, 6))


@functools.cache
def _client(name):
    case = cases.CASES[name]
    x, labels, mask = cases.client(case, 0)
    table = TABLE(x, labels, mask, len(case.counts), case.k_neighbors)
    return case, jnp.asarray(x), jnp.asarray(labels), jnp.asarray(mask), table


def _on_segment(row, x, neighbours, atol=1e-5):
    """Returns (i, j, u) of every row and neighbour between which ``row`` lies."""
    hits = []
    for i, peers in enumerate(neighbours):
        for j in [i] if not peers else peers:
            along = x[j] - x[i]
            length = along @ along
            u = (row - x[i]) @ along / length if length else 0.0
            if -1e-6 <= u <= 1 + 1e-6 and np.allclose(row, x[i] + u * along, atol=atol):
                hits.append((i, j, u))
    return hits


@SMALL
def test_neighbours_are_those_of_the_loops(name):
    case, x, labels, mask, table = _client(name)
    expected = reference.same_class_neighbors(
        *map(np.asarray, (x, labels, mask)), case.k_neighbors
    )
    for row, peers in enumerate(expected):
        assert table.num_neighbors[row] == len(peers)
        assert list(table.neighbors[row][: len(peers)]) == peers
        assert (table.neighbors[row][len(peers) :] == row).all()


def test_neighbours_are_those_of_imbalanced_learn():
    case, x, labels, _mask, table = _client("no_padding")
    sampler = SMOTE(k_neighbors=case.k_neighbors, random_state=0)
    for label in range(2):
        rows = np.flatnonzero(labels == label)
        sampler.fit_resample(x, labels)
        found = sampler.nn_k_.fit(x[rows]).kneighbors(x[rows], return_distance=False)
        np.testing.assert_array_equal(rows[found[:, 1:]], table.neighbors[rows])


def test_neighbours_by_hand_far_from_the_origin():
    # Around 1e4 the squares agree to 8 digits; only centring separates 1 from 1.5.
    x = np.float32([[0.0], [1.0], [2.5], [4.5]]) + np.float32(1e4)
    found, _ = NEIGHBOURS(x, np.zeros(4, int), np.ones(4, bool), 2, block=3)
    np.testing.assert_array_equal(found, [[1, 2], [0, 2], [1, 3], [2, 1]])


def test_neighbours_survive_half_precision():
    # 300^2 overflows float16; distances must be computed in float32.
    x = np.float16([[300.0], [0.0], [-290.0]])
    found, _ = NEIGHBOURS(x, np.zeros(3, int), np.ones(3, bool), 1)
    np.testing.assert_array_equal(found, [[1], [2], [1]])


@SMALL
def test_smote_rows_lie_between_a_row_and_its_neighbour(name):
    case, x, labels, mask, table = _client(name)
    made = SMOTED(jax.random.key(1), x, table, 20)
    x, labels, mask = map(np.asarray, (x, labels, mask))
    neighbours = reference.same_class_neighbors(x, labels, mask, case.k_neighbors)
    for row, label, real in zip(*map(np.asarray, made), strict=True):
        assert real == (case.counts[label] > 0)
        if real:
            hits = _on_segment(row, x, neighbours)
            assert any(labels[i] == label and mask[i] for i, _, _ in hits)
        else:
            assert not row.any()


def _steps(u_scale=1.0):
    """Returns where 4,000 SMOTE rows lie between the two points 0 and 1."""
    x, labels = np.float32([[0.0], [1.0]]), np.zeros(2, np.int32)
    table = TABLE(x, labels, np.ones(2, bool), 1, 5)
    made = SMOTED(jax.random.key(2), x, table, 4000)
    # From row 1 towards row 0 the step is 1 - x, uniform as well.
    return u_scale * np.ravel(made.x)


def test_step_is_uniform_and_two_thirds_of_it_is_rejected():
    assert stats.kstest(_steps(), "uniform").pvalue > 0.01
    assert stats.kstest(_steps(2 / 3), "uniform").pvalue < 1e-9


def test_one_step_per_row_not_per_number():
    x = np.float32([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    table = TABLE(x, np.zeros(2, int), np.ones(2, bool), 1, 1)
    made = np.asarray(SMOTED(jax.random.key(0), x, table, 50).x)
    np.testing.assert_allclose(made[:, 1], 2 * made[:, 0], rtol=1e-5)
    np.testing.assert_allclose(made[:, 2], 4 * made[:, 0], rtol=1e-5)


@SMALL
def test_balance_counts_keeps_and_cuts(name):
    case, x, labels, mask, _ = _client(name)
    num_classes, samples_per_class = len(case.counts), case.samples_per_class
    out = BALANCED(
        jax.random.key(3),
        x,
        labels,
        mask,
        num_classes,
        samples_per_class,
        case.k_neighbors,
    )
    x, labels, mask = map(np.asarray, (x, labels, mask))
    out = jax.tree.map(np.asarray, out)
    for c, count in enumerate(case.counts):
        here = slice(c * samples_per_class, (c + 1) * samples_per_class)
        assert (out.labels[here] == c).all()
        assert (out.mask[here] == (count > 0)).all()
        members = x[mask & (labels == c)]
        rows = out.x[here]
        kept = {tuple(row) for row in members} & {tuple(row) for row in rows}
        # Under-sampling is without replacement, over-sampling keeps every row.
        assert len(kept) == min(count, samples_per_class)


def test_balance_counts_equal_imbalanced_learn():
    case, x, labels, mask, _ = _client("no_padding")
    _, theirs = SMOTE(
        sampling_strategy={0: 16, 1: 16}, k_neighbors=5, random_state=0
    ).fit_resample(x, labels)
    ours = BALANCED(jax.random.key(0), x, labels, mask, 2, case.samples_per_class)
    np.testing.assert_array_equal(np.bincount(ours.labels), np.bincount(theirs))
    _, loops = reference.balance(
        np.random.default_rng(0), *map(np.asarray, (x, labels, mask)), 2, 16, 5
    )
    np.testing.assert_array_equal(ours.labels, loops)


def test_under_sample_takes_every_row_equally_often():
    labels, mask = jnp.array([0, 0, 0, 0, 1, 0]), jnp.arange(6) < 5
    draw = jax.vmap(lambda key: kernels.under_sample(key, labels, mask, 2, 2))
    drawn = jax.jit(draw)(jax.random.split(jax.random.key(0), 2000))
    rows, real = map(np.asarray, drawn)
    assert real[:, :3].all() and not real[:, 3].any()
    assert (rows[:, 0] != rows[:, 1]).all() and (rows[:, 2] == 4).all()
    seen = np.bincount(np.ravel(rows[:, :2]), minlength=6)
    assert seen[4] == seen[5] == 0
    # The marginal of the first index must be uniform, too.
    for drawn in (rows[:, 0], rows[:, 1]):
        assert stats.chisquare(np.bincount(drawn, minlength=4)[:4]).pvalue > 0.01


def _flat(x):
    return jnp.zeros(x.shape[0], jnp.int32), jnp.ones(x.shape[0], bool)


def test_neighbours_of_a_large_client_are_found_in_blocks():
    # All distances of 4,000 rows at once would be over 64 MB.
    x = jax.ShapeDtypeStruct((4000, 768), jnp.float32)
    run = jax.jit(lambda x: kernels.same_class_neighbors(x, *_flat(x), 5))
    temporary = run.lower(x).compile().memory_analysis().temp_size_in_bytes
    assert temporary < 48_000_000  # The centred rows have 12 MB.


def test_windows_keep_their_shape():
    windows = jax.random.normal(jax.random.key(0), (6, 4, 2))
    labels, mask = np.array([0, 0, 0, 1, 1, 1]), np.ones(6, bool)
    rows = BALANCED(jax.random.key(1), windows, labels, mask, 2, 4)
    flat = BALANCED(jax.random.key(1), windows.reshape(6, 8), labels, mask, 2, 4)
    np.testing.assert_array_equal(rows.x.reshape(8, 8), flat.x)


def test_padding_with_nans_reaches_nothing():
    _case, x, labels, mask, _ = _client("ragged")
    x = np.where(mask[:, None], x, np.float32(np.nan))
    table = TABLE(x, labels, mask, 4, 3)
    rows = DRAWN(jax.random.key(0), x, table, 30, 300)
    made = BALANCED(jax.random.key(0), x, labels, mask, 4, 30, 3)
    assert np.isfinite(rows.x).all() and np.isfinite(made.x).all()


def test_float64_draws_the_same_rows_and_compiles_once():
    _case, x, labels, mask, _ = _client("ragged")
    run = lambda x, seed: kernels.balance(
        jax.random.key(seed), x, labels, mask, 4, 12, 3
    )
    jitted = jax.jit(chex.assert_max_traces(run, n=1))
    narrow, _, _ = [jitted(x, seed) for seed in range(3)]
    with jax.enable_x64(True):
        wide = jax.jit(run)(np.asarray(x, np.float64), 0)
        assert wide.x.dtype == jnp.float64
        np.testing.assert_allclose(wide.x, narrow.x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": jnp.zeros(3, int)}, r"must have the same length.*\(4, 2\), \(3,\)"),
        ({"k_neighbors": 0}, "k_neighbors must be >= 1, got 0"),
        ({"num_classes": 0}, "num_classes must be >= 1, got 0"),
        ({"samples_per_class": -2}, "samples_per_class must be >= 1, got -2"),
    ],
)
def test_says_what_was_wrong(change, message):
    good = dict(
        windows=jnp.ones((4, 2)),
        labels=jnp.zeros(4, int),
        mask=jnp.ones(4, bool),
        num_classes=2,
        samples_per_class=3,
    )
    with pytest.raises(ValueError, match=message):
        kernels.balance(jax.random.key(0), **(good | change))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e20])
def test_a_row_beyond_measure_leads_nobody_into_another_class(bad):
    # Class c lies about 100 c. The square of 1e20 overflows, so its distances are
    # invalid.
    labels, mask = np.arange(12) % 3, np.ones(12, bool)
    x = 100.0 * labels[:, None] + jax.random.normal(jax.random.key(0), (12, 2))
    found, count = NEIGHBOURS(x.at[5, 1].set(bad), labels, mask, 3)
    np.testing.assert_array_equal(labels[found], np.repeat(labels[:, None], 3, axis=1))
    assert count.tolist() == [3] * 12
    # The others' neighbours are the same without that row, which comes last.
    others = np.arange(12) != 5
    alone, _ = NEIGHBOURS(x, labels, others, 2)
    np.testing.assert_array_equal(np.asarray(found)[others, :2], alone[others])


def test_whole_numbers_are_refused_rather_than_cut_off():
    # A row between 1 and 2 is not an integer; rounding would return 1.
    x, labels, mask = jnp.array([[1], [2]]), jnp.zeros(2, int), jnp.ones(2, bool)
    table = kernels.balance_table(x.astype(float), labels, mask, 1, 1)
    for call in (
        lambda: kernels.balance_table(x, labels, mask, 1, 1),
        lambda: kernels.smote(jax.random.key(0), x, table, 1),
        lambda: kernels.draw_from_table(jax.random.key(0), x, table, 1, 1),
        lambda: kernels.balance(jax.random.key(0), x, labels, mask, 1, 2),
    ):
        with pytest.raises(TypeError, match="(x|windows) must hold floats, got int32;"):
            call()
    lists = kernels.same_class_neighbors([[0.0], [1.0]], [0, 0], [True, True], 1)
    assert lists[0].ravel().tolist() == [1, 0]


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    x, labels, mask = jnp.array([[4.0], [4.0]]), jnp.zeros(2, int), jnp.ones(2, bool)
    one, two = np.int64(1), np.int32(2)
    rows = kernels.balance(jax.random.key(0), x, labels, mask, one, two, one)
    assert rows.x.tolist() == [[4.0], [4.0]]
    for name in ("num_classes", "samples_per_class", "k_neighbors"):
        good = {"num_classes": 1, "samples_per_class": 2, "k_neighbors": 1}
        run = lambda value, name=name, good=good: kernels.balance(
            jax.random.key(0), x, labels, mask, **(good | {name: value})
        )
        with pytest.raises(
            TypeError, match=f"{name} must be known when .* static_argn"
        ):
            jax.jit(run)(1)
