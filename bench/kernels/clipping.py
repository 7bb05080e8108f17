"""Clipping, noise and aggregation of stacked client updates, relative to one read."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import cases, reference

try:
    import optax
except ImportError:
    optax = None


def clip_noise_sum(rows):
    """Computes norms, the scaled sum, and noise once."""
    total = clipping.clipped_sum(rows, 1.0)
    return clipping.add_noise_to_sum(jax.random.key(1), total, 1.0)


def noise_per_client(rows):
    """Clips each row and adds noise to each."""
    return clipping.clip_and_noise_per_client(jax.random.key(2), rows, 1.0, 1.0)


def by_vmap(key, rows, max_norm):
    """Clips a copy of every row by ``vmap``, then sums: the naive version."""

    def clip(row):
        norm = jnp.linalg.norm(row.astype(jnp.float32))
        return row * jnp.minimum(1, max_norm / jnp.maximum(norm, 1e-12))

    total = jnp.sum(jax.vmap(clip)(rows), axis=0)
    return total + max_norm * jax.random.normal(key, total.shape)


def stacked(num_rows, size, dtype):
    """Returns ``[num_rows, size]`` with row norms between 0.1 and 10."""

    def row(key, norm):
        return (norm * size**-0.5 * jax.random.normal(key, (size,))).astype(dtype)

    keys = jax.random.split(jax.random.key(0), num_rows)
    norms = jnp.geomspace(0.1, 10.0, num_rows)
    make = lambda args: row(*args)
    return jax.jit(lambda: jax.lax.map(make, (keys, norms)))()


def by_groups(smoke):
    """Times the sum by groups and the loops; checks that they agree on a few rows."""
    case = cases.CASES["groups" if smoke else "batch"]
    rows = cases.rows(case, 0)
    how = {"groups": case.groups}
    fast = jax.jit(lambda x: clipping.clipped_sum(x, case.clip_norms, **how))
    took = timing.timed(fast, rows)
    row_list = [{k: v[i] for k, v in rows.items()} for i in range(case.num_rows)]
    ones = np.ones(case.num_rows)
    first = row_list[: 9 if smoke else 16]
    plain = lambda: reference.clipped_sum(
        first, case.groups, case.clip_norms, ones[: len(first)]
    )
    loops = timing.timed(plain, repeats=1)
    again = fast({k: v[: len(first)] for k, v in rows.items()})
    for name, leaf in again.value.items():
        np.testing.assert_allclose(leaf, loops.result[name], rtol=1e-4, atol=1e-5)
    return took, loops.seconds / len(first) * case.num_rows, case


def rows(report, smoke):
    """Adds the rows to the report."""
    took, loops, case = by_groups(smoke)
    shapes = f"{case.num_rows} x {list(case.shapes.values())} float32"
    size = sum(int(np.prod(shape)) for shape in case.shapes.values())
    work = _work(case.num_rows * size, size, 4, took)
    report.add("clipped sum by groups", took.seconds * 1e3, "ms", shapes, **work)
    report.over("clipped sum over loops", loops, work, shapes)
    on_cpu = jax.default_backend() == "cpu"
    case = cases.CASES["cohort_cpu" if on_cpu else "cohort"]
    num_rows, size = case.num_rows, sum(np.prod(s) for s in case.shapes.values())
    num_rows, size = (8, 1 << 12) if smoke else (num_rows, int(size))
    dtype = jnp.float32 if on_cpu else jnp.bfloat16
    _stacked_rows(report, stacked(num_rows, size, dtype), smoke)


def _stacked_rows(report, x, smoke):
    shapes = f"{len(x)} x {x.shape[1]} {x.dtype}"
    fns = {
        "clip-noise-aggregate": clip_noise_sum,
        "one read": lambda x: jnp.sum(jnp.square(x.astype(jnp.float32)), axis=1),
        "the sum alone": lambda x: clipping.clipped_sum(x, 1.0).value,
        "the noise alone": lambda x: jax.random.normal(jax.random.key(1), x.shape[1:]),
        "vmap of clip, then sum": lambda x: by_vmap(jax.random.key(1), x, 1.0),
    }
    if optax is None:
        print("optax is not installed; its row is skipped")
    else:
        fns["optax per example"] = by_optax
    took = _in_turn(fns, x, smoke)
    ours = took["clip-noise-aggregate"]
    size = x.shape[1]
    work = {}
    for name, one in took.items():
        noise = 0 if name == "the sum alone" else timing.NORMAL * size
        work[name] = _work(x.size, size, x.itemsize, one, noise=noise)
    seconds = {name: one.seconds for name, one in took.items()}
    read, noise = seconds["one read"], seconds["the noise alone"]
    work["one read"] = timing.work(2 * x.size, x.nbytes, read)
    work["the noise alone"] = timing.work(timing.NORMAL * size, 4 * size, noise)
    for name, one in took.items():
        report.add(name, one.seconds * 1e3, "ms", shapes, **work[name])
    for name in ("clip-noise-aggregate", "the sum alone", "the noise alone"):
        ratio = seconds[name] / seconds["one read"]
        report.add(f"{name}, over one read", ratio, "x as long", shapes, **work[name])
    for name in list(fns)[4:]:
        what, own = f"clip-noise-aggregate over {name}", work["clip-noise-aggregate"]
        report.over(what, seconds[name], own, shapes)
    _agrees(ours.result, x)
    _per_client_rows(report, x, shapes, smoke)


def by_optax(rows):
    """Clips with Optax's per-example transformation and adds the same noise."""
    total = optax.per_example_global_norm_clip([rows], 1.0)[0][0]
    return total + jax.random.normal(jax.random.key(1), rows.shape[1:])


def _in_turn(fns, x, smoke):
    jitted = {name: jax.jit(fn) for name, fn in fns.items()}
    return timing.in_turn(jitted, x, repeats=1 if smoke else 15)


def _per_client_rows(report, x, shapes, smoke):
    """Times noise per client."""
    fns = {"clip and noise per client": noise_per_client}
    took = _in_turn(fns, x, smoke)
    for name, each in took.items():
        # Reads for norms, reads again and writes with noise; the minimum is one read.
        work = (4 + timing.NORMAL) * x.size, 3 * x.nbytes
        report.took(name, each, shapes, *work, least_bytes=2 * x.nbytes)


def _work(numbers, size, itemsize, took, *, noise=0):
    """Returns the work of a clipped sum: square and add, scale and add.

    XLA reads every row once for its norm and once for the sum.
    """
    return timing.work(
        4 * numbers + noise,
        2 * numbers * itemsize + 4 * size,
        took.seconds,
        least_bytes=numbers * itemsize + 4 * size,
        compile_s=took.compile_s,
    )


def _agrees(result, x):
    """Checks the timed result against NumPy's sum after subtracting the noise."""
    columns = np.asarray(x[:, :64], np.float64)
    norms = np.sqrt(np.asarray(jnp.sum(jnp.square(x.astype(jnp.float32)), axis=1)))
    expected = np.sum(columns * np.minimum(1, 1 / norms)[:, None], axis=0)
    key = jax.random.split(jax.random.key(1), 1)[0]
    noise = jax.random.normal(key, x.shape[1:])
    got = np.asarray(result - noise)[:64]
    np.testing.assert_allclose(got, expected, atol=1e-4)
