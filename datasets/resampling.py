"""Resampling of signals to another rate."""

from fractions import Fraction

import numpy as np

CROSSINGS = 10  # Zero crossings of the filter on either side of its center.


def resample(signal: np.ndarray, rate_hz: float, to_hz: float) -> np.ndarray:
    """Resamples a signal from ``rate_hz`` to ``to_hz``.

    The anti-aliasing filter is a sinc under a Kaiser window (beta 5), as in
    ``scipy.signal.resample_poly``. The signal is padded with its edge values.

    Args:
      signal: ``float[N]``.
      rate_hz: rate of the signal, > 0; rounded to a fraction with a denominator of at
        most 1000.
      to_hz: rate of the result, > 0; rounded in the same way.

    Returns:
      ``float64[ceil(N * to_hz / rate_hz)]``; sample ``i`` belongs to time ``i /
      to_hz``.

    Raises:
      ValueError: if the signal is empty.

    Example:
      >>> resample(np.arange(4.0), rate_hz=50.0, to_hz=50.0)
      array([0., 1., 2., 3.])
      >>> len(resample(np.zeros(256), rate_hz=256.0, to_hz=100.0))
      100
    """
    if not len(signal):
        raise ValueError(
            "signal must hold at least one sample, got 0; is its file truncated?"
        )
    rates = [Fraction(rate).limit_denominator(1000) for rate in (to_hz, rate_hz)]
    up, down = (rates[0] / rates[1]).as_integer_ratio()
    if up == down:
        return signal.astype(np.float64)
    half = CROSSINGS * max(up, down)
    offsets = np.arange(-half, half + 1)
    taps = np.sinc(offsets / max(up, down)) * np.kaiser(2 * half + 1, 5.0)
    taps *= up / taps.sum()
    before = half // up + 1
    # Outputs k * up to (k + 1) * up depend on the samples from k * down onwards.
    first, rest = np.divmod(np.arange(up) * down, up)
    width = first[-1] + 2 * before + 1
    delay = (first + before - np.arange(width)[:, None]) * up + rest
    weights = np.where(abs(delay) <= half, taps[np.clip(delay + half, 0, 2 * half)], 0)
    length = -(-len(signal) * up // down)
    blocks = -(-length // up)
    after = max(0, (blocks - 1) * down + width - before - len(signal))
    padded = np.pad(signal.astype(np.float64), (before, after), mode="edge")
    inputs = np.lib.stride_tricks.sliding_window_view(padded, width)[::down][:blocks]
    # A product copies the overlapping inputs, so only some at a time.
    some = max(1, (1 << 20) // width)
    parts = [inputs[at : at + some] @ weights for at in range(0, blocks, some)]
    return np.concatenate(parts).reshape(-1)[:length]
