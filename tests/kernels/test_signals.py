"""Windows, steps and statistics against loops, NumPy, SciPy and known walks."""

import functools

import chex
import hypothesis
import hypothesis.extra.numpy as arrays
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies
from jax.sharding import PartitionSpec
from jax.test_util import check_grads
from scipy import signal, stats

from jaxanon.datasets import windows as host
from jaxanon.datasets.recordings import Recording
from jaxanon.kernels import signals
from jaxanon.kernels.signals import cases, reference, sorting, steps

G = 9.80665


def _jit_cut(length, stride):
    return jax.jit(functools.partial(signals.cut_windows, length=length, stride=stride))


def _traced_once(fn):
    chex.clear_trace_counter()
    return chex.assert_max_traces(lambda *args: fn(*args), n=1)


def _over_a_mesh(fn, *args):
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("clients",))
    spec = PartitionSpec("clients")
    return jax.jit(jax.shard_map(fn, mesh=mesh, in_specs=spec, out_specs=spec))(*args)


@pytest.mark.parametrize("name", ["ragged", "apart", "gaps"])
def test_windows_are_those_of_the_datasets_and_of_the_loops(name):
    case = cases.CASES[name]
    x, lengths = cases.recordings(case, 0, np.float32)
    out, mask = _jit_cut(case.length, case.stride)(x, lengths)
    assert out.dtype == x.dtype and np.isfinite(out).all()
    assert out.shape[1] == (case.time - case.length) // case.stride + 1
    for row, found, real, size in zip(x, out, mask, lengths, strict=True):
        expected = host.cut(row[:size], case.length, case.stride)
        num = len(expected)
        np.testing.assert_array_equal(found[:num], expected)
        assert real[:num].all() and not real[num:].any() and not found[num:].any()
        loops = reference.cut_windows(row, size, case.length, case.stride)
        np.testing.assert_array_equal(expected, loops or expected)
        assert num == len(loops)
    recordings = [Recording(r[:n], 0, {}) for r, n in zip(x, lengths, strict=True)]
    each = host.cut_each(recordings, case.length, case.stride)
    np.testing.assert_array_equal(np.asarray(out)[np.asarray(mask)], each.windows)


def test_a_stream_is_cut_as_the_datasets_cut_it():
    # Laid end to end; a window is dropped if its first and last row differ in owner.
    x, lengths = cases.recordings(cases.CASES["gaps"], 0, np.float32)
    recordings = [
        Recording(row[:size], 0, {"subject": i})
        for i, (row, size) in enumerate(zip(x, lengths, strict=True))
    ]
    expected = host.cut_stream(recordings, 8, 3)
    rows = np.concatenate([r.rows for r in recordings])
    owner = np.repeat(np.arange(3.0), lengths)[:, None]
    cut = lambda rows: _jit_cut(8, 3)(rows, len(rows)).windows
    owners = cut(owner.astype(np.float32))[..., 0]
    keep = owners[:, 0] == owners[:, -1]
    keep = keep & (np.arange(len(keep)) < round((len(rows) - 8) / 3))
    np.testing.assert_array_equal(cut(rows)[keep], expected.windows)
    np.testing.assert_array_equal(owners[keep, 0], expected.labels["subject"])


@hypothesis.settings(max_examples=8, deadline=None)
@hypothesis.given(
    strategies.integers(0, 24), strategies.integers(1, 9), strategies.integers(1, 11)
)
def test_any_length_and_stride(time, length, stride):
    x = np.arange(2.0 * time).reshape(time, 2).astype(np.float32)
    out = signals.cut_windows(x, None, length, stride)
    np.testing.assert_array_equal(out.windows, host.cut(x, length, stride))
    assert out.mask.all() and out.mask.shape == out.windows.shape[:1]


def test_windows_of_every_type_under_vmap_grad_and_a_mesh():
    case = cases.CASES["ragged"]
    x, lengths = cases.recordings(case, 0, np.float32)
    cut = functools.partial(signals.cut_windows, length=case.length, stride=case.stride)
    run = jax.jit(jax.vmap(_traced_once(cut)))
    run(x + 1, lengths)
    expected = run(x, lengths)
    chex.assert_trees_all_equal(_over_a_mesh(cut, x, lengths), expected)
    half = jax.jit(cut)(x.astype(jnp.bfloat16), lengths)
    assert half.windows.dtype == jnp.bfloat16
    np.testing.assert_array_equal(half.windows, expected.windows.astype(jnp.bfloat16))
    # Each sample's gradient is the number of real windows that it is in.
    grads = jax.jit(jax.grad(lambda x: jnp.sum(cut(x, lengths).windows)))(x)
    starts = np.arange(0, case.time - case.length + 1, case.stride)
    for row, size in zip(grads, lengths, strict=True):
        count = np.zeros(case.time)
        for start in starts[starts + case.length <= size]:
            count[start : start + case.length] += 1
        np.testing.assert_array_equal(row, count[:, None] * np.ones((1, case.channels)))


