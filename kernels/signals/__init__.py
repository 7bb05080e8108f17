"""Signal processing on the device: windows, filters, step counts and statistics."""

from jaxanon.kernels.signals.design import butterworth
from jaxanon.kernels.signals.filters import sosfilt, sosfilt_steady_state, sosfiltfilt
from jaxanon.kernels.signals.statistics import WindowStatistics, window_statistics
from jaxanon.kernels.signals.steps import count_steps_jerk_pace, count_steps_threshold
from jaxanon.kernels.signals.windowing import CutWindows, cut_windows

__all__ = [
    "CutWindows",
    "WindowStatistics",
    "butterworth",
    "count_steps_jerk_pace",
    "count_steps_threshold",
    "cut_windows",
    "sosfilt",
    "sosfilt_steady_state",
    "sosfiltfilt",
    "window_statistics",
]
