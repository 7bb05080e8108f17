"""Recordings cut into windows of equal length."""

import types
from collections.abc import Mapping, Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording, trials
from jaxanon.datasets.spec import Windows


def cut(rows: np.ndarray, length: int, stride: int) -> np.ndarray:
    """Cuts one recording into windows.

    Window ``i`` holds rows ``i * stride`` to ``i * stride + length``; what is left
    at the end and does not fill a window is dropped.

    Args:
      rows: ``float[rows, channels]``.
      length: samples per window, > 0.
      stride: samples from one start to the next, > 0; < ``length`` overlaps.

    Returns:
      ``float32[N, length, channels]``, a copy; N = 0 if there are too few rows.

    Raises:
      ValueError: if ``rows`` is not a matrix, or a number is not positive.

    Example:
      >>> cut(np.arange(5.0)[:, None], length=3, stride=2)[..., 0]
      array([[0., 1., 2.],
             [2., 3., 4.]], dtype=float32)
    """
    if rows.ndim != 2:
        raise ValueError(f"rows must be float[rows, channels], got shape {rows.shape}.")
    for name, value in {"length": length, "stride": stride}.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1 sample, got {value}.")
    starts = np.arange(0, len(rows) - length + 1, stride)
    return _gather(rows, starts, length)


def cut_each(
    recordings: Sequence[Recording],
    length: int,
    stride: int,
    ahead: Mapping[str, tuple[int, int]] = types.MappingProxyType({}),
) -> Windows:
    """Cuts recording by recording: no window holds rows of two recordings.

    Args:
      recordings: of at least one row altogether.
      length, stride: of ``cut``.
      ahead: of each target the channel whose mean it is, and over how many rows after
        the window. Where those rows are missing there is no window.

    Example:
      >>> one = Recording(np.arange(5.0)[:, None], 0, {"subject": 0})
      >>> cut_each([one], 2, 1, {"next": (0, 2)}).labels["next"]
      array([2.5, 3.5], dtype=float32)
    """
    most = max((samples for _, samples in ahead.values()), default=0)
    cuts = [
        cut(r.rows[: max(0, len(r.rows) - most)], length, stride) for r in recordings
    ]
    counts = [len(c) for c in cuts]
    windows, labels = _labelled(np.concatenate(cuts), recordings, counts)
    for name, (channel, samples) in ahead.items():
        means = [
            _following(r.rows[:, channel], length + stride * np.arange(count), samples)
            for r, count in zip(recordings, counts, strict=True)
        ]
        labels[name] = np.concatenate(means).astype(np.float32)
    return Windows(windows, labels)


def cut_stream(
    recordings: Sequence[Recording],
    length: int,
    stride: int,
    across: str | None = None,
) -> Windows:
    """Cuts the recordings laid end to end, so the phase drifts from one to the next.

    This is how ObscureNet and those after it cut MotionSense: starts ``0, stride,
    ...``, ``round((rows - length) / stride)`` of them, less the windows whose first
    and last row are of different recordings. With the name of an attribute,
    ``across``, only those whose first and last row differ in it are left out, as
    ObscureNet has it for MobiAct; labels are then those of the first row.
    """
    sizes = [len(r.rows) for r in recordings]
    rows = np.concatenate([r.rows for r in recordings])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    starts = stride * np.arange(max(0, round((len(rows) - length) / stride)))
    mark = owner
    if across is not None:
        mark = np.repeat([r.labels[across] for r in recordings], sizes)
    starts = starts[mark[starts] == mark[starts + length - 1]]
    counts = np.bincount(owner[starts], minlength=len(sizes))
    return _labelled(_gather(rows, starts, length), recordings, counts)


def cut_sequences(recordings: Sequence[Recording], length: int, stride: int) -> Windows:
    """Cuts trial by trial, through recordings of any label; that of the last row holds.

    So a window ends with what it is labelled by, and begins with what came before.
    """
    parts = []
    for members in trials(recordings):
        windows = cut(np.concatenate([r.rows for r in members]), length, stride)
        ends = np.cumsum([len(r.rows) for r in members])
        last = np.arange(len(windows)) * stride + length - 1
        owner = np.searchsorted(ends, last, side="right")
        counts = np.bincount(owner, minlength=len(members))
        parts.append(_labelled(windows, members, counts))
    labels = {
        name: np.concatenate([part.labels[name] for part in parts])
        for name in parts[0].labels
    }
    return Windows(np.concatenate([part.windows for part in parts]), labels)


def _following(values, starts, samples):
    """Means of so many values from each start on."""
    if len(starts) == 0:
        return np.zeros(0)
    view = np.lib.stride_tricks.sliding_window_view(values, samples)
    return view[starts].mean(axis=1, dtype=np.float64)


def _gather(rows, starts, length):
    if len(starts) == 0:
        return np.zeros((0, length, rows.shape[1]), np.float32)
    view = np.lib.stride_tricks.sliding_window_view(rows, length, axis=0)
    return np.ascontiguousarray(view[starts].transpose(0, 2, 1), np.float32)


def _labelled(windows, recordings, counts):
    labels = {
        name: np.repeat([r.labels[name] for r in recordings], counts).astype(np.int32)
        for name in recordings[0].labels
    }
    return Windows(windows, labels)
