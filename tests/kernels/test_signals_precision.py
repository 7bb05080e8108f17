"""Filters in float32 against SciPy in float64: low cutoffs and large offsets."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from jaxanon import kernels


@pytest.mark.parametrize("rate_hz", [500.0, 1000.0])
@pytest.mark.parametrize(("kind", "level"), [("lowpass", 9.81), ("highpass", 0.0)])
def test_a_constant_stays_constant_at_a_low_cutoff(rate_hz, kind, level):
    sections = kernels.butterworth(2, 0.05, rate_hz, kind)
    x = np.full((1024, 1), 9.81, np.float32)
    start = kernels.sosfilt_steady_state(sections, x[0])
    forward, _ = kernels.sosfilt(sections, x, start)
    both = kernels.sosfiltfilt(sections, x)
    traced = jax.jit(lambda x: kernels.sosfiltfilt(sections, x))(x)
    for y in (forward, both, traced):
        np.testing.assert_allclose(y, np.full_like(x, level), rtol=0, atol=2e-6)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    order=st.sampled_from((1, 2, 5)),
    cutoff=st.floats(1e-4, 0.45),
    kind=st.sampled_from(("lowpass", "highpass", "bandpass")),
    offset=st.sampled_from((0.0, 9.81, -1e4)),
    seed=st.integers(0, 2**16),
)
def test_digits_survive_any_cutoff_and_offset(order, cutoff, kind, offset, seed):
    cut = (cutoff / 2, cutoff) if kind == "bandpass" else cutoff
    sections = kernels.butterworth(order, cut, 1.0, kind)
    x = np.random.default_rng(seed).normal(size=(512, 1)).astype(np.float32)
    x = (x + np.float32(offset)).astype(np.float32)
    exact = x.astype(np.float64)
    tolerance = 2e-5 * (1 + abs(offset if kind == "lowpass" else 0))
    started = signal.sosfilt(sections, exact, axis=0)
    np.testing.assert_allclose(
        kernels.sosfilt(sections, x)[0], started, atol=2e-5 * (1 + abs(offset))
    )
    # SciPy keeps the offset in its states, so its own error at 1e4 is removed first.
    centred = exact - exact[0]
    gain = exact[0] if kind == "lowpass" else 0.0
    theirs = signal.sosfiltfilt(sections, centred, axis=0, padlen=30) + gain
    ours = kernels.sosfiltfilt(sections, x, padlen=30)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    padded = np.concatenate([x, np.full((9, 1), np.nan, np.float32)])
    ragged = kernels.sosfiltfilt(sections, padded, np.array(512), padlen=30)
    np.testing.assert_allclose(ragged[:512], theirs, rtol=0, atol=tolerance)
