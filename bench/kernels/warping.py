"""Dynamic time warping, compared with dtaidistance's C code if installed."""

import concurrent.futures
import os

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon.kernels.warping import cases, dtw, reference


def rows(report, smoke):
    """Measures pairs per second: one call, one call per core, and the rival's modes."""
    case = cases.CASES["windows"]
    if smoke:
        case = case._replace(pairs=64, time_x=16, time_y=16)
    x, y, *_ = cases.series(case, 0)
    shapes = f"{case.pairs} pairs, {case.time_x} x {case.channels}"
    rates = {}

    operations, num_bytes = per_pair(case)

    def work(rate):
        each = case.pairs * operations, case.pairs * num_bytes
        return timing.work(*each, case.pairs / rate)

    def add(name, rate, **more):
        rates[name] = rate
        report.add(f"DTW, {name}", rate, "pairs/s", shapes, **work(rate), **more)

    warp = jax.jit(dtw)
    repeats = 1 if smoke else 3
    took = timing.timed(warp, x, y, repeats=repeats)
    add("one call", case.pairs / took.seconds, compile_s=took.compile_s)
    if jax.default_backend() == "cpu":
        took_all = on_all_cores(warp, x, y, repeats)
        np.testing.assert_array_equal(took_all.result, took.result)
        add("a call per core", case.pairs / took_all.seconds)
    few = 1 if smoke else 2
    loops = lambda: [reference.dtw(x[k], y[k]) for k in range(few)]
    slow = timing.timed(loops, repeats=1)
    np.testing.assert_allclose(took.result[:few], slow.result, rtol=1e-4)
    add("reference", few / slow.seconds)
    for name, (pairs, seconds) in dtaidistance(x, y, took.result, repeats).items():
        add(name, pairs / seconds)
    best = max(rates["one call"], rates.get("a call per core", 0))
    for name, rate in rates.items():
        if name == "reference" or name.startswith("dtaidistance"):
            ratio = best / rate
            report.add(f"DTW over {name}", ratio, "x as fast", shapes, **work(best))


def per_pair(case):
    """Returns the minimum operations and bytes of one pair.

    Per cell: difference, square and sum of each channel, two comparisons, one sum.
    """
    cells = case.time_x * case.time_y
    num_bytes = 4 * case.channels * (case.time_x + case.time_y) + 4
    return cells * (3 * case.channels + 2), num_bytes


def on_all_cores(fn, x, y, repeats):
    """Runs ``fn`` on a share of the pairs per core, since a call uses one core."""
    cores = os.cpu_count()
    shares = [
        (jnp.asarray(a), jnp.asarray(b))
        for a, b in zip(np.array_split(x, cores), np.array_split(y, cores), strict=True)
    ]
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        one = lambda share: jax.block_until_ready(fn(*share))
        took = timing.timed(lambda: list(pool.map(one, shares)), repeats=repeats)
    return took._replace(result=np.concatenate(took.result))


def dtaidistance(x, y, expected, repeats):
    """Yields pairs and seconds of its loop and its threads; nothing if not installed.

    Its threads compare all series of a list with each other, so they get a list with
    the same number of pairs.
    """
    if not timing.installed("dtaidistance", "dtaidistance"):
        return {}
    from dtaidistance import dtw_ndim

    x, y = x.astype(float), y.astype(float)
    loop = lambda: [dtw_ndim.distance_fast(a, b) for a, b in zip(x, y, strict=True)]
    alone = timing.timed(loop, repeats=repeats)
    np.testing.assert_allclose(expected, alone.result, rtol=1e-4)
    number = round((2 * len(x)) ** 0.5) + 1
    every = lambda: dtw_ndim.distance_matrix_fast(x[:number], compact=True)
    together = timing.timed(every, repeats=repeats)
    return {
        "dtaidistance, loop": (len(x), alone.seconds),
        "dtaidistance, threads": (number * (number - 1) // 2, together.seconds),
    }
