"""Orthonormal rows, and exact sensitivities of several directions."""

import itertools
import math
import time

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon.kernels import orthogonal
from jaxanon.kernels.orthogonal import cases, reference

ITERATIONS = 15  # Enough for a condition number of 10.


def rows(report, smoke):
    """Compares both implementations and gradients with an SVD; times the search."""
    for name in ("deeprotect",) if smoke else ("deeprotect", "wide", "layers"):
        _rows(report, name)
    _span(report, smoke)


def _svd(w):
    left, _, right = jnp.linalg.svd(w, full_matrices=False)
    return left @ right


def _rows(report, name):
    case = cases.CASES[name]
    w = jnp.asarray(cases.matrix(case))
    fns = {"svd": _svd}
    for implementation in ("eigh", "newton_schulz"):
        fns[implementation] = lambda w, implementation=implementation: (
            orthogonal.orthonormal_rows(
                w, implementation=implementation, num_iterations=ITERATIONS
            )
        )
    took = {key: timing.timed(jax.jit(fn), w) for key, fn in fns.items()}
    flat = w.reshape(-1, *w.shape[-2:])
    expected = np.stack([reference.orthonormal_rows(m) for m in flat]).reshape(w.shape)
    shapes = "x".join(map(str, w.shape))
    # Counted in multiplications of [k, k] by [k, d]: a polar step is three (one of them
    # k³), an iteration two. Twice an eigendecomposition of about 9 k³ each (Golub and
    # Van Loan).
    products = {"svd": 0, "eigh": 2 * 2 + 2 * 2, "newton_schulz": 1 + 2 * ITERATIONS}
    cubes = {"svd": 0, "eigh": 2 * (9 + 2), "newton_schulz": 0}
    for key, one in took.items():
        np.testing.assert_allclose(one.result, expected, atol=1e-4)
        if key == "svd":
            continue
        operations = products[key] * 2 * w.size * case.rows
        operations += cubes[key] * len(flat) * case.rows**3
        slope = jax.jit(jax.grad(lambda w, fn=fns[key]: jnp.sum(fn(w) ** 3)))
        graded = timing.timed(slope, w)
        assert np.isfinite(graded.result).all()
        work = timing.work(operations, 2 * w.nbytes, one.seconds)
        report.add(
            f"orthonormal rows, {key}",
            one.seconds * 1e6,
            "us",
            shapes,
            **work,
            gradient_times_forward=graded.seconds / one.seconds,
            residual=float(jnp.max(orthogonal.orthonormality_residual(one.result))),
        )
        name = f"orthonormal rows, {key} over an SVD"
        report.over(name, took["svd"].seconds, work, shapes)


def _span(report, smoke):
    r, d = (2, 8) if smoke else (3, 20)
    directions = np.random.default_rng(0).normal(size=(r, d))
    ours, found = _wall(orthogonal.relaxed_span_sensitivity, directions, 1.0)
    loops, expected = _wall(reference.relaxed_span_sensitivity, directions, 1.0)
    np.testing.assert_allclose((found.l1, found.l2), expected, rtol=1e-9)
    # A candidate is a choice of r - 1 inputs and their signs; it is tested on all
    # inputs.
    operations = math.comb(d, r - 1) * 2 ** (r - 2) * 2 * r * d
    work = timing.work(operations, directions.nbytes, ours)
    name, shapes = "exact sensitivity of a span", f"{r} directions x {d} inputs"
    report.add(name, ours * 1e3, "ms", shapes, **work)
    report.over(f"{name} over loops", loops, work, shapes)
    rival = _linear_programs(directions[:, :8])
    if rival is not None:
        name += " over linear programs of 8 inputs"
        report.over(name, rival, work, shapes)


def _linear_programs(directions):
    """Returns seconds of a linear program per sign pattern; None without SciPy."""
    if not timing.installed("scipy", "SciPy"):
        return None
    from scipy import optimize

    columns = directions.T

    def solve():
        most = 0.0
        for signs in itertools.product((1.0, -1.0), repeat=len(columns) - 1):
            goal = np.array((1.0, *signs)) @ columns
            box = np.concatenate([columns, -columns])
            found = optimize.linprog(-goal, box, np.ones(len(box)), bounds=(None, None))
            most = max(most, -found.fun)
        return most

    seconds, most = _wall(solve)
    ours = orthogonal.relaxed_span_sensitivity(directions, 1.0)
    np.testing.assert_allclose(most, ours.l1, rtol=1e-6)
    return seconds


def _wall(fn, *args):
    start = time.perf_counter()
    result = fn(*args)
    return time.perf_counter() - start, result