def _smooth(acceleration, rate_hz):
    """The filtered magnitude, by SciPy."""
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
    """Steps in swings up by ``jerk`` and back, one each ``pace_s``, as (jerk, pace)."""
    r = [0.0]
    for jerk, pace_s in swings:
        half = round(500 * pace_s)
        r += [jerk * (half - abs(k - half)) / half for k in range(1, 2 * half + 1)]
    return reference.count_steps_jerk_pace([*r, 1.0], 1000.0)


def test_constants_of_adaptiv_by_hand():
    # 0.5 times 2.5 is needed at first.
    assert _swings((1.251, 0.4)) == 1
    assert _swings((1.249, 0.4)) == 0
    # Paces of 0.2 s to 0.8 s are within a factor of 2 of 0.4 s; the first has none.
    for pace_s, expected in ((0.202, 2), (0.198, 1), (0.798, 2), (0.802, 1)):
        assert _swings((3, pace_s), (3, pace_s)) == expected
    # After 20 steps of jerk 20 the mean is 20: below half of it, but 5 is sure.
    strong = [(20, 0.4)] * 20
    assert _swings(*strong, (4.99, 0.4)) == 20
    assert _swings(*strong, (5.01, 0.4)) == 21
    # After 4 of them the mean is (4 * 20 + 16 * 2.5) / 20 = 6.
    assert _swings(*strong[:4], (3.01, 0.4)) == 5
    assert _swings(*strong[:4], (2.99, 0.4)) == 4
    # What is no step is forgotten: its jerk moves no mean. Its time still counts.
    assert _swings(*[(0.1, 0.4)] * 30, (1.249, 0.4)) == 0
    assert _swings(*[(0.1, 0.4)] * 30, (1.251, 0.4)) == 1
    assert _swings((3, 0.4), (0.1, 0.1), (3, 0.1)) == 1
    # 20 paces of 0.6 s replace 0.4 s, and 1.2 s is no longer too slow.
    brisk = [(3, 0.6)] * 21
    assert _swings(*brisk, (3, 1.198)) == 22
    assert _swings(*brisk, (3, 1.202)) == 21
    # The longer of two times: here 0.15 s between minima, 0.175 or 0.275 s of maxima.
    assert _swings((3, 0.2), (3, 0.15)) == 1
    assert _swings((3, 0.4), (3, 0.15)) == 2


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
    # Both kinds of verdict must have been put to the test.
    turns = sum(
        len(signal.argrelmin(_smooth(row[:n], rate_hz))[0])
        for row, n in zip(x, lengths, strict=True)
        if n
    )
    assert 0.2 * turns < adaptiv.sum() < 0.9 * turns


def test_level_stretches_do_not_turn():
    # Without a filter: the judge of the turns alone, on ties that floats rarely have.
    r = np.array([0, 0, 3, 3, 5, 5, 5, 2, 2, 1, 1, 4, 4, 9, 0, 0, 1.0])
    judge = jax.jit(lambda r, real: steps._judge(*_paced(r, real)))

    def _paced(r, real):
        is_candidate, jerk, pace = steps._candidates(r, real)
        return is_candidate, jerk, pace / 20.0

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


def test_steps_in_half_precision_vmap_and_over_a_mesh():
    dtype = jnp.bfloat16
    x = np.stack([cases.walk(9, 50.0), np.full((325, 3), 5.6)])
    count = lambda x: signals.count_steps_jerk_pace(x, 50.0)
    run = jax.jit(jax.vmap(_traced_once(count)))
    run(jnp.asarray(x + 1, dtype))
    np.testing.assert_array_equal(run(jnp.asarray(x, dtype)), [9, 0])
    np.testing.assert_array_equal(_over_a_mesh(count, jnp.asarray(x, dtype)), [9, 0])
    crossings = _over_a_mesh(signals.count_steps_threshold, jnp.asarray(x, dtype))
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


@pytest.fixture(scope="module")
def described():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(3, 4, 25, 2)) - 1.5 + 5 * rng.normal(size=(3, 4, 1, 2))
    with jax.enable_x64(True):
        return x, jax.jit(signals.window_statistics)(x)


