"""Mutual information, compared with scikit-learn's if it is installed."""

import jax
import numpy as np

from harness import timing
from jaxanon.kernels.dependence import cases, mutual_information, reference

COLUMNS = 25  # Columns per call.


def rows(report, smoke):
    """Measures columns per second."""
    case = cases.CASES["windows"]
    if smoke:
        case = case._replace(counts=(60, 60), padding=8)
    x, labels, mask = cases.sample(case, 0)
    columns = 2 if smoke else COLUMNS
    noise = np.random.default_rng(1).normal(size=(len(x), columns))
    x = (x + noise).astype(np.float32)
    each = jax.jit(
        lambda x: jax.lax.map(
            lambda column: mutual_information(column, labels, mask), x
        )
    )
    took = timing.timed(each, np.ascontiguousarray(x.T), repeats=1 if smoke else 3)
    shapes = f"{columns} columns of {len(x)} rows"
    rate = columns / took.seconds
    # Comparisons of two sorts and two bisections.
    work = {
        "operations": columns * 4 * len(x) * np.log2(len(x)),
        "bytes": x.nbytes + labels.nbytes,
    }
    ours = {**work, "seconds": took.seconds}
    name = "mutual information"
    report.add(name, rate, "columns/s", shapes, **ours, compile_s=took.compile_s)
    few = np.flatnonzero(mask)[:: 1 if smoke else 40]
    plain = lambda: reference.mutual_information(
        x[few, :1].astype(float), labels[few], case.num_neighbors
    )
    slow = timing.timed(plain, repeats=1)
    np.testing.assert_allclose(
        mutual_information(x[few, 0], labels[few]), slow.result, atol=1e-4
    )
    pairs = rate * len(x) ** 2 / (len(few) ** 2 / slow.seconds)
    shapes = f"{len(few)} rows, by pairs of rows"
    report.add(f"{name} over reference", pairs, "x as fast", shapes, **ours)
    scikit_learn(report, x[mask], labels[mask], took, work, smoke)


def scikit_learn(report, x, labels, took, work, smoke):
    """Adds scikit-learn's row and our speedup over it."""
    if not timing.installed("sklearn", "scikit-learn"):
        return
    from sklearn.feature_selection import mutual_info_classif

    estimate = lambda: mutual_info_classif(
        x.astype(float), labels, discrete_features=False, random_state=0
    )
    theirs = timing.timed(estimate, repeats=1 if smoke else 3)
    # Some float32 distances tie that differ in float64.
    np.testing.assert_allclose(took.result, theirs.result, atol=1e-3)
    name, shapes = "mutual information", f"{x.shape[1]} columns of {len(x)} rows"
    rate, own = x.shape[1] / theirs.seconds, {**work, "seconds": theirs.seconds}
    report.add(f"scikit-learn, {name}", rate, "columns/s", shapes, **own)
    own["seconds"] = took.seconds
    report.over(f"{name} over scikit-learn", theirs.seconds, own, shapes)
