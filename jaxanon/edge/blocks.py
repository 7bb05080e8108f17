"""What a stream hands on: blocks of samples and gaps, and windows for the live page."""

from typing import NamedTuple

import numpy as np


class Block(NamedTuple):
    """A stretch of the anonymized stream, or of nothing and why.

    Attributes:
      start: s, of its first sample, on the clock of the times that were pushed.
      rate_hz: of its samples.
      samples: ``float32[n, channels]``; in a gap NaN in every place, and ``n`` may be 0
        for a gap longer than is written out.
      gap: why there is nothing here; "" for samples.
      end: s, start of what follows.
    """

    start: float
    rate_hz: float
    samples: np.ndarray
    gap: str
    end: float


class Window(NamedTuple):
    """What one window was and became: for the live page alone, never for an outlet.

    Attributes:
      start: s, of its first sample, on the clock of the times that were pushed.
      raw: ``float32[time, channels]``.
      safe: ``float32[time, channels]``; None where the model failed.
    """

    start: float
    raw: np.ndarray
    safe: np.ndarray | None
