"""Metrics of drawn values: against loops and SciPy, and their invariances."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from jaxanon import metrics

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float64, np.float32, np.int16])
confidences = st.sampled_from([0.5, 0.8, 0.95, 0.999])
SENSORS = ("gravity.", "userAcceleration.", "rotationRate.", "acc_", "body_acc_")


def drawn(seed, *shape, dtype=np.float64, scale=4):
    """Draws numbers of a dtype; integers contain ties."""
    values = scale * np.random.default_rng(seed).normal(size=shape)
    return values.astype(dtype)


@few
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SENSORS),
            st.sampled_from("xyz"),
            st.sampled_from(["g", "m/s^2", "rad/s", ""]),
        ),
        min_size=1,
        max_size=7,
    ),
    st.sampled_from([(0, 2), (1, 1), (3, 4)]),
    dtypes,
)
def test_acceleration_is_that_of_one_sensor_or_the_sum_with_gravity(
    channels, shape, dtype
):
    names = [sensor + axis for sensor, axis, _ in channels]
    units = [unit for *_, unit in channels]
    recorded = drawn(7, *shape, len(names), dtype=dtype)
    scales = {"g": 9.80665, "m/s^2": 1.0}
    columns = {}  # The first usable column of each sensor and axis.
    for column, (sensor, axis, unit) in zip(recorded.T, channels, strict=True):
        if unit in scales:
            scaled = scales[unit] * column.astype(np.float64)
            columns.setdefault(sensor, {}).setdefault(axis, scaled)
    gravity = columns.pop("gravity.", {})
    parts = {
        sensor: {
            axis: column + gravity[axis] for axis, column in columns[sensor].items()
        }
        for sensor in columns
        if sensor in ("userAcceleration.", "body_acc_")
        and columns[sensor].keys() == gravity.keys()
    }
    sums = columns.get("acc_") or max(parts.values(), key=len, default=None)
    sums = sums or columns.get("rotationRate.")
    found = metrics.acceleration(recorded, names, units)
    if not sums:
        assert found is None
        return
    want = np.stack([column.T for column in sums.values()], -1)
    assert found.dtype == np.float32 and found.shape == (*shape, len(sums))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-3)


def delong(own, evidence, confidence):
    """Computes the area and its bounds window by window."""
    pair = lambda x, y: (x > y) + (x == y) / 2
    wins = np.array([[pair(x, y) for y in evidence[~own]] for x in evidence[own]])
    above, below = wins.mean(1), wins.mean(0)
    spread = above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)
    half = stats.norm.ppf((1 + confidence) / 2) * math.sqrt(spread)
    return wins.mean(), max(wins.mean() - half, 0), min(wins.mean() + half, 1)


@few
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=9),
    st.lists(st.integers(-3, 3), min_size=2, max_size=9),
    st.floats(0.01, 0.99),
    seeds,
)
def test_bounds_of_an_area_are_delong_s(own, others, confidence, seed):
    member = np.repeat([True, False], [len(own), len(others)])
    evidence = np.array(own + others)
    low, high = metrics.auc_interval(member, evidence, confidence)
    area, *want = delong(member, evidence, confidence)
    assert 0 <= low <= area <= high <= 1
    if len(set(own + others)) == 1:  # Half of the tied pairs count as won.
        pairs = min(len(own), len(others))
        lower, upper = (1 - confidence) / 2, (1 + confidence) / 2
        low_of, high_of = (pairs / 2, pairs / 2 + 1), (pairs / 2 + 1, pairs / 2)
        want = [stats.beta.ppf(lower, *low_of), stats.beta.ppf(upper, *high_of)]
        assert (low, high) == pytest.approx(want) and high - low > 0
    elif 0 < area < 1:
        assert (low, high) == pytest.approx(want)
    else:  # The requested number of pairs, without repeats, in a common order.
        pairs = min(len(own), len(others))
        most = ((1 - confidence) / 2) ** (1 / pairs)
        want = (most, 1) if area == 1 else (0, 1 - most)
        assert (low, high) == pytest.approx(want)
    # Order and increasing functions do not matter; a decreasing one mirrors it.
    rows = np.random.default_rng(seed).permutation(len(member))
    again = metrics.auc_interval(member[rows], np.exp(evidence[rows]), confidence)
    turned = metrics.auc_interval(member, -evidence.astype(np.float32), confidence)
    assert again == pytest.approx((low, high), abs=1e-12)
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-12)


@few
@given(st.lists(st.tuples(st.integers(1, 40), seeds), min_size=1), confidences)
def test_bounds_on_a_share_leave_as_much_as_they_say(pairs, confidence):
    trials = np.array([n for n, _ in pairs])
    hits = np.array([seed % (n + 1) for n, seed in pairs])
    low, high = metrics.proportion_bounds(hits, trials, confidence)
    some, not_all = hits > 0, hits < trials
    assert (low[~some] == 0).all() and (high[~not_all] == 1).all()
    assert (low <= hits / trials).all() and (hits / trials <= high).all()
    least = stats.binom.sf(hits - 1, trials, low)[some]
    most = stats.binom.cdf(hits, trials, high)[not_all]
    np.testing.assert_allclose(least, 1 - confidence, rtol=1e-6)
    np.testing.assert_allclose(most, 1 - confidence, rtol=1e-6)
    turned = metrics.proportion_bounds(trials - hits, trials, confidence)
    np.testing.assert_allclose(turned, [1 - high, 1 - low], atol=1e-12)
    table = metrics.proportion_bounds(
        hits[:, None], trials.max() * np.ones(3), confidence
    )
    assert np.shape(table) == (2, len(hits), 3)


def proved(halves, delta, confidence, thresholds):
    """Returns the largest ε that one threshold and one inequality prove."""
    both = (1 + confidence) / 2
    found = [0.0]
    for threshold in thresholds:
        above = [sum(x >= threshold for x in side) for side in halves]
        below = [len(side) - n for side, n in zip(halves, above, strict=True)]
        for called, own in ((above, 1), (below, 0)):
            n, m = len(halves[own]), len(halves[1 - own])
            low, _ = metrics.proportion_bounds(called[own], n, both)
            _, high = metrics.proportion_bounds(called[1 - own], m, both)
            if low > delta:
                found.append(math.log((low - delta) / high))
    return max(found)


@few
@given(
    *[st.tuples(seeds, st.sampled_from([1, 8, 60]), st.integers(0, 3))] * 2,
    st.sampled_from([0.0, 1e-3, 0.2]),
    confidences,
)
def test_epsilon_is_what_some_threshold_proves(chosen, counted, delta, confidence):
    sides = []
    for seed, count, gap in (chosen, counted):
        rng = np.random.default_rng(seed)
        sides.append(np.add(rng.integers(-2, 3, (2, count)), [[0], [gap]]))
    bound = lambda *given, **kw: metrics.epsilon_lower_bound(
        *given, confidence=confidence, **kw
    )
    on_all = proved(sides[0], delta, confidence, np.unique(sides[0]))
    assert bound(sides[0], sides[0], delta) == pytest.approx(on_all)
    # Selected on other runs, so at most the best threshold's value.
    found = bound(sides[0], sides[1], delta)
    options = [proved(sides[1], delta, confidence, [t]) for t in np.unique(sides[0])]
    assert 0 <= found <= max(options) + 1e-12
    perfect = np.repeat([[0], [1]], sides[1].shape[1], axis=1)
    assert found <= bound(perfect, perfect, 0.0) + 1e-12
    assert bound(sides[0], sides[0], min(2 * delta, 0.99)) <= on_all + 1e-12
    # Order and shape of runs, and increasing functions, do not matter.
    other = [np.arctan(side[:, ::-1]).reshape(2, -1, 1) for side in sides]
    assert bound(*other, delta) == pytest.approx(found)


@few
@given(st.data(), st.sampled_from([0.0, 1e-4, 0.01, 0.2]), confidences)
def test_right_guesses_refute_all_below_and_nothing_above(data, delta, confidence):
    canaries = data.draw(st.integers(1, 30))
    guesses = data.draw(st.integers(0, canaries))
    right = data.draw(st.integers(0, guesses))
    bound = lambda right, delta: metrics.epsilon_from_guesses(
        right, guesses, canaries, delta, confidence=confidence
    )
    found = bound(right, delta)

    def chance(epsilon):
        q = 1 / (1 + math.exp(-epsilon))
        each = lambda k: math.comb(guesses, k) * q**k * (1 - q) ** (guesses - k)
        tail = lambda least: sum(each(k) for k in range(max(least, 0), guesses + 1))
        plain = tail(right)
        more = [(tail(right - i) - plain) / i for i in range(1, right + 1)]
        return plain + 2 * canaries * delta * max(more, default=0.0)

    assert found >= 0 and (found == 0 or chance(found) <= 1 - confidence + 1e-9)
    above = [chance(found + more) for more in (1e-5, 0.1, 1.0)]
    assert min(above) > 1 - confidence - 1e-9
    assert bound(min(right + 1, guesses), delta) >= found - 1e-6
    assert bound(right, min(2 * delta + 1e-4, 0.9)) <= found + 1e-6


@few
@given(
    st.sampled_from([(1,), (7,), (2, 3), (2, 1, 4), ()]),
    *[seeds] * 3,
    dtypes,
    st.sampled_from([1e-3, 1.0, 50.0]),
)
def test_errors_of_forecasts_are_those_of_a_loop(shape, one, two, three, dtype, floor):
    truth = np.abs(drawn(one, *shape, dtype=dtype, scale=20))
    told, held = (drawn(seed, *shape, dtype=dtype, scale=20) for seed in (two, three))
    each = [(float(t), float(p)) for t, p in zip(truth.flat, told.flat, strict=True)]
    sizes = [abs(p - t) for t, p in each]
    scale = np.mean(
        [abs(float(b) - t) for (t, _), b in zip(each, held.flat, strict=True)]
    )
    want = {
        "accuracy": np.mean([max(0, 1 - abs(p - t) / max(t, 1)) for t, p in each]),
        "mae": np.mean(sizes),
        "rmse": math.sqrt(np.mean(np.square(sizes))),
        "mase": np.mean(sizes) / scale if scale else math.inf if any(sizes) else 1,
    }
    found = metrics.forecast_errors(truth, told, held)
    assert found == pytest.approx(want)
    assert metrics.mase(truth, told, held) == found["mase"]
    near = [max(0, 1 - abs(p - t) / max(t, floor)) for t, p in each]
    assert metrics.load_accuracy(truth, told, floor) == pytest.approx(np.mean(near))
    assert metrics.mase(truth, held, held) == 1
    same = metrics.forecast_errors(truth, truth, held)
    assert (same["accuracy"], same["mae"], same["rmse"]) == (1, 0, 0)


def ross(column, labels):
    """Estimates nats by the k nearest of a class, with or without the farthest.

    The trees' rounding decides whether a distance is above or below.
    """
    kept = np.bincount(labels)[labels] > 1
    column, labels, found = column[kept], labels[kept], []
    for closed in (True, False):
        each = []
        for value, label in zip(column, labels, strict=True):
            count = int((labels == label).sum())
            k = min(3, count - 1)
            far = np.abs(column - value)
            radius = np.sort(far[labels == label])[k]
            within = (far <= radius if closed else far < radius).sum()
            terms = [len(labels), k], [count, within]
            each.append(np.subtract(*map(special.digamma, terms)).sum())
        found.append(np.mean(each))
    return found


@few
@given(
    st.lists(st.integers(1, 7), min_size=2, max_size=4).filter(lambda n: sum(n) > 9),
    st.lists(st.sampled_from(["told", "half", "noise"]), min_size=1, max_size=3),
    seeds,
    st.sampled_from([np.float64, np.float32]),
)
def test_informativeness_is_a_loop_s_over_nearest_neighbours(
    counts, kinds, seed, dtype
):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    noise = rng.normal(size=(len(labels), 3))
    told = {"told": 9 * labels, "half": 3 * (labels // 2), "noise": 0 * labels}
    rows = np.stack([told[kind] for kind in kinds], 1) + noise[:, : len(kinds)]
    rows, key = rows.astype(dtype), np.array(rng.permutation(5))
    found = metrics.informativeness(jax.random.key(seed), rows, labels)
    share = np.array(counts) / len(labels)
    entropy = -(share @ np.log(share))
    bounds = [ross(column, labels) for column in rows.T.astype(np.float64)]
    low, high = np.clip(np.transpose(bounds) / entropy, 0, 1)
    assert found.shape == (len(kinds),)
    assert (low - 1e-6 <= found).all() and (found <= high + 1e-6).all()
    # Class names and feature units do not matter.
    again = metrics.informativeness(jax.random.key(seed), rows * 8, key[labels])
    assert (low - 1e-6 <= again).all() and (again <= high + 1e-6).all()


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_informativeness_is_of_as_many_rows_as_are_asked_for(seed):
    """Eleven rows give the value without one of the twelve, whichever is dropped."""
    labels, column = np.arange(12) % 3, drawn(seed, 12)
    told = lambda most: metrics.informativeness(
        jax.random.key(seed), column[:, None], labels, max_windows=most
    )
    np.testing.assert_array_equal(told(12), told(5000))
    bounds = []
    for row in range(12):
        own = np.delete(labels, row)
        share = np.bincount(own) / 11
        entropy = -(share @ np.log(share))
        bounds.append(np.clip(ross(np.delete(column, row), own), 0, np.inf) / entropy)
    low, high = np.minimum(np.transpose(bounds), 1)
    found = told(11)
    assert ((low - 1e-6 <= found) & (found <= high + 1e-6)).any()
