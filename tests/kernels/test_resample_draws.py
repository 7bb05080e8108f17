"""Draws from the balanced set: exact distribution, at the cost of the draws only."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import kernels
from jaxanon.kernels.resample import cases, reference


def _histogram(rows, x):
    """Counts draws by pair (i, j), inferred from one-hot rows ``x``."""
    counts = np.zeros((len(x), len(x)))
    for row in rows:
        ends = np.flatnonzero(row)
        i = j = ends[0]
        if len(ends) == 2:
            i, j = ends
        counts[i, j] += 1
    return counts


def test_draws_have_the_distribution_of_the_balanced_set():
    # One-hot rows show the two source rows of a draw, but not their order, so (i, j)
    # and (j, i) are added up.
    counts, n, samples_per_class, k = (8, 3, 1), 14, 5, 2
    labels = np.array([0] * 8 + [1] * 3 + [2] + [0, 1], np.int32)
    mask = np.arange(n) < sum(counts)
    x = np.eye(n) * np.linspace(1.0, 2.0, n)[:, None]  # No ties among distances.
    table = kernels.balance_table(jnp.float32(x), labels, mask, 4, k)
    draw = jax.jit(kernels.draw_from_table, static_argnums=4)
    rows = draw(jax.random.key(7), jnp.float32(x), table, samples_per_class, 20_000)
    assert rows.mask.all()
    seen = _histogram(np.asarray(rows.x), x)

    def p_value(t, k_neighbors):
        p = reference.pair_probabilities(x, labels, mask, 4, t, k_neighbors)
        np.testing.assert_allclose(p.sum(), 1)
        p, both = np.triu(p + np.tril(p, -1).T), np.triu(seen + np.tril(seen, -1).T)
        if both[p == 0].any():
            return 0.0
        return stats.chisquare(both[p > 0], len(rows.x) * p[p > 0]).pvalue

    assert p_value(samples_per_class, k) > 0.01
    assert p_value(samples_per_class + 1, k) < 1e-3  # Rejects a wrong T.
    assert p_value(samples_per_class, 1) < 1e-6  # Rejects a wrong number of neighbours.


def test_draw_without_a_table_is_the_same_draw():
    x, labels, mask = cases.client(cases.CASES["ragged"], 0)
    table = kernels.balance_table(x, labels, mask, 4, 3)
    ours = kernels.draw_balanced(
        jax.random.key(5),
        x,
        labels,
        mask,
        table.neighbors,
        table.num_neighbors,
        4,
        12,
        30,
    )
    with_table = kernels.draw_from_table(jax.random.key(5), x, table, 12, 30)
    chex.assert_trees_all_equal(ours, with_table)


def test_stacked_clients_draw_what_each_draws_alone():
    case = cases.CASES["ragged"]
    x, labels, mask = map(
        jnp.stack, zip(*(cases.client(case, seed) for seed in range(3)), strict=True)
    )
    build = lambda c: kernels.balance_table(*c, 4, 3)
    tables = jax.lax.map(build, (x, labels, mask))
    cohort = jnp.array([2, 0])
    keys = lambda: jax.random.split(jax.random.key(0), (5, 2))

    def one(key, client):
        return kernels.draw_from_table(key, x, tables, 12, 8, client=client)

    drawn = jax.jit(jax.vmap(jax.vmap(one), in_axes=(0, None)))(keys(), cohort)
    for seed in (0, 4):
        for place, client in enumerate(cohort):
            table = jax.tree.map(lambda leaf, c=client: leaf[c], tables)
            alone = kernels.draw_from_table(
                keys()[seed, place], x[client], table, 12, 8
            )
            got = jax.tree.map(lambda leaf, s=seed, p=place: leaf[s, p], drawn)
            chex.assert_trees_all_close(got, alone, rtol=1e-6)


def test_drawing_from_a_stack_copies_no_client():
    # Ten clients of 4,000 x 768: a copy would be 120 MB, the 16 draws are 0.5 MB.
    shapes = jax.ShapeDtypeStruct((100, 4000, 768), jnp.float32)
    table = jax.eval_shape(
        jax.vmap(lambda x: kernels.balance_table(x, *_flat(x), 4, 5)), shapes
    )

    def cohort(keys, x, table, clients):
        one = lambda key, c: kernels.draw_from_table(key, x, table, 4000, 16, client=c)
        return jax.vmap(one)(keys, clients)

    keys = jax.random.split(jax.random.key(0), 10)
    compiled = jax.jit(cohort).lower(keys, shapes, table, jnp.arange(10)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4_000_000


def _flat(x):
    return jnp.zeros(x.shape[0], jnp.int32), jnp.ones(x.shape[0], bool)


def test_labels_out_of_range_are_never_drawn():
    x, labels = jnp.arange(4.0)[:, None], jnp.array([0, -1, 7, 0])
    table = kernels.balance_table(x, labels, jnp.ones(4, bool), 2, 3)
    rows = kernels.draw_from_table(jax.random.key(0), x, table, 1, 200)
    assert set(np.ravel(rows.x)) == {0.0, 3.0}


def test_a_client_without_rows_draws_masked_zeros():
    x, labels, mask = jnp.ones((3, 2)), jnp.zeros(3, int), jnp.zeros(3, bool)
    table = kernels.balance_table(x, labels, mask, 2, 1)
    for rows in (
        kernels.draw_from_table(jax.random.key(0), x, table, 4, 5),
        kernels.balance(jax.random.key(0), x, labels, mask, 2, 4),
    ):
        assert not rows.mask.any() and not rows.x.any()


def test_says_how_many_draws_are_wanted():
    x, labels, mask = cases.client(cases.CASES["no_padding"], 0)
    table = kernels.balance_table(x, labels, mask, 2, 5)
    with pytest.raises(ValueError, match="num must be >= 1, got 0"):
        kernels.smote(jax.random.key(0), x, table, 0)
    with pytest.raises(ValueError, match="num must be >= 1, got 0"):
        kernels.draw_from_table(jax.random.key(0), x, table, 4, 0)
    for samples_per_class in (0, -4.0, np.int64(0)):
        with pytest.raises(ValueError, match="samples_per_class must be > 0, got"):
            kernels.draw_from_table(jax.random.key(0), x, table, samples_per_class, 2)
