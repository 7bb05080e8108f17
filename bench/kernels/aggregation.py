"""Aggregation of a thousand clients' updates, relative to the copy bandwidth."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon import kernels
from jaxanon.kernels.aggregation.cases import CASES, updates


def rows(report, smoke):
    """Times each aggregate on the same updates, compared with NumPy."""
    case = CASES["small" if smoke else "thousand"]
    stacked, weights, mask, sent = updates(case, seed=0)
    arrays = jax.tree.map(jnp.asarray, stacked)
    num_bytes = sum(leaf.nbytes for leaf in stacked.values())
    numbers = num_bytes // 4 // case.clients
    shapes = f"{case.clients} clients x {numbers}, {num_bytes >> 20} MiB"
    trimmed = max(1, case.absent // 4)
    entries = num_bytes // 4
    # Comparisons of a sort of each column; selecting one element would need fewer.
    order = entries * np.log2(case.clients)
    here = {name: leaf[mask] for name, leaf in stacked.items()}

    def mean_in_numpy():
        weigh = lambda name: np.where(sent[name], weights, 0)
        total = lambda name: np.tensordot(weigh(name), stacked[name], 1)
        return {name: total(name) / weigh(name).sum() for name in stacked}

    median_in_numpy = lambda: {k: np.median(leaf, 0) for k, leaf in here.items()}
    cases = {
        "layer mean": (
            lambda x: kernels.layer_mean(x, weights, sent=sent),
            mean_in_numpy,
            2 * entries,
        ),
        "coordinate median": (
            lambda x: kernels.coordinate_median(x, mask=mask),
            median_in_numpy,
            order,
        ),
        "trimmed mean": (
            lambda x: kernels.trimmed_mean(x, trimmed, mask=mask),
            None,
            order + entries,
        ),
        "Krum": (  # A matrix product of all pairs of clients.
            lambda x: kernels.krum(x, trimmed, mask=mask)[0],
            None,
            2 * case.clients * entries,
        ),
    }
    for name, (ours, rival, operations) in cases.items():
        took = timing.timed(jax.jit(ours), arrays, repeats=3)
        moved = num_bytes + num_bytes // case.clients
        work = report.took(name, took, shapes, operations, moved)
        if rival is None:
            continue
        theirs = timing.timed(rival, repeats=3)
        for layer, leaf in took.result.items():
            expected = theirs.result[layer]
            np.testing.assert_allclose(leaf, expected, rtol=1e-3, atol=1e-5)
        report.over(f"{name} over NumPy", theirs.seconds, work, shapes)
    encode = jax.jit(
        lambda keys, x: jax.vmap(
            lambda key, one: kernels.fixed_point_encode(key, one, 8.0, case.clients)
        )(keys, x)
    )
    keys = jax.random.split(jax.random.key(0), case.clients)
    took = timing.timed(encode, keys, arrays, repeats=3)
    # A number is clipped, scaled, and stochastically rounded.
    operations = (6 + timing.RANDOM_WORD) * entries
    report.took("fixed point", took, shapes, operations, 2 * num_bytes)
