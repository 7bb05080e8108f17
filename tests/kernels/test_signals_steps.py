"""Step counters against loops, SciPy's filter and known walks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal

from jaxanon.kernels import signals
from jaxanon.kernels.signals import cases, reference, steps

G = 9.80665


def _smooth(acceleration, rate_hz):
    """Returns the magnitude filtered by SciPy."""
    r = np.linalg.norm(acceleration, axis=-1)
    sections = signal.butter(5, 3.667, fs=rate_hz, output="sos")
    return signal.sosfilt(sections, r, zi=signal.sosfilt_zi(sections) * r[0])[0]


@pytest.mark.parametrize(
    ("rate_hz", "pace_s"), [(20.0, 0.5), (50.0, 0.35), (200.0, 0.7)]
)
def test_steps_of_a_known_walk(rate_hz, pace_s):
    walks = [cases.walk(n, rate_hz, pace_s=pace_s) for n in (0, 1, 7, 40)]
    lengths = np.array([len(w) for w in walks])
    stacked = np.full((4, max(lengths), 3), np.nan, np.float32)
    for row, one in zip(stacked, walks, strict=True):
        row[: len(one)] = one
    count = jax.jit(lambda x, n: signals.count_steps_jerk_pace(x, rate_hz, n))
    np.testing.assert_array_equal(count(stacked, lengths), [0, 1, 7, 40])
    counted = jax.jit(signals.count_steps_threshold)(stacked, lengths)
    assert counted.dtype == jnp.float32
    np.testing.assert_array_equal(counted, [0, 1, 7, 40])


def _swings(*swings):
    """Returns swings up by ``jerk`` and back, one each ``pace_s``, at 1,000 Hz."""
    r = [0.0]
    for jerk, pace_s in swings:
        half = round(500 * pace_s)
        r += [jerk * (half - abs(k - half)) / half for k in range(1, 2 * half + 1)]
    return np.array([*r, 1.0])


STRONG, BRISK, WEAK = [(20, 0.4)] * 20, [(3, 0.6)] * 21, [(0.1, 0.4)] * 30
BY_HAND = [
    # 0.5 times 2.5 is required at first.
    ([(1.251, 0.4)], 1),
    ([(1.249, 0.4)], 0),
    # Paces of 0.2 s to 0.8 s are within a factor of 2 of 0.4 s; the first has none.
    ([(3, 0.202)] * 2, 2),
    ([(3, 0.198)] * 2, 1),
    ([(3, 0.798)] * 2, 2),
    ([(3, 0.802)] * 2, 1),
    # After 20 steps of jerk 20 the mean is 20: 5 is below half of it, but certain.
    ([*STRONG, (4.99, 0.4)], 20),
    ([*STRONG, (5.01, 0.4)], 21),
    # After 4 of them the mean is (4 * 20 + 16 * 2.5) / 20 = 6.
    ([*STRONG[:4], (3.01, 0.4)], 5),
    ([*STRONG[:4], (2.99, 0.4)], 4),
    # A peak that is not a step is dropped: its jerk changes no mean, but its time
    # counts.
    ([*WEAK, (1.249, 0.4)], 0),
    ([*WEAK, (1.251, 0.4)], 1),
    ([(3, 0.4), (0.1, 0.1), (3, 0.1)], 1),
    # 20 paces of 0.6 s replace 0.4 s, and 1.2 s is no longer too slow.
    ([*BRISK, (3, 1.198)], 22),
    ([*BRISK, (3, 1.202)], 21),
    # The longer of two times: 0.15 s between minima, 0.175 s or 0.275 s of maxima.
    ([(3, 0.2), (3, 0.15)], 1),
    ([(3, 0.4), (3, 0.15)], 2),
    # The first pace is 0.4 s, so the mean after two is (19 * 0.4 + 0.798) / 20 =
    # 0.4199, and twice that is 0.8398.
    ([(3, 0.798), (3, 0.798), (3, 0.838)], 3),
    ([(3, 0.798), (3, 0.798), (3, 0.842)], 2),
]


def _judged(r, real, rate_hz):
    """Counts the steps of a magnitude that is already filtered."""
    is_candidate, jerk, pace = steps._candidates(r, real)
    return steps._count_steps(is_candidate, jerk, pace / rate_hz)


def test_constants_of_adaptiv_by_hand():
    rows = [_swings(*swings) for swings, _ in BY_HAND]
    sizes = np.array([len(row) for row in rows])
    padded = np.zeros((len(rows), sizes.max()))
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    real = np.arange(padded.shape[1]) < sizes[:, None]
    with jax.enable_x64(True):
        counted = jax.jit(lambda r, real: _judged(r, real, 1000.0))(padded, real)
    for row, count, (swings, expected) in zip(rows, counted, BY_HAND, strict=True):
        loops = reference.count_steps_jerk_pace(row, 1000.0)
        assert loops == count == expected, swings


@pytest.mark.parametrize("rate_hz", [10.0, 50.0])
def test_counters_agree_with_loops_on_wandering_walks(rate_hz):
    x = cases.wander(3, 40, 400, rate_hz)
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 401, 40)
    lengths[:4] = 0, 1, 3, 400
    with jax.enable_x64(True):
        count = jax.jit(lambda x, n: signals.count_steps_jerk_pace(x, rate_hz, n))
        adaptiv = np.asarray(count(x, lengths))
        run = jax.jit(functools.partial(signals.count_steps_threshold, threshold=11.0))
        by_threshold = np.asarray(run(x, lengths))
    assert adaptiv.dtype == np.int32
    for row, size, first, second in zip(x, lengths, adaptiv, by_threshold, strict=True):
        smooth = _smooth(row[:size], rate_hz) if size else []
        assert first == reference.count_steps_jerk_pace(smooth, rate_hz)
        r = np.linalg.norm(row[:size], axis=-1)
        assert second == reference.count_steps_threshold(r, 11.0)
    # Both outcomes must occur.
    turns = sum(
        len(signal.argrelmin(_smooth(row[:n], rate_hz))[0])
        for row, n in zip(x, lengths, strict=True)
        if n
    )
    assert 0.2 * turns < adaptiv.sum() < 0.9 * turns


def test_level_stretches_do_not_turn():
    # Without a filter: tests only the turning points, on ties that floats rarely have.
    r = np.array([0, 0, 3, 3, 5, 5, 5, 2, 2, 1, 1, 4, 4, 9, 0, 0, 1.0])
    judge = jax.jit(lambda r, real: _judged(r, real, 20.0))
    for size in range(4, len(r) + 1):
        real = np.arange(len(r)) < size
        expected = reference.count_steps_jerk_pace(r[:size], 20.0)
        assert judge(jnp.asarray(r)[None], real[None])[0] == expected
    assert expected == 2


def test_threshold_counts_half_a_step_at_either_end():
    r = jnp.array([[11.0], [9.0], [10.5], [12.0]])
    assert signals.count_steps_threshold(r) == 1.0  # Down and up; 10.5 is above.
    assert signals.count_steps_threshold(r[1:]) == 0.5
    assert signals.count_steps_threshold(-r[1:]) == 0.5  # The magnitude is compared.
    assert signals.count_steps_threshold(r / G, threshold=10.6 / G) == 1.0
    assert signals.count_steps_threshold(r[:3], threshold=10.6) == 0.5


def test_steps_in_half_precision_vmap_and_over_a_mesh(traced_once, over_a_mesh):
    dtype = jnp.bfloat16
    x = np.stack([cases.walk(9, 50.0), np.full((325, 3), 5.6)])
    count = lambda x: signals.count_steps_jerk_pace(x, 50.0)
    run = jax.jit(jax.vmap(traced_once(count)))
    run(jnp.asarray(x + 1, dtype))
    np.testing.assert_array_equal(run(jnp.asarray(x, dtype)), [9, 0])
    np.testing.assert_array_equal(over_a_mesh(count)(jnp.asarray(x, dtype)), [9, 0])
    crossings = over_a_mesh(signals.count_steps_threshold)(jnp.asarray(x, dtype))
    np.testing.assert_array_equal(crossings, [9, 0])


def test_no_samples_no_steps():
    count = jax.jit(
        lambda x: (
            signals.count_steps_jerk_pace(x, 50.0),
            signals.count_steps_threshold(x),
        )
    )
    for time in (0, 3):
        for counted in count(jnp.full((2, time, 3), 5.0)):
            assert counted.shape == (2,) and not counted.any()
    assert count(jnp.zeros((0, 9, 3)))[0].shape == (0,)


def test_says_what_was_wrong():
    x = jnp.ones((4, 9, 2))
    for count in (
        signals.count_steps_threshold,
        lambda x: signals.count_steps_jerk_pace(x, 50.0),
    ):
        with pytest.raises(ValueError, match="acceleration must be float"):
            count(x[0, 0])
    with pytest.raises(ValueError, match=r"cutoff_hz must increase in \(0, 3.5\)"):
        signals.count_steps_jerk_pace(x, 7.0)
    with pytest.raises(TypeError, match="lengths must be integers, got float32"):
        signals.count_steps_jerk_pace(x, 50.0, jnp.ones(4))


def test_a_magnitude_equal_to_the_threshold_is_above_it():
    # Up to 10.5 and down again, exactly: one step. At 10.25 it is not reached.
    x = jnp.array([[10.0], [10.5], [10.0]])
    assert signals.count_steps_threshold(x) == 1
    assert signals.count_steps_threshold(x, threshold=10.75) == 0


def _steps_among(jerks, paces=None):
    """Counts steps among candidates with these jerks and paces in s (0: unknown)."""
    jerks = jnp.array(jerks, jnp.float32)
    paces = jnp.zeros(len(jerks)) if paces is None else jnp.array(paces, jnp.float32)
    return int(steps._count_steps(jnp.ones(len(jerks), bool), jerks, paces))


def test_bounds_of_jerk_and_pace_are_included():
    # Half of the initial 2.5; exact in binary.
    assert (_steps_among([1.25]), _steps_among([1.2499])) == (1, 0)
    # One step of 400 makes the mean 22.375, so 5 is below half of it, and certain.
    assert (_steps_among([400, 5]), _steps_among([400, 4.999])) == (2, 1)
    usual = np.float32(jnp.mean(jnp.full((1, 20), 0.4), axis=-1)[0])
    for share, off in ((0.5, 0.999), (2, 1.001)):
        assert _steps_among([9], [np.float32(share) * usual]) == 1
        assert _steps_among([9], [np.float32(share * off) * usual]) == 0