def test_statistics_are_numpys_and_scipys(described):
    x, found = described
    axis = {"axis": -2}
    low, high = np.percentile(x, [25, 75], **axis)
    expected = signals.WindowStatistics(
        mean=x.mean(**axis),
        std=x.std(**axis),
        variance=x.var(**axis),
        minimum=x.min(**axis),
        maximum=x.max(**axis),
        median=np.median(x, **axis),
        interquartile_range=stats.iqr(x, **axis),
        skewness=stats.skew(x, **axis),
        kurtosis=stats.kurtosis(x, **axis),
        energy=np.sum(x**2, **axis),
        rms=np.sqrt(np.mean(x**2, **axis)),
        zero_crossings=np.sum(np.diff(x < 0, **axis), **axis).astype(np.int32),
    )
    np.testing.assert_allclose(high - low, expected.interquartile_range)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, expected)
    chex.assert_trees_all_close(found, expected, rtol=1e-12, atol=1e-12)


def test_statistics_are_those_of_the_loops_whatever_is_masked():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 12, 2))
    mask = rng.random((40, 12)) < rng.random((40, 1))
    mask[0], mask[1] = False, True
    mask[2] = np.arange(12) == 5
    tainted = np.where(mask[..., None], x, np.nan)
    with jax.enable_x64(True):
        found = jax.jit(signals.window_statistics)(tainted, mask)
    for name, values in found._asdict().items():
        for i in range(40):
            real = x[i, mask[i]]
            if name == "zero_crossings":  # Neighbours in time, not in the list.
                below, both = x[i] < 0, mask[i, 1:] & mask[i, :-1]
                loops = np.sum((below[1:] != below[:-1]) & both[:, None], axis=0)
            elif len(real):
                loops = [reference.window_statistics(list(c))[name] for c in real.T]
            else:
                loops = 0
            np.testing.assert_allclose(values[i], loops, rtol=1e-10, atol=1e-12)
    crossings = reference.window_statistics(list(x[1, :, 0]))["zero_crossings"]
    assert found.zero_crossings[1, 0] == crossings


@pytest.mark.parametrize("value", [0.0, 0.1, -1e4, 1e-40, 3e38])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_constant_windows(value, dtype):
    x = jnp.full((7, 1), value, dtype)
    found = jax.jit(signals.window_statistics)(x)
    zero = ("std", "variance", "skewness", "kurtosis", "interquartile_range")
    for name in (*zero, "zero_crossings"):
        assert getattr(found, name) == 0, name
    for name in ("mean", "median", "minimum", "maximum"):
        assert getattr(found, name) == x[0].astype(jnp.float32), name


def test_moments_survive_offset_and_scale():
    x = np.random.default_rng(0).gamma(2.0, size=(100, 1))
    run = jax.jit(signals.window_statistics)
    for scale, offset, rtol in ((1e-25, 0, 1e-5), (1e25, 0, 1e-5), (1, 1e3, 1e-3)):
        shifted = (scale * x + offset).astype(np.float32)
        found = run(shifted)
        exact = shifted.astype(np.float64)
        np.testing.assert_allclose(found.skewness, stats.skew(exact), rtol=rtol)
        np.testing.assert_allclose(found.kurtosis, stats.kurtosis(exact), rtol=rtol)
        np.testing.assert_allclose(found.std, exact.std(axis=0), rtol=1e-5)
        rms = np.sqrt(np.mean(exact**2, axis=0))
        np.testing.assert_allclose(found.rms, rms, rtol=1e-5)


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    arrays.arrays(np.float32, (9, 1), elements=strategies.floats(-64, 64, width=16)),
    strategies.sampled_from([-4.0, 0.5, 2.0]),
)
def test_how_statistics_follow_a_scale(x, scale):
    run = jax.jit(signals.window_statistics)
    one, other = run(x), run(scale * x)
    sign = np.sign(scale)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(other.mean, scale * one.mean, atol=1e-4)
    close(other.std, abs(scale) * one.std)
    close(other.rms, abs(scale) * one.rms)
    close(other.energy, scale**2 * one.energy)
    close(other.median, scale * one.median)
    close(other.interquartile_range, abs(scale) * one.interquartile_range)
    close(other.skewness, sign * one.skewness)
    close(other.kurtosis, one.kurtosis)
    assert one.minimum <= one.median <= one.maximum and one.std <= one.rms + 1e-4
    assert one.kurtosis >= one.skewness**2 - 2 - 1e-3 or one.std == 0


