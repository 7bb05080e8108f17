"""Cohorts are drawn without replacement, held as long as asked, and never empty."""

import collections
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import federated
from jaxanon.federated.engine import cohort


def _draw(rounds, num_clients=6, size=2, rounds_per_cohort=1):
    key = jax.random.key(0)
    draw = lambda t: federated.sample_cohort(
        key, t, num_clients, size, rounds_per_cohort=rounds_per_cohort
    )
    return np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(rounds)))


def test_cohorts_are_distinct_and_every_pair_is_as_likely():
    cohorts = _draw(3000)
    assert (cohorts[:, 0] != cohorts[:, 1]).all()
    pairs = collections.Counter(tuple(sorted(pair)) for pair in cohorts.tolist())
    assert len(pairs) == 15
    assert stats.chisquare(list(pairs.values())).pvalue > 0.01


def test_a_cohort_stays_together_for_its_rounds():
    cohorts = _draw(12, rounds_per_cohort=4)
    for epoch in range(3):
        assert (cohorts[4 * epoch : 4 * epoch + 4] == cohorts[4 * epoch]).all()
    # The cohort equals the one that its first round would draw.
    np.testing.assert_array_equal(cohorts[::4], _draw(12)[::4])
    assert len({tuple(row) for row in cohorts}) > 1


def test_stack_pads_with_zeros_at_the_end():
    clients = [{"x": np.ones((2, 3))}, {"x": np.full((1, 3), 2.0)}]
    stacked = federated.stack(clients)
    np.testing.assert_array_equal(stacked.mask, [[True, True], [True, False]])
    np.testing.assert_array_equal(stacked.rows["x"][1], [[2, 2, 2], [0, 0, 0]])


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([np.ones((2, 1)), np.ones((0, 1))], r"got none for clients \[1\] of 2"),
        ([], "every client must have at least one row.* of 0"),
        (
            [{"x": np.ones(2), "y": np.ones(3)}],
            r"arrays of client 0 must have the same number of rows, got \[2, 3\]",
        ),
    ],
)
def test_stack_refuses(clients, message):
    with pytest.raises(ValueError, match=message):
        federated.stack(clients)


def test_population_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"mask must be bool\[clients, n\].*\(3,\)"):
        federated.population(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match=r"rows\['x'\].*\(2, 3\), got shape \(2, 4\)"):
        federated.population({"x": np.ones((2, 4))}, np.ones((2, 3)))


@pytest.mark.parametrize("size", [0, 4])
def test_sample_refuses_a_cohort_that_cannot_be(size):
    message = rf"cohort_size must be in \[1, 3\], the number of clients, got {size}"
    with pytest.raises(ValueError, match=message):
        federated.sample_cohort(jax.random.key(0), 0, 3, size)
    with pytest.raises(ValueError, match="rounds_per_cohort must be >= 1, got 0"):
        federated.sample_cohort(jax.random.key(0), 0, 3, 2, rounds_per_cohort=0)


@pytest.mark.parametrize("wrong", ["num_clients", "size", "rounds_per_cohort"])
def test_sample_refuses_parts_of_clients_and_rounds(wrong):
    named = {"num_clients": 3, "size": 2, "rounds_per_cohort": 1} | {wrong: 1.5}
    told = {"size": "cohort_size"}.get(wrong, wrong)
    with pytest.raises(TypeError, match=f"{told} must be a Python int, got 1.5"):
        federated.sample_cohort(jax.random.key(0), 0, **named)


def test_a_list_of_clients_is_refused():
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    algorithm = federated.fedavg(
        lambda key: jnp.zeros(()), square, steps=federated.Steps(num_steps=1)
    )
    clients = [jnp.ones(3), jnp.ones(4)]
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    with pytest.raises(TypeError, match=r"a list of 2; stack .*federated.stack"):
        federated.simulate(algorithm, jax.random.key(1), state, clients, 1)


@pytest.mark.parametrize("num", [1, 2, 3, 5, 16, 17, 64, 1000])
def test_a_keyed_permutation_has_every_entry_once(num):
    places = jnp.arange(num, dtype=jnp.int32)
    permuted = jax.jit(federated.keyed_permutation, static_argnums=2)
    found = [permuted(jax.random.key(seed), places, num).tolist() for seed in (0, 1)]
    assert [sorted(each) for each in found] == [list(range(num))] * 2
    if num > 5:
        assert found[0] != found[1] and found[0] != list(range(num))
    # Single places are those of the whole permutation.
    one = permuted(jax.random.key(0), places[-1:], num)
    assert one.tolist() == found[0][-1:]


@pytest.fixture(scope="module")
def entries():
    """The first two entries of 20,000 permutations of 5,000."""
    keys = jax.random.split(jax.random.key(2), 20_000)
    first = lambda key: federated.keyed_permutation(key, jnp.arange(2), 5000)
    return np.asarray(jax.jit(jax.vmap(first))(keys))


def _p_value(values, num, bins):
    """Returns how likely uniform values on ``range(num)`` differ as much."""
    counts = np.bincount(values * bins // num, minlength=bins)
    return stats.chisquare(counts).pvalue


def test_entries_of_a_keyed_permutation_are_uniform(entries):
    """Also their differences, which distinguish two dependent entries."""
    assert (entries[:, 0] != entries[:, 1]).all()
    for values in (*entries.T, (entries[:, 0] - entries[:, 1]) % 5000):
        assert _p_value(values, 5000, 40) > 1e-3
    table = np.histogram2d(*entries.T, bins=5, range=[(0, 5000)] * 2)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-3
    # Without cycle walking: 14 bits modulo 5,000 prefer small entries.
    folded = np.random.default_rng(0).integers(0, 2**14, 20_000) % 5000
    assert _p_value(folded, 5000, 40) < 1e-6


def test_small_permutations_are_all_as_likely():
    keys = jax.random.split(jax.random.key(3), 12_000)
    places = jnp.arange(4, dtype=jnp.int32)
    permuted = lambda key: federated.keyed_permutation(key, places, 4)
    found = np.asarray(jax.jit(jax.vmap(permuted))(keys))
    counts = collections.Counter(map(tuple, found.tolist()))
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_a_cohort_of_a_million_clients_needs_no_array_of_them():
    draw = lambda key: federated.sample_cohort(key, 3, 1_000_000, 100)
    compiled = jax.jit(draw).lower(jax.random.key(0)).compile()
    assert "1000000]" not in compiled.as_text()
    ids = compiled(jax.random.key(0))
    assert ids.dtype == jnp.int32 and len(set(ids.tolist())) == 100
    assert 0 <= min(ids) and 400_000 < np.mean(ids) < 600_000  # 3.5 deviations.
    with pytest.raises(ValueError, match=r"num must be <= 2\^31"):
        federated.keyed_permutation(jax.random.key(0), jnp.arange(2), 2**32)


@pytest.mark.parametrize(("fraction", "size"), [(0.29, 29), (0.001, 1), (1.0, 100)])
def test_a_fraction_of_clients_is_rounded(fraction, size):
    config = types.SimpleNamespace(client_fraction=fraction)
    assert cohort.cohort_size(config, 100) == size
