"""Cutting of recordings into windows of equal length."""

import types
from collections.abc import Mapping, Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording, trials
from jaxanon.datasets.spec import Windows


def cut(rows: np.ndarray, length: int, stride: int) -> np.ndarray:
    """Cuts one recording into windows.

    Window ``i`` holds rows ``i * stride`` to ``i * stride + length``. An incomplete
    window at the end is dropped.

    Args:
      rows: ``float[rows, channels]``.
      length: samples per window, > 0.
      stride: samples between starts of windows, > 0; < ``length`` overlaps.

    Returns:
      ``float32[N, length, channels]``, a copy; N = 0 for fewer rows than a window.

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
    """Cuts each recording separately, so that no window spans two recordings.

    Args:
      recordings: recordings with at least one row in total.
      length, stride: samples per window and between starts, as in ``cut``.
      ahead: channel index and number of samples of each forecast target, the mean of
        the channel over the samples after the window. Windows without these samples
        are dropped.

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
    """Cuts the concatenated recordings, so that the phase drifts between recordings.

    ObscureNet and its successors cut MotionSense in this way: starts are ``0, stride,
    ...``, ``round((rows - length) / stride)`` of them. Windows whose first and last row
    belong to different recordings are dropped. If ``across`` names an attribute, only
    windows whose first and last row differ in it are dropped, and labels are those of
    the first row, as in ObscureNet for MobiAct.
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
    """Cuts each trial across its recordings; the last row labels a window.

    A window therefore ends with its labelled class and includes what came before.
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
    """Returns the means of ``samples`` values from each start onwards."""
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
