"""Time warping against dtaidistance's C, mutual information against scikit-learn."""

import concurrent.futures
import importlib.util
import os

import _timing
import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.dtw import cases as dtw_cases
from jaxanon.kernels.dtw import dtw
from jaxanon.kernels.dtw import reference as dtw_reference
from jaxanon.kernels.mutual_information import cases as mi_cases
from jaxanon.kernels.mutual_information import mutual_information
from jaxanon.kernels.mutual_information import reference as mi_reference

COLUMNS = 25  # Components that mutual information is averaged over.


def rows(report, smoke):
    """Adds the rows of both kernels."""
    warping(report, smoke)
    information(report, smoke)


def warping(report, smoke):
    """Pairs a second: one call, one call per core, the rival's loop and its threads."""
    case = dtw_cases.CASES["windows"]
    if smoke:
        case = case._replace(pairs=64, time_x=16, time_y=16)
    x, y, *_ = dtw_cases.series(case, 0)
    shapes = f"{case.pairs} pairs, {case.time_x} x {case.channels}"
    rates = {}

    def add(name, rate, **more):
        rates[name] = rate
        flops, bytes_ = per_pair(case)
        report.add(
            f"DTW, {name}",
            rate,
            "pairs/s",
            shapes,
            flops=rate * flops,
            flops_per_pair=flops,
            bytes_per_pair=bytes_,
            share_of_copy_bandwidth=rate * bytes_ / report.bytes,
            **more,
        )

    warp = jax.jit(dtw)
    repeats = 1 if smoke else 3
    took = _timing.timed(warp, x, y, repeats=repeats)
    add("one call", case.pairs / took.seconds, compile_s=took.compile_s)
    if jax.default_backend() == "cpu":
        took_all = on_all_cores(warp, x, y, repeats)
        np.testing.assert_array_equal(took_all.result, took.result)
        add("a call per core", case.pairs / took_all.seconds)
    few = 1 if smoke else 2
    loops = lambda: [dtw_reference.dtw(x[k], y[k]) for k in range(few)]
    slow = _timing.timed(loops, repeats=1)
    np.testing.assert_allclose(took.result[:few], slow.result, rtol=1e-4)
    add("reference", few / slow.seconds)
    for name, (pairs, seconds) in dtaidistance(x, y, took.result, repeats).items():
        add(name, pairs / seconds)
    best = max(rates["one call"], rates.get("a call per core", 0))
    for name, rate in rates.items():
        if name == "reference" or name.startswith("dtaidistance"):
            report.add(f"DTW over {name}", best / rate, "x", shapes)


def per_pair(case):
    """Operations and bytes that one pair cannot do without."""
    cells = case.time_x * case.time_y
    return cells * (3 * case.channels + 2), 4 * case.channels * (
        case.time_x + case.time_y
    )


def on_all_cores(fn, x, y, repeats):
    """``fn`` on a share of the pairs per core: a call keeps to one core."""
    cores = os.cpu_count()
    shares = [
        (jnp.asarray(a), jnp.asarray(b))
        for a, b in zip(np.array_split(x, cores), np.array_split(y, cores), strict=True)
    ]
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        one = lambda share: jax.block_until_ready(fn(*share))
        took = _timing.timed(lambda: list(pool.map(one, shares)), repeats=repeats)
    return took._replace(result=np.concatenate(took.result))


def dtaidistance(x, y, expected, repeats):
    """Pairs and seconds of its loop and its threads; nothing where not installed.

    Its threads compare all series of a list with each other, so theirs is a list with
    as many pairs.
    """
    if importlib.util.find_spec("dtaidistance") is None:
        print("dtaidistance is not installed; its rows are left out")
        return {}
    from dtaidistance import dtw_ndim

    x, y = x.astype(float), y.astype(float)
    loop = lambda: [dtw_ndim.distance_fast(a, b) for a, b in zip(x, y, strict=True)]
    alone = _timing.timed(loop, repeats=repeats)
    np.testing.assert_allclose(expected, alone.result, rtol=1e-4)
    number = round((2 * len(x)) ** 0.5) + 1
    every = lambda: dtw_ndim.distance_matrix_fast(x[:number], compact=True)
    together = _timing.timed(every, repeats=repeats)
    return {
        "dtaidistance, loop": (len(x), alone.seconds),
        "dtaidistance, threads": (number * (number - 1) // 2, together.seconds),
    }


def information(report, smoke):
    """Columns a second, of as many rows as the case has."""
    case = mi_cases.CASES["windows"]
    if smoke:
        case = case._replace(counts=(60, 60), padding=8)
    x, labels, mask = mi_cases.sample(case, 0)
    columns = 2 if smoke else COLUMNS
    noise = np.random.default_rng(1).normal(size=(len(x), columns))
    x = (x + noise).astype(np.float32)
    each = jax.jit(
        lambda x: jax.lax.map(
            lambda column: mutual_information(column, labels, mask), x
        )
    )
    took = _timing.timed(each, np.ascontiguousarray(x.T), repeats=1 if smoke else 3)
    shapes = f"{columns} columns of {len(x)} rows"
    rate = columns / took.seconds
    # Comparisons of two sorts and two bisections.
    operations = 4 * len(x) * np.log2(len(x))
    report.add(
        "mutual information",
        rate,
        "columns/s",
        shapes,
        flops=rate * operations,
        flops_per_column=operations,
        bytes_per_column=x[:, 0].nbytes,
        share_of_copy_bandwidth=rate * x[:, 0].nbytes / report.bytes,
        compile_s=took.compile_s,
    )
    few = np.flatnonzero(mask)[:: 1 if smoke else 40]
    plain = lambda: mi_reference.mutual_information(
        x[few, :1].astype(float), labels[few], case.num_neighbours
    )
    slow = _timing.timed(plain, repeats=1)
    np.testing.assert_allclose(
        mutual_information(x[few, 0], labels[few]), slow.result, atol=1e-4
    )
    pairs = rate * len(x) ** 2
    report.add(
        "mutual information over reference",
        pairs / (len(few) ** 2 / slow.seconds),
        "x",
        f"{len(few)} rows, by pairs of rows",
    )
    scikit_learn(report, x[mask], labels[mask], took, rate, smoke)


def scikit_learn(report, x, labels, took, rate, smoke):
    """Its row, and ours over it."""
    if importlib.util.find_spec("sklearn") is None:
        print("scikit-learn is not installed; its row is left out")
        return
    from sklearn.feature_selection import mutual_info_classif

    estimate = lambda: mutual_info_classif(
        x.astype(float), labels, discrete_features=False, random_state=0
    )
    theirs = _timing.timed(estimate, repeats=1 if smoke else 3)
    # Some float32 distances tie that do not in float64.
    np.testing.assert_allclose(took.result, theirs.result, atol=1e-3)
    shapes = f"{x.shape[1]} columns of {len(x)} rows"
    report.add(
        "scikit-learn, mutual information",
        x.shape[1] / theirs.seconds,
        "columns/s",
        shapes,
    )
    report.add(
        "mutual information over scikit-learn",
        rate * theirs.seconds / x.shape[1],
        "x",
        shapes,
    )


if __name__ == "__main__":
    arguments = _timing.arguments(__doc__)
    table = _timing.Report(smoke=arguments.smoke)
    rows(table, arguments.smoke)
    table.write(arguments.json)
