"""The clip-noise-aggregate of a round's stacked clients, beside one read of them."""

import functools

import _timing
import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import cases, reference

try:
    import optax
except ImportError:
    optax = None


def clip_noise_sum(rows, implementation=None):
    """What is timed: norms, scaled sum, noise once."""
    how = {"implementation": implementation}
    total = clipping.clipped_sum(rows, 1.0, **how)
    return clipping.add_noise_to_sum(jax.random.key(1), total, 1.0, **how)


def noise_per_client(rows, implementation=None):
    """As much noise as there are rows, each row clipped."""
    return clipping.clip_and_noise_per_client(
        jax.random.key(2), rows, 1.0, 1.0, implementation=implementation
    )


def by_vmap(key, rows, max_norm):
    """What one writes first: a clipped copy of every row, then the sum."""

    def clip(row):
        norm = jnp.linalg.norm(row.astype(jnp.float32))
        return row * jnp.minimum(1, max_norm / jnp.maximum(norm, 1e-12))

    total = jnp.sum(jax.vmap(clip)(rows), axis=0)
    return total + max_norm * jax.random.normal(key, total.shape)


def stacked(num_rows, size, dtype):
    """``[num_rows, size]`` of rows whose norms lie between 0.1 and 10."""

    def row(key, norm):
        return (norm * size**-0.5 * jax.random.normal(key, (size,))).astype(dtype)

    keys = jax.random.split(jax.random.key(0), num_rows)
    norms = jnp.geomspace(0.1, 10.0, num_rows)
    make = lambda args: row(*args)
    return jax.jit(lambda: jax.lax.map(make, (keys, norms)))()


def by_groups(smoke):
    """Times the sum by groups and the loops, which give the same on a few rows."""
    case = cases.CASES["groups" if smoke else "batch"]
    rows = cases.rows(case, 0)
    how = {"groups": case.groups}
    fast = jax.jit(lambda x: clipping.clipped_sum(x, case.max_norms, **how))
    took = _timing.timed(fast, rows)
    row_list = [{k: v[i] for k, v in rows.items()} for i in range(case.num_rows)]
    ones = np.ones(case.num_rows)
    first = row_list[: 9 if smoke else 16]
    plain = lambda: reference.clipped_sum(
        first, case.groups, case.max_norms, ones[: len(first)]
    )
    loops = _timing.timed(plain, repeats=1)
    again = fast({k: v[: len(first)] for k, v in rows.items()})
    for name, leaf in again.value.items():
        np.testing.assert_allclose(leaf, loops.result[name], rtol=1e-4, atol=1e-5)
    return took, loops.seconds / len(first) * case.num_rows, case


def rows(report, smoke):
    """Adds the figures to the report."""
    took, loops, case = by_groups(smoke)
    shapes = f"{case.num_rows} x {list(case.shapes.values())} float32"
    report.add("clipped sum by groups", took.seconds * 1e3, "ms", shapes)
    report.add("clipped sum over loops", loops / took.seconds, "x", shapes)
    on_cpu = jax.default_backend() == "cpu"
    case = cases.CASES["cohort_cpu" if on_cpu else "cohort"]
    num_rows, size = case.num_rows, sum(np.prod(s) for s in case.shapes.values())
    num_rows, size = (8, 1 << 12) if smoke else (num_rows, int(size))
    dtype = jnp.float32 if on_cpu else jnp.bfloat16
    _stacked_rows(report, stacked(num_rows, size, dtype), smoke)


def _stacked_rows(report, x, smoke):
    shapes = f"{len(x)} x {x.shape[1]} {x.dtype}"
    repeats = 1 if smoke else 5
    timed = lambda fn, *args: _timing.timed(jax.jit(fn), *args, repeats=repeats)
    took = timed(clip_noise_sum, x)
    noted = functools.partial(_noted, report, shapes=shapes)
    # XLA reads every row for its norm and again for the sum.
    noted("clip-noise-aggregate", took, 2 * x.nbytes + took.result.nbytes, 4 * x.size)
    each = timed(noise_per_client, x)
    noted("clip and noise per client", each, 3 * x.nbytes, 3 * x.size)
    one = timed(lambda x: jnp.sum(jnp.square(x.astype(jnp.float32)), axis=1), x)
    report.add("... over one read", took.seconds / one.seconds, "x", shapes)
    parts = {
        "the sum": lambda x: clipping.clipped_sum(x, 1.0).value,
        "the noise": lambda x: jax.random.normal(jax.random.key(1), x.shape[1:]),
    }
    for name, part in parts.items():
        ratio = timed(part, x).seconds / one.seconds
        report.add(f"... {name} alone, over one read", ratio, "x", shapes)
    _pallas_rows(report, x, shapes, timed, took, each, smoke)
    rivals = {"vmap of clip, then sum": by_vmap}
    if optax is None:
        print("optax is not installed; its row is left out")
    else:
        rivals["optax per example"] = lambda key, x, c: (
            optax.per_example_global_norm_clip([x], c)[0][0]
            + c * jax.random.normal(key, x.shape[1:])
        )
    for name, rival in rivals.items():
        theirs = timed(lambda x, rival=rival: rival(jax.random.key(1), x, 1.0), x)
        ratio = theirs.seconds / took.seconds
        report.add(f"clip-noise-aggregate over {name}", ratio, "x", shapes)
    _agrees(took.result, x)


def _noted(report, name, took, num_bytes, operations, shapes):
    """How long it took, with its share of the bandwidth."""
    report.add(
        name,
        took.seconds * 1e3,
        "ms",
        shapes,
        bandwidth=num_bytes / took.seconds,
        bytes=num_bytes,
        operations=operations,
        compile_s=took.compile_s,
    )


def _pallas_rows(report, x, shapes, timed, total, each, smoke):
    """The GPU's programs beside XLA's; a smoke test runs them interpreted."""
    name = "pallas"
    if jax.default_backend() == "cpu":
        if not smoke:
            print("no GPU: Pallas's rows are left out")
            return
        name = "pallas_interpreted"
    for what, fn, plain, reads in (
        ("clip-noise-aggregate", clip_noise_sum, total, 1),
        ("clip and noise per client", noise_per_client, each, 2),
    ):
        took = timed(functools.partial(fn, implementation=name), x)
        np.testing.assert_allclose(
            np.asarray(took.result, np.float32),
            np.asarray(plain.result, np.float32),
            rtol=2 * float(jnp.finfo(x.dtype).eps),
            atol=1e-3,
        )
        num_bytes = reads * x.nbytes + took.result.nbytes
        _noted(report, f"{what}, {name}", took, num_bytes, 4 * x.size, shapes)
        ratio = plain.seconds / took.seconds
        report.add(f"{what}, {name} over XLA", ratio, "x", shapes)


def _agrees(result, x):
    """Takes the noise that is due off the timed result; the rest is NumPy's sum."""
    columns = np.asarray(x[:, :64], np.float64)
    norms = np.sqrt(np.asarray(jnp.sum(jnp.square(x.astype(jnp.float32)), axis=1)))
    expected = np.sum(columns * np.minimum(1, 1 / norms)[:, None], axis=0)
    key = jax.random.split(jax.random.key(1), 1)[0]
    noise = jax.random.normal(key, x.shape[1:])
    got = np.asarray(result - noise)[:64]
    np.testing.assert_allclose(got, expected, atol=1e-4)
