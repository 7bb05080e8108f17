"""Fidelity and distortion of drawn windows: loops, SciPy, and errors."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_warping import warped
from scipy import linalg, signal, stats

from jaxanon import metrics
from jaxanon.kernels.signals import reference

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float64, np.float32, np.int16])


def drawn(seed, *shape, dtype=np.float64):
    """Draws numbers of a dtype; integers contain ties."""
    return (4 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


@st.composite
def kinds(draw, least=1, count=2, channels=(1, 3), times=(2, 5)):
    """Draws ``count`` sets of windows of one shape, each with a drawn size."""
    shape = draw(st.sampled_from(times)), draw(st.sampled_from(channels))
    dtype, number = draw(dtypes), st.integers(least, 6)
    return [drawn(draw(seeds), draw(number), *shape, dtype=dtype) for _ in range(count)]


def shuffled(x):
    """Returns the same windows in another order."""
    return x[np.random.default_rng(0).permutation(len(x))]


def far(x, y):
    """Computes the root of the sum of squares in Python."""
    pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    return math.sqrt(sum((float(a) - float(b)) ** 2 for a, b in pairs))


@few
@given(kinds(least=2), st.sampled_from([None, 0.5, 8.0]))
def test_the_discrepancy_is_a_mean_over_pairs(pair, bandwidth):
    real, made = pair
    apart = lambda x, y: [
        far(a, b)
        for i, a in enumerate(x)
        for j, b in enumerate(y)
        if x is not y or i < j
    ]
    width = bandwidth or float(np.median(apart(real, real)))
    if width == 0:
        with pytest.raises(ValueError, match="bandwidth must be > 0"):
            metrics.mmd(real, made)
        return
    kernel = lambda x, y: np.mean(np.exp(-np.square(apart(x, y)) / (2 * width**2)))
    want = kernel(real, real) + kernel(made, made) - 2 * kernel(real, made)
    found = metrics.mmd(real, made, bandwidth=bandwidth)
    assert found == pytest.approx(want, abs=1e-9) and found <= 2
    turned = metrics.mmd(shuffled(made), shuffled(real), bandwidth=width)
    assert turned == pytest.approx(found, abs=1e-9)


@few
@given(seeds, st.sampled_from([(2, 2), (9, 5), (3, 40)]), st.sampled_from([1, 4]))
def test_frechet_s_distance_is_that_by_a_matrix_root(seed, counts, width):
    rng = np.random.default_rng(seed)
    one, two = (rng.normal(size=(n, width)) * rng.uniform(1, 3) for n in counts)
    found = metrics.frechet_distance(one, two)
    covs = [np.atleast_2d(np.cov(x.T, ddof=0)) for x in (one, two)]
    shared = linalg.eigvals(covs[0] @ covs[1]).real
    gap = one.mean(0) - two.mean(0)
    root = 2 * np.sqrt(np.maximum(shared, 0)).sum()
    want = gap @ gap + np.trace(covs[0] + covs[1]) - root
    assert found == pytest.approx(want, abs=1e-5) and found >= 0
    # The order of arguments and a common rotation or shift do not matter.
    turn = linalg.qr(rng.normal(size=(width, width)))[0]
    moved = metrics.frechet_distance(shuffled(two) @ turn + 3, one @ turn + 3)
    assert moved == pytest.approx(found, abs=1e-5)
    assert metrics.frechet_distance(one, one + 2) == pytest.approx(4 * width, abs=1e-5)


def autocorrelation(x, lag):
    """Computes one channel's autocorrelation sample by sample."""
    x = [float(value) - sum(map(float, x)) / len(x) for value in x]
    total = sum(value**2 for value in x)
    products = sum(a * b for a, b in zip(x, x[lag:], strict=False))
    return products / total if total > 1e-9 else 0.0