def test_energy_of_a_table_that_was_published():
    # Mean .28 and deviation .12 over windows of 125 samples, energy 12.11 (GEN).
    energy = 125 * (0.28**2 + 0.12**2)
    assert abs(energy / 12.11 - 1) < 0.05
    x = 0.28 + 0.12 * np.sqrt(2) * np.sin(2 * np.pi * np.arange(125) / 25)
    found = jax.jit(signals.window_statistics)(x[:, None].astype(np.float32))
    np.testing.assert_allclose(found.energy, energy, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sorting_by_bits_is_sorting(dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, 50)) * 10.0 ** rng.integers(-30, 30, (3, 50))).astype(
        dtype
    )
    tiny = np.finfo(dtype).tiny / 4
    x[:, :8] = 0.0, -0.0, np.inf, -np.inf, tiny, -tiny, 1.0, 1.0
    with jax.enable_x64(True):
        ascending = jax.jit(sorting.in_order)(x)
    assert ascending.dtype == dtype
    np.testing.assert_array_equal(ascending, np.sort(x))


def test_nothing_to_describe_is_zero_and_a_nan_is_not_hidden():
    run = jax.jit(signals.window_statistics)
    mask = np.arange(5)[None] < np.array([[0], [2]])
    x = np.where(mask[..., None], [[[1.0, np.nan]]], np.nan).astype(np.float32)
    empty, found = run(np.ones((2, 0, 3), np.float32)), run(x, mask)
    for name, values in found._asdict().items():
        assert not values[0].any(), name
        if name != "zero_crossings":
            assert not jnp.isnan(values[1, 0]) and jnp.isnan(values[1, 1]), name
    for name, values in empty._asdict().items():
        assert values.shape == (2, 3) and not values.any(), name


def test_statistics_have_gradients_and_zero_where_constant():
    x = np.random.default_rng(0).normal(size=(2, 9, 1))
    mask = np.arange(9)[None] < np.array([[9], [6]])

    def smooth(x):
        found = signals.window_statistics(x, mask)._asdict()
        return jnp.stack([v for k, v in found.items() if k != "zero_crossings"])

    with jax.enable_x64(True):
        check_grads(jax.jit(smooth), (x,), 1, modes=["rev"], atol=1e-6)
        jacobian = jax.jit(jax.jacrev(smooth))
        assert not jacobian(x)[..., 1, 6:, :].any()
        still = jacobian(np.ones_like(x))
    assert np.isfinite(still).all()
    for index in (1, 2, 7, 8):  # Deviation, variance, skewness, kurtosis.
        assert not still[index].any()
    np.testing.assert_allclose(still[0, 0, 0, 0], 1 / 9)


def test_statistics_of_half_precision_vmap_and_a_mesh():
    x = np.random.default_rng(0).normal(size=(4, 300, 2)) + 30
    # The squares sum to 270,000: beyond float16, and beyond bfloat16's 8 bits.
    wide = jax.jit(signals.window_statistics)
    narrow = jnp.asarray(x, jnp.float16)
    run = jax.jit(jax.vmap(_traced_once(signals.window_statistics)))
    run(narrow + 1)
    found = run(narrow)
    assert found.energy.dtype == jnp.float32
    chex.assert_trees_all_close(found, wide(narrow.astype(jnp.float32)), rtol=1e-6)
    narrow = jnp.asarray(x, jnp.bfloat16)
    found = _over_a_mesh(signals.window_statistics, narrow)
    chex.assert_trees_all_close(found, wide(narrow.astype(jnp.float32)), rtol=1e-6)


def test_says_what_was_wrong():
    x = jnp.ones((4, 9, 2))
    with pytest.raises(ValueError, match=r"recordings must be float\[\.\.\., time, ch"):
        signals.cut_windows(x[0, 0], None, 2, 1)
    with pytest.raises(ValueError, match="length must be an int >= 1, got 0"):
        signals.cut_windows(x, None, 0, 1)
    with pytest.raises(ValueError, match="stride must be an int >= 1, got 2.0"):
        signals.cut_windows(x, None, 2, 2.0)
    with pytest.raises(ValueError, match=r"lengths must have .* shape \(4,\), got \(3"):
        signals.cut_windows(x, jnp.ones(3, int), 2, 1)
    with pytest.raises(TypeError, match="lengths must be integers, got bool"):
        signals.cut_windows(x, jnp.ones(4, bool), 2, 1)
    with pytest.raises(ValueError, match=r"windows must be float.* one channel is win"):
        signals.window_statistics(x[0, 0])
    for mask in (jnp.ones((4, 9)), jnp.ones((4, 9, 2), bool)):
        with pytest.raises(
            ValueError, match=r"mask must be bool\[\.\.\., time\] of sh"
        ):
            signals.window_statistics(x, mask)
    for count in (
        signals.count_steps_threshold,
        lambda x: signals.count_steps_jerk_pace(x, 50.0),
    ):
        with pytest.raises(ValueError, match="acceleration must be float"):
            count(x[0, 0])
    with pytest.raises(ValueError, match=r"cutoff_hz must rise within \(0, 3.5\)"):
        signals.count_steps_jerk_pace(x, 7.0)
