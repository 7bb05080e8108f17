"""What attackers that are no networks see of a window."""

import numpy as np


def features(windows) -> np.ndarray:
    """The window itself and statistics free of its phase.

    Per channel: mean, standard deviation, least, greatest, mean absolute step, and
    the magnitudes of the 16 lowest frequencies (fewer if the window is short).

    Args:
      windows: ``float[N, time, channels]``, time at least 2.

    Returns:
      ``float32[N, features]``.

    Example:
      >>> features(np.zeros((3, 128, 2))).shape  # 128 + 5 + 16 per channel
      (3, 298)
    """
    windows = np.asarray(windows, np.float32)
    centre = windows.mean(1)
    steps = np.abs(np.diff(windows, axis=1)).mean(1)
    spectrum = np.abs(np.fft.rfft(windows, axis=1))[:, 1:17] / windows.shape[1]
    parts = (centre, windows.std(1), windows.min(1), windows.max(1), steps)
    flat = [part.reshape(len(windows), -1) for part in (windows, *parts, spectrum)]
    return np.concatenate(flat, axis=1, dtype=np.float32)
