"""A round of every algorithm, on drawn rows, masks, labels and hyper-parameters."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_rounds import (
    CLIENTS,
    NAMES,
    RADIUS,
    START,
    begun,
    made,
    masks,
    of_rows,
)
from drawn_rounds import start as drawn_start
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_rounds import KEPT, SENT, descended, less, sum_of

from jaxanon import federated as fed

EACH = pytest.mark.parametrize("name", NAMES)


@functools.cache
def compiled(name, cohort_size=None):
    """Returns ``(init, update, models)``, compiled once for all examples."""
    more = {}
    if cohort_size:
        more = {"cohort_size": cohort_size}
    algorithm = made(name, **more)
    names = sorted(begun(name).hyper)

    def init(hyper):
        return algorithm.init(jax.random.key(0), **hyper)

    def models(state, clients):
        of = algorithm.model or (lambda key, state, *client: state.params)
        one = lambda number, rows, mask: of(
            jax.random.key(2), state, number, rows, mask
        )
        return jax.vmap(one)(jnp.arange(CLIENTS), *clients)

    start = jax.jit(init)
    chosen = lambda hyper: start({each: np.float32(hyper[each]) for each in names})
    return chosen, jax.jit(algorithm.update), jax.jit(models)


def after(name, hyper, clients, seed=1, rounds=2):
    """Returns the states before and after the last round, and its info."""
    init, update, _ = compiled(name)
    state = init(hyper)
    for _ in range(rounds):
        before = state
        state, info = update(jax.random.key(seed), before, clients)
    return before, state, info


# Two values each, both in range.
HYPER = {
    **{
        "learning_rate": (0.1, 0.5),
        "server_learning_rate": (0.25, 1.0),
        "mix": (0.5, 1.0),
    },
    **{
        "finetune_learning_rate": (0.1, 0.5),
        "mask_learning_rate": (0.1, 2.0),
        "proximal_weight": (0.0, 0.5),
    },
    **{"adaptation_learning_rate": (0.1, 0.5), "norm_learning_rate": (0.0, 0.2)},
    **{
        "proximal_mu": (0.0, 0.5),
        "alpha": (0.0, 0.1),
        "beta": (0.01, 0.1),
        "rho": (0.5, 1.0),
    },
    **{"temperature": (1.0, 6.0), "similarity": (-1.0, 0.4), "certainty": (0.6, 0.9)},
    **{"threshold": (0.5, 1.0), "first_score": (0.3, 0.6), "quantile": (0.0, 1.0)},
    **{"noise_multiplier": (1e-3, 1.0), "score_multiplier": (0.0, 1.0)},
    **{"clip_norm": (0.5, 9.0), "score_norm": (0.5, 1.0), "weight_epsilon": (0.5, 3.0)},
}
SILENT = {"noise_multiplier": 0.0, "score_multiplier": 0.0}
hypers = st.fixed_dictionaries({k: st.sampled_from(v) for k, v in HYPER.items()})
# At least one client has rows.
some = masks.map(lambda mask: mask | (np.arange(12).reshape(3, 4) == 9))


def part(tree, which):
    return jax.tree.map(lambda leaf: leaf[which], tree)


seeds = st.integers(0, 2**20)
few = settings(max_examples=5, deadline=None)


@EACH
@few
@given(seeds, masks, st.booleans(), hypers, st.sampled_from([np.float32, np.float64]))
def test_a_round_keeps_shapes_and_types_and_numbers(name, seed, mask, lone, h, dtype):
    clients = of_rows(seed, mask, lone, dtype=dtype)
    before, state, info = after(name, h, clients, seed)
    chex.assert_trees_all_equal_shapes_and_dtypes(before, state)
    chex.assert_tree_all_finite((state, info))
    assert state.round == before.round + 1 == 2
    assert all(jnp.shape(leaf) == () for leaf in jax.tree.leaves(info))
    chex.assert_trees_all_equal(state.hyper, before.hyper)
    # Without any rows nothing changes, except under the noise of DP-FedAvg.
    if not mask.any() and name != "dp_fedavg":
        chex.assert_trees_all_equal(state.params, before.params)
    if name == "fedmask":
        chex.assert_trees_all_equal(state.params, before.params)
    if name == "ldp_fl" and mask.any():  # Means of two values, cut to the range.
        present = int(mask.any(axis=1).sum())
        value = RADIUS / math.tanh(h["weight_epsilon"] / 2)
        means = value * (2 * np.arange(present + 1) / present - 1)
        legal = np.clip(means, -RADIUS, RADIUS)
        for leaf in map(np.asarray, jax.tree.leaves(state.params)):
            assert np.abs(leaf[..., None] - legal).min(axis=-1).max() < 1e-4


@EACH
@few
@given(seeds, masks, hypers, st.sampled_from([-8.0, 1.0, 100.0]))
def test_padding_changes_nothing(name, seed, mask, h, junk):
    wanted, found = (
        after(name, h, of_rows(seed, mask, junk=value)) for value in (0.0, junk)
    )
    chex.assert_trees_all_equal(found, wanted)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ldp_fl"])
@few
@given(seeds, some, hypers, st.permutations(range(CLIENTS)))
def test_the_order_of_clients_is_nobody_s_business(name, seed, mask, h, order):
    """Does not hold for draws by client index, which are all that LDP-FL sends."""
    order, h = np.array(order), h | (SILENT if name != "dp_fedavg" else {})
    clients = of_rows(seed, mask)
    moved = jax.tree.map(lambda leaf: leaf[order], clients)
    (_, one, info), (_, other, told) = after(name, h, clients), after(name, h, moved)
    models = compiled(name)[2]
    close = {"rtol": 1e-4, "atol": 1e-4}
    if name != "centralized_clustering":  # The order of these models is also arbitrary.
        chex.assert_trees_all_close(other.params, one.params, **close)
    mine = jax.tree.map(lambda leaf: leaf[order], models(one, clients))
    here = moved.mask.any(axis=1)
    chex.assert_trees_all_close(
        *(
            jax.tree.map(lambda leaf: leaf[here], each)
            for each in (models(other, moved), mine)
        ),
        **close,
    )
    chex.assert_trees_all_close(told, info, **close)


@pytest.mark.parametrize("name", ["fedavg", "scaffold", "fedmask"])
@few
@given(seeds, some, hypers)
def test_who_is_not_of_the_cohort_has_no_part_in_it(name, seed, mask, h):
    init, update, _ = compiled(name, cohort_size=2)
    state, key = init(h), jax.random.key(seed)
    ids = fed.sample_cohort(key, state.round, CLIENTS, 2)
    (out,) = set(range(CLIENTS)) - set(ids.tolist())
    clients = of_rows(seed, mask)
    after, _ = update(key, state, clients)
    other = jax.tree.map(np.copy, clients)
    other.mask[out], other.rows["x"][out] = True, 5.0
    chex.assert_trees_all_equal(update(key, state, other)[0], after)
    own = lambda state: jax.tree.map(lambda x: x[out], getattr(state, "own", ()))
    chex.assert_trees_all_equal(own(after), own(state))
    # Clients in the cohort do affect it.
    other.mask[ids], other.rows["x"][ids] = True, 5.0
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal(update(key, state, other)[0], after)


# Without noise, with all Atlas layers sent, and with a fixed clip norm.
EXACT = SILENT | {"threshold": 0.0, "norm_learning_rate": 0.0}


@pytest.mark.parametrize("name", sorted({*SENT, *KEPT}))
@few
@given(seeds, some, hypers)
def test_the_first_round_is_that_of_loops_in_float64(name, seed, mask, h):
    h = h | EXACT | ({"noise_multiplier": 1e-5} if name == "dp_fedavg" else {})
    clients = of_rows(seed, mask)
    state = after(name, h, clients, rounds=1)[1]
    x, y = np.float64(clients.rows["x"]), clients.rows["y"]
    rows = {c: (x[c][real], y[c][real]) for c, real in enumerate(mask) if real.any()}
    close = {"rtol": 1e-4, "atol": 2e-4}
    if name in SENT:
        sent, by_rows, share = SENT[name]
        weigh = {c: len(own[1]) if by_rows else 1 for c, own in rows.items()}
        total = CLIENTS if name == "dp_fedavg" else sum(weigh.values())
        rate = h[share] if share else 1.0
        ways = [
            jax.tree.map(
                lambda a, b, c=c: weigh[c] * (a - b), START, sent(h, START, own)
            )
            for c, own in rows.items()
        ]
        wanted = less(START, rate / total, sum_of(ways))
        wanted = {layer: wanted[layer] for layer in state.params}
        chex.assert_trees_all_close(state.params, wanted, **close)
    if name in KEPT:
        keep, of = KEPT[name]
        for client in range(CLIENTS):
            own = part(of(state.own), client)
            wanted = keep(h, START, rows[client]) if client in rows else START
            wanted = {layer: wanted[layer] for layer in own}
            chex.assert_trees_all_close(own, wanted, **close)


@few
@given(seeds, some, hypers)
def test_clusters_are_trained_on_the_rows_of_their_clients(seed, mask, h):
    clients = of_rows(seed, mask)
    state = after("centralized_clustering", h, clients, rounds=1)[1]
    sizes = np.bincount(state.own, weights=mask.sum(axis=1), minlength=2)
    assert (state.own[~mask.any(axis=1)] == sizes.argmax()).all()
    for group in range(2):
        real = mask & (np.asarray(state.own) == group)[:, None]
        rows = np.float64(clients.rows["x"][real]), clients.rows["y"][real]
        wanted = (
            descended(START, rows, h["learning_rate"], size=12) if real.any() else START
        )
        found = part(state.params, group)
        chex.assert_trees_all_close(found, wanted, rtol=1e-4, atol=1e-5)


@EACH
def test_a_round_of_half_precision_stays_of_it(name):
    """Shapes and dtypes are unchanged; nothing is compiled or run."""
    half = lambda key: jax.tree.map(lambda x: x.astype(jnp.bfloat16), drawn_start(key))
    algorithm = made(name, half)
    clients = of_rows(0, np.ones((CLIENTS, 4), bool), dtype=jnp.bfloat16)
    before = jax.eval_shape(algorithm.init, jax.random.key(0))
    after, _ = jax.eval_shape(algorithm.update, jax.random.key(1), before, clients)
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
    assert {leaf.dtype for leaf in jax.tree.leaves(after.params)} <= {
        jnp.dtype("bfloat16")
    }
