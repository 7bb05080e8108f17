"""Signals at another rate."""

from fractions import Fraction

import numpy as np

CROSSINGS = 10  # Of zero, on either side of the filter's middle.


def resample(signal: np.ndarray, rate_hz: float, to_hz: float) -> np.ndarray:
    """``signal`` as if it had been sampled at ``to_hz``.

    What the slower rate cannot hold is filtered out: a sinc under a Kaiser window
    (beta 5), as in ``scipy.signal.resample_poly``, of which only the products that are
    needed are computed. Beyond its ends the signal is taken to stay as it is there.

    Args:
      signal: ``float[N]``.
      rate_hz: its rate, > 0; taken for a fraction with a denominator up to 1000.
      to_hz: the rate that is wanted, > 0; likewise.

    Returns:
      ``float64[ceil(N * to_hz / rate_hz)]``; sample ``i`` is of time ``i / to_hz``.

    Raises:
      ValueError: if there is no sample.

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
    around = np.arange(-half, half + 1)
    taps = np.sinc(around / max(up, down)) * np.kaiser(2 * half + 1, 5.0)
    taps *= up / taps.sum()
    reach = half // up + 1
    # Outputs k * up to (k + 1) * up are products of the samples from k * down on.
    first, rest = np.divmod(np.arange(up) * down, up)
    width = first[-1] + 2 * reach + 1
    behind = (first + reach - np.arange(width)[:, None]) * up + rest
    weights = np.where(
        abs(behind) <= half, taps[np.clip(behind + half, 0, 2 * half)], 0
    )
    length = -(-len(signal) * up // down)
    blocks = -(-length // up)
    after = max(0, (blocks - 1) * down + width - reach - len(signal))
    padded = np.pad(signal.astype(np.float64), (reach, after), mode="edge")
    near = np.lib.stride_tricks.sliding_window_view(padded, width)[::down]
    return (near[:blocks] @ weights).reshape(-1)[:length]