@few
@given(kinds(), st.sampled_from([None, 1, "most"]), st.booleans())
def test_the_error_of_autocorrelations_is_a_mean_of_loops(pair, max_lag, still):
    real, made = pair
    if still:  # Constant channels have none.
        made = np.ones_like(made) * made[:, :1]
    time, channels = real.shape[1:]
    most = {None: time // 2, "most": time - 1}.get(max_lag, max_lag)
    mean = lambda x, lag, c: np.mean([autocorrelation(w[:, c], lag) for w in x])
    places = [(lag, c) for lag in range(1, most + 1) for c in range(channels)]
    want = np.mean([abs(mean(real, *at) - mean(made, *at)) for at in places])
    given = {} if max_lag is None else {"max_lag": most}
    found = metrics.autocorrelation_error(real, made, **given)
    assert found == pytest.approx(want, abs=1e-9) and 0 <= found <= 2
    # Level and unit of either set do not matter.
    other = [7.0 - 2.0 * shuffled(made), 0.5 * real]
    again = metrics.autocorrelation_error(*other, **given)
    assert again == pytest.approx(found, abs=1e-6)


@few
@given(kinds(channels=(2, 3)), st.booleans())
def test_the_error_of_correlations_is_numpy_s(pair, still):
    real, made = (x.astype(np.float64) for x in pair)
    if still:
        real[..., 0] = 5
    channels, each = real.shape[2], []
    for i in range(channels):
        for j in range(i):
            both = []
            for x in (real, made):
                a, b = x[..., i].ravel(), x[..., j].ravel()
                varies = np.ptp(a) > 0 and np.ptp(b) > 0
                both.append(np.corrcoef(a, b)[0, 1] if varies else 0.0)
            each.append(abs(both[0] - both[1]))
    found = metrics.cross_channel_error(real, made)
    assert found == pytest.approx(np.mean(each), abs=1e-9) and 0 <= found <= 2
    # The order of channels and the sets' level and unit do not matter.
    again = metrics.cross_channel_error(
        shuffled(made)[..., ::-1] - 9, 4 * real[..., ::-1]
    )
    assert again == pytest.approx(found, abs=1e-6)


@few
@given(kinds(count=3), st.floats(0.01, 0.99))
def test_the_nearest_and_who_copies(three, share):
    training, made, held = three
    copied = np.concatenate([made, training[:1]])
    found = metrics.nearest_distances(copied, training)
    each = [min(far(x, y) for y in training) for x in copied]
    want = np.array(each) / math.sqrt(training[0].size)
    assert found.shape == (len(copied),) and found[-1] == 0
    np.testing.assert_allclose(found, want, rtol=1e-9)
    told = metrics.memorization(training, made, held, fraction=share)
    near = {
        "synthetic": want[:-1],
        "held_out": metrics.nearest_distances(held, training),
    }
    for name, distances in near.items():
        assert told[name] == pytest.approx(np.median(distances), abs=1e-12)
    edge = np.quantile(near["held_out"], share)
    nearer, there = [
        sum(test(x) for x in near["synthetic"]) / len(made)
        for test in (lambda x: x < edge - 1e-9, lambda x: x <= edge + 1e-9)
    ]
    assert nearer - 1e-9 <= told["copies"] <= there + 1e-9
    # The held-out windows have this fraction, up to the quantile's window.
    of_held = metrics.memorization(training, held, held, fraction=share)["copies"]
    assert abs(of_held - share) < 1 / len(held) + 1e-9
    of_copies = metrics.memorization(training, training, held, fraction=share)
    assert of_copies["synthetic"] == 0 and (of_copies["copies"] == 1) >= (edge > 1e-9)


@st.composite
def beside(draw, times=(2, 6), channels=(1, 3)):
    """Draws windows and as many others, in few shapes, because each is compiled."""
    shape = draw(st.sampled_from(times)), draw(st.sampled_from(channels))
    number, dtype = draw(st.sampled_from([1, 2, 5])), draw(dtypes)
    one, two = draw(seeds), draw(seeds)
    return [drawn(seed, number, *shape, dtype=dtype) for seed in (one, two)]


@pytest.mark.slow
@few
@given(beside())
def test_warping_is_a_table_of_sums_for_each_channel(pair):
    raw, safe = (x.astype(np.float64) for x in pair)
    channels = range(raw.shape[2])
    want = [
        np.mean([warped(x[:, c], y[:, c]) for c in channels])
        for x, y in zip(raw, safe, strict=True)
    ]
    found = metrics.warping_distances(*pair)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert (found <= np.abs(raw - safe).sum(1).mean(-1) * 1.00001 + 1e-5).all()
    turned = metrics.warping_distances(*(x[::-1, ::-1] for x in pair[::-1]))
    np.testing.assert_allclose(turned[::-1], found, rtol=1e-5, atol=1e-5)
    assert (metrics.warping_distances(pair[0], pair[0]) == 0).all()


def changes(before, after, found):
    """Asserts that ``found`` reports the change of each window's number."""
    first, last = np.mean(before), np.mean(after)
    assert found["raw"] == pytest.approx(first, rel=1e-3, abs=1e-3)
    assert found["anonymized"] == pytest.approx(last, rel=1e-3, abs=1e-3)
    size = np.mean(np.abs(np.subtract(after, before)))
    assert found["absolute_error"] == pytest.approx(size, rel=1e-3, abs=1e-3)
    if found["raw"]:
        share = (found["anonymized"] - found["raw"]) / abs(found["raw"])
        assert found["relative_error"] == pytest.approx(share)
    else:
        assert found["relative_error"] is None


@pytest.mark.slow
@few
@given(beside())
def test_statistics_are_numpy_s_and_scipy_s(pair):
    raw, safe = (x.astype(np.float64) for x in pair)
    names = list("xyz"[: raw.shape[2]])
    found = metrics.compare_statistics(*pair, names)
    json.dumps(found, allow_nan=False)
    moment = lambda f: lambda x: f(x, axis=1) if np.ptp(x, axis=1).all() else None
    oracles = {
        "mean": lambda x: x.mean(1),
        "std": lambda x: x.std(1),
        "skewness": moment(stats.skew),
        "kurtosis": moment(stats.kurtosis),
        "energy": lambda x: (x**2).sum(1),
    }
    assert list(found) == names
    for column, told in enumerate(found.values()):
        assert set(told) == set(oracles)
        for name, oracle in oracles.items():
            both = [oracle(x[..., column]) for x in (raw, safe)]
            if all(part is not None for part in both):
                changes(*both, told[name])
    again = metrics.compare_statistics(
        *(x[::-1, ::-1, ::-1] for x in pair), names[::-1]
    )
    for name in names:
        for part, value in found[name]["std"].items():
            want = None if value is None else pytest.approx(value, rel=1e-4)
            assert again[name]["std"][part] == want


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from([1, 3]), st.sampled_from([50.0, 20, 7.3, 7.334]))
def test_steps_are_those_of_two_counters_sample_by_sample(seed, axes, rate_hz):
    """The windows swing at drawn rates about gravity along a drawn axis."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(120) / 50
    swings = [
        9.81 + rng.uniform(0, 6) * np.sin(2 * np.pi * rng.uniform(1, 3) * seconds)
        for _ in range(6)
    ]
    along = rng.normal(size=axes)
    along = along / np.linalg.norm(along) if axes > 1 else np.ones(1)
    raw, safe = (np.stack(half)[..., None] * along for half in (swings[:3], swings[3:]))
    found = metrics.step_errors(raw, safe, rate_hz)
    turned = metrics.step_errors(safe[::-1], raw[::-1], rate_hz)
    assert set(found) == {"threshold", "jerk_pace"}
    counters = {"threshold": reference.count_steps_threshold}
    if rate_hz <= 2 * 3.667:
        assert found["jerk_pace"] is None and turned["jerk_pace"] is None
    else:
        sos = signal.butter(5, 3.667, output="sos", fs=rate_hz)

        def adaptiv(swing):
            start = signal.sosfilt_zi(sos) * swing[0]
            smooth = signal.sosfilt(sos, swing, zi=start)[0]
            return reference.count_steps_jerk_pace(smooth, rate_hz)

        counters["jerk_pace"] = adaptiv
    for name, counter in counters.items():
        counts = [counter(np.abs(swing)) for swing in swings]
        changes(counts[:3], counts[3:], found[name])
        assert turned[name]["raw"] == found[name]["anonymized"]
        assert turned[name]["absolute_error"] == found[name]["absolute_error"]
