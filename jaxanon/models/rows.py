"""Which rows a classifier trains on and which choose its epoch, as fixed shapes."""

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Row numbers with labels and weights, each ``[sets, steps, batch]``.

    The last batches are filled up with rows of weight 0. Training weights are majority
    count over count of the class; validation weights sum to 1, the same for each class.
    """

    train: np.ndarray  # int32
    train_labels: np.ndarray  # int32
    train_weights: np.ndarray  # float32
    valid: np.ndarray  # int32
    valid_labels: np.ndarray  # int32
    valid_weights: np.ndarray  # float32


def arrange(windows, labels, num_classes, mask, valid, batch) -> Rows:
    """Checks ``fit_many``'s data and lists the rows of each set of labels."""
    labels = np.asarray(labels)
    shape = np.shape(windows)
    if len(shape) != 3:
        raise ValueError(
            f"windows must be float[N, time, channels], got shape {shape}; a single "
            "window is windows[None]."
        )
    if labels.ndim != 2 or labels.shape[1] != shape[0]:
        raise ValueError(
            f"labels must hold one integer per window, {shape[0]} of them, got shape "
            f"{labels.shape[1:]}."
        )
    if batch is not None and batch < 1:
        raise ValueError(f"batch must be > 0, got {batch!r}.")
    mask = np.ones(labels.shape, bool) if mask is None else np.asarray(mask, bool)
    valid = np.zeros(labels.shape, bool) if valid is None else np.asarray(valid, bool)
    for name, rows in (("mask", mask), ("valid", valid)):
        if rows.shape != labels.shape:
            raise ValueError(
                f"{name} must hold one bool per window, {shape[0]} of them, got "
                f"shape {rows.shape[1:]}."
            )
    for row, count, kept in zip(labels, num_classes, mask, strict=True):
        _check_labels(row[kept], count)
    train_rows = [np.flatnonzero(row) for row in mask & ~valid]
    valid_rows = [np.flatnonzero(row) for row in mask & valid]
    if not all(len(rows) for rows in train_rows):
        raise ValueError(
            f"no window is left to train on among {shape[0]}: mask and valid leave "
            "out every one."
        )
    # Shapes follow from the rows that count, not from how many of them validate, so
    # that two attributes of the same windows share a compiled program.
    kept = int(mask.sum(1).max())
    if batch is None:
        batch = int(np.clip(2 ** round(np.log2(kept / 16)), 32, 256))
    batch = min(batch, kept)
    most = max(map(len, valid_rows))
    spared = max(most, kept // 8) if most else 0
    train = _batched(train_rows, labels, -(-kept // batch), batch)
    scored = _batched(valid_rows, labels, -(-spared // batch), batch)
    scored[2][:] /= np.maximum(scored[2].sum((1, 2), keepdims=True), 1e-6)
    return Rows(*train, *scored)


def _check_labels(labels, num_classes):
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes!r}.")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}.")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(
            f"labels must lie in [0, {num_classes}), got {labels.min()} to "
            f"{labels.max()}; raise num_classes or relabel."
        )


def _batched(rows, labels, steps, batch):
    """Row lists to rows, labels and class weights, each ``[sets, steps, batch]``."""
    shape = len(rows), steps, batch
    index = np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    for chosen, own, i, w in zip(rows, labels, index, weights, strict=True):
        counts = np.bincount(own[chosen])
        i.reshape(-1)[: len(chosen)] = chosen
        w.reshape(-1)[: len(chosen)] = counts.max(initial=0) / counts[own[chosen]]
    flat = np.take_along_axis(labels, index.reshape(len(rows), -1), 1)
    return index, flat.reshape(shape).astype(np.int32), weights
