"""Butterworth filters against SciPy, plain loops, and closed forms."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy import signal

from jaxanon.kernels import signals
from jaxanon.kernels.signals import cases, reference

RATE = 50.0
CUTOFFS = {"lowpass": (0.3, 3.667, 20.0), "highpass": (0.3, 10.0)}
CUTOFFS["bandpass"] = ((0.3, 15.0), (3.0, 4.0), (0.1, 24.0))
DESIGNS = [
    pytest.param(order, cutoff, kind, id=f"{kind}-{order}-{cutoff}")
    for kind, cutoffs in CUTOFFS.items()
    for cutoff in cutoffs
    for order in (1, 2, 5, 8)
]
each_design = pytest.mark.parametrize(("order", "cutoff", "kind"), DESIGNS)


@each_design
def test_design_is_scipys_filter(order, cutoff, kind):
    ours = signals.butterworth(order, cutoff, RATE, kind)
    theirs = signal.butter(order, cutoff, kind, fs=RATE, output="sos")
    assert ours.shape == theirs.shape and ours.dtype == np.float64
    x = np.random.default_rng(0).normal(size=500)
    for run in (signal.sosfilt, signal.sosfiltfilt):
        np.testing.assert_allclose(run(ours, x), run(theirs, x), rtol=0, atol=1e-9)


@each_design
def test_gain_is_one_in_the_passband_and_halves_the_power_at_the_cutoff(
    order, cutoff, kind
):
    sections = signals.butterworth(order, cutoff, RATE, kind)
    _, at_cutoff = signal.sosfreqz(sections, np.ravel(cutoff), fs=RATE)
    np.testing.assert_allclose(abs(at_cutoff), np.sqrt(0.5), rtol=1e-6)
    bent = np.tan(np.pi * np.ravel(cutoff) / RATE)
    best = {
        "lowpass": 0.0,
        "highpass": RATE / 2,
        "bandpass": RATE / np.pi * np.arctan(np.sqrt(np.prod(bent))),
    }[kind]
    for section in sections:  # Each of them, so that none over- or underflows.
        _, gain = signal.sosfreqz(section[None], [best], fs=RATE)
        np.testing.assert_allclose(abs(gain), 1, rtol=1e-6)


SETTINGS = [(5, 3.667, "lowpass"), (2, 0.3, "highpass"), (3, (0.5, 12.0), "bandpass")]


@pytest.mark.parametrize("setting", SETTINGS, ids=[kind for *_, kind in SETTINGS])
@pytest.mark.parametrize("time", [1, 30, 333])
def test_both_ways_agree_with_scipy(setting, time):
    order, cutoff, kind = setting
    sections = signal.butter(order, cutoff, kind, fs=RATE, output="sos")
    rng = np.random.default_rng(time)
    x = 9.81 + rng.normal(size=(2, 3, time, 2))
    before = rng.normal(size=(2, 3, len(sections), 2, 2))
    with jax.enable_x64(True):
        y, after = jax.jit(functools.partial(signals.sosfilt, sections))(x, before)
    theirs, zi = signal.sosfilt(sections, x, axis=-2, zi=np.moveaxis(before, 2, 0))
    np.testing.assert_allclose(y, theirs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(after, np.moveaxis(zi, 0, 2), rtol=0, atol=1e-10)
    padlen = {1: 0, 30: 7, 333: None}[time]
    with jax.enable_x64(True):
        run = functools.partial(signals.sosfiltfilt, sections, padlen=padlen)
        y = jax.jit(run)(x)
    theirs = signal.sosfiltfilt(sections, x, axis=-2, padlen=padlen)
    np.testing.assert_allclose(y, theirs, rtol=0, atol=1e-10)


def test_agrees_with_loops():
    sections = signals.butterworth(3, (0.5, 12.0), RATE, "bandpass")
    x = np.random.default_rng(0).normal(size=70)
    rest = reference.steady_state(sections, x[0])

    @jax.jit
    def run(x):
        start = signals.sosfilt_steady_state(sections, x[0])
        y, state = signals.sosfilt(sections, x, start)
        return start, y, state, signals.sosfiltfilt(sections, x, padlen=11)

    with jax.enable_x64(True):
        start, y, state, both = run(x[:, None])
    np.testing.assert_allclose(start[..., 0], rest, atol=1e-13)
    loops, after = reference.sosfilt(sections, x, rest)
    np.testing.assert_allclose(y[:, 0], loops, atol=1e-12)
    np.testing.assert_allclose(state[..., 0], after, atol=1e-12)
    loops = reference.sosfiltfilt(sections, list(x), 11)
    np.testing.assert_allclose(both[:, 0], loops, atol=1e-12)


def test_steady_state_is_scipys_and_holds():
    sections = signals.butterworth(5, 3.667, RATE)
    first = np.array([[2.0, -1.0], [0.0, 5.0]])

    @jax.jit
    def run(x):
        start = signals.sosfilt_steady_state(sections, x[:, 0])
        return start, *signals.sosfilt(sections, x, start)

    with jax.enable_x64(True):
        start, y, after = run(np.stack([first] * 80, axis=1))
    zi = signal.sosfilt_zi(sections)[None, :, :, None]
    np.testing.assert_allclose(start, zi * first[:, None, None, :], atol=1e-12)
    np.testing.assert_allclose(y, np.stack([first] * 80, axis=1), atol=1e-12)
    np.testing.assert_allclose(after, start, atol=1e-12)


def test_two_parts_give_what_one_gives():
    sections = signals.butterworth(4, 2.0, RATE)
    x = np.random.default_rng(1).normal(size=(150, 1))

    @jax.jit
    def run(x):
        first, state = signals.sosfilt(sections, x[:47])
        second, state = signals.sosfilt(sections, x[47:], state)
        parts = jnp.concatenate([first, second]), state
        return parts, signals.sosfilt(sections, x)

    with jax.enable_x64(True):
        chex.assert_trees_all_close(*run(x), atol=1e-13)


@pytest.mark.parametrize("name", ["ragged", "apart"])
def test_ragged_recordings_are_filtered_each_by_itself(name):
    case = cases.CASES[name]
    x, lengths = cases.recordings(case, 0)
    sections = signals.butterworth(2, 3.667, RATE)
    with jax.enable_x64(True):
        y = jax.jit(functools.partial(signals.sosfiltfilt, sections))(x, lengths)
    for row, out, size in zip(x, np.asarray(y), lengths, strict=True):
        assert not out[size:].any()
        if size > 9:  # SciPy rejects shorter ones.
            theirs = signal.sosfiltfilt(sections, row[:size], axis=0)
            np.testing.assert_allclose(out[:size], theirs, atol=1e-9)
        for c in range(case.channels if size else 0):
            loops = reference.sosfiltfilt(sections, list(row[:size, c]), 9)
            np.testing.assert_allclose(out[:size, c], loops, atol=1e-9)


def test_vmap_of_one_is_the_batch_and_compiles_once(traced_once):
    sections = signals.butterworth(2, 3.667, RATE)
    run = traced_once(functools.partial(signals.sosfiltfilt, sections))
    mapped = jax.jit(jax.vmap(run))
    for seed in range(3):
        x, lengths = cases.recordings(cases.CASES["ragged"], seed, np.float32)
        out = mapped(x, lengths)
    batch = jax.jit(functools.partial(signals.sosfiltfilt, sections))(x, lengths)
    np.testing.assert_allclose(out, batch, atol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_precision(dtype):
    # At 0.3 Hz the poles are near 1; float32 coefficients would show rounding errors.
    sections = signals.butterworth(5, 0.3, RATE)
    x = 9.81 + np.random.default_rng(0).normal(size=(2000, 1))
    x = jnp.asarray(x, dtype)
    y, state = jax.jit(functools.partial(signals.sosfilt, sections))(x)
    exact = signal.sosfilt(sections, np.asarray(x, np.float64), axis=0)
    assert y.dtype == dtype and state.dtype == jnp.float32
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(
        np.asarray(y, np.float64), exact, rtol=eps, atol=1e-3 if eps < 1e-6 else 2e-3
    )


def test_gradients_agree_with_finite_differences():
    sections = signals.butterworth(3, 5.0, RATE)
    x, lengths = cases.recordings(cases.CASES["ragged"], 0)
    x, lengths = np.nan_to_num(x)[:3, :24], np.array([0, 7, 20])

    def forward(x):
        return signals.sosfilt(
            sections, x, signals.sosfilt_steady_state(sections, x[:, 0])
        )

    with jax.enable_x64(True):
        check_grads(jax.jit(forward), (x,), 1, modes=["rev"], atol=1e-6)
        both = jax.jit(lambda x: signals.sosfiltfilt(sections, x, lengths))
        check_grads(both, (x,), 1, modes=["rev"], atol=1e-6)
        grads = jax.jit(jax.grad(lambda x: jnp.sum(both(x) ** 2)))(x)
    for row, size in zip(grads, lengths, strict=True):
        assert row[:size].all() and not row[size:].any()


def test_no_samples_and_no_recordings():
    sections = signals.butterworth(2, 5.0, RATE)
    run = jax.jit(functools.partial(signals.sosfilt, sections))
    kept = np.ones((3, 1, 2, 2), np.float32)
    y, state = run(np.zeros((3, 0, 2), np.float32), kept)
    assert y.shape == (3, 0, 2)
    np.testing.assert_array_equal(state, kept)
    y, state = run(np.zeros((0, 90, 2), np.float32))
    assert y.shape == (0, 90, 2) and state.shape == (0, 1, 2, 2)


def test_recordings_of_clients_over_a_mesh(over_a_mesh):
    sections = signals.butterworth(2, 5.0, RATE)
    x, lengths = cases.recordings(cases.CASES["ragged"], 0, np.float32)
    run = functools.partial(signals.sosfiltfilt, sections)
    expected = jax.jit(run)(x, lengths)
    np.testing.assert_allclose(over_a_mesh(run)(x, lengths), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 4.0), "order must be >= 1, got 0"),
        ((1, 1.0, 0.0), "rate_hz must be > 0, got 0.0"),
        ((1, 2.0, 4.0), r"cutoff_hz must increase in \(0, 2.0\).*got 2.0"),
        ((1, -1.0, 4.0), "cutoff_hz must increase in"),
        (
            (1, (1.0, 0.5), 4.0, "bandpass"),
            r"cutoff_hz must increase.*got \(1.0, 0.5\)",
        ),
        (
            (1, 1.0, 4.0, "bandpass"),
            r"cutoff_hz must have 2 number\(s\) for 'bandpass'",
        ),
        (
            (1, 1.0, 4.0, "low"),
            r"kind must be one of .* got 'low'\. Did you mean 'lowpass'\?",
        ),
    ],
)
def test_design_says_what_was_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        signals.butterworth(*arguments)


def test_filters_say_what_was_wrong():
    good = signals.butterworth(1, 1.0, 4.0)
    x = jnp.ones((9, 1))
    refused = [
        (good[0], x, r"sections must be float\[sections, 6\] .* got shape \(6,\)"),
        (good * 2, x, "sections must be stable .* got denominators"),
        (np.array([[1, 0, 0, 1, -2.0, 1]]), x, "sections must be stable"),
        (good, jnp.ones(9), r"x must be float\[\.\.\., time, channels\], got shape"),
        (good, jnp.ones((9, 1), int), "of int32"),
    ]
    for sections, values, message in refused:
        for run in (signals.sosfilt, signals.sosfiltfilt):
            with pytest.raises(ValueError, match=message):
                run(sections, values)
    with pytest.raises(ValueError, match=r"state must be .* \(1, 2, 1\), got shape"):
        signals.sosfilt(good, x, jnp.ones((2, 1)))
    with pytest.raises(ValueError, match=r"first must be float\[\.\.\., channels\]"):
        signals.sosfilt_steady_state(good, 1.0)
    with pytest.raises(ValueError, match=r"padlen must be .* got 9 for time = 9"):
        signals.sosfiltfilt(good, x, padlen=9)
    with pytest.raises(ValueError, match=r"padlen must be >= 0, got -1"):
        signals.sosfiltfilt(good, x, padlen=-1)
    with pytest.raises(ValueError, match=r"lengths must have one entry per recording"):
        signals.sosfiltfilt(good, x, jnp.array([9]))
    with pytest.raises(TypeError, match="lengths must be integers, got float32"):
        signals.sosfiltfilt(good, x, jnp.array(9.0))
    with pytest.raises(TypeError, match="sections must be on the host"):
        jax.jit(signals.sosfilt)(good, x)


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    sections = signals.butterworth(np.int64(2), np.float32(0.5), np.int32(4))
    np.testing.assert_array_equal(sections, signals.butterworth(2, 0.5, 4.0))
    x = jnp.ones((5, 1))
    filtered = signals.sosfiltfilt(sections, x, padlen=np.int64(2))
    np.testing.assert_allclose(filtered, x, rtol=1e-5)
    with pytest.raises(TypeError, match="order must be a Python int, got 1.5"):
        signals.butterworth(1.5, 0.5, 4.0)
    for name, call in (
        ("order", lambda one: signals.butterworth(one, 0.5, 4.0)),
        ("cutoff_hz", lambda one: signals.butterworth(1, (one, 1.5), 4.0, "bandpass")),
        ("rate_hz", lambda one: signals.butterworth(1, 0.25, one)),
        ("padlen", lambda one: signals.sosfiltfilt(sections, x, padlen=one)),
    ):
        with pytest.raises(
            TypeError, match=f"{name} must be known when .* static_argn"
        ):
            jax.jit(call)(1)
