"""Attackers that are networks: many of them train in one program."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxanon.attacks.shares import blocks
from jaxanon.models import fit

TOGETHER = 16  # Sets that one program trains; their activations share the memory.


def fit_networks(
    keys,
    windows: Sequence,
    labels: Sequence,
    num_classes: Sequence[int],
    *,
    net: Any = None,
    steps: int = 1000,
    hold_back: bool = True,
) -> list[Callable]:
    """Trains one network per set, sets of about the same size in one program.

    Sets of other sizes would mostly be padding, so those in a program differ by less
    than a factor of 2.

    Args:
      keys: typed PRNG keys, ``[sets]``.
      windows: per set ``float[N_i, time, channels]``, standardised and, within each
        class, in order of time; the very same array for sets that share it.
      labels: per set ``int[N_i]``.
      num_classes: per set.
      net, steps: module to train and about how many steps, as
        ``models.fit.fit_classifier`` takes them.
      hold_back: whether the epoch is chosen by blocks of windows that do not train
        (``shares.blocks``); else the last one is kept.

    Returns:
      Per set a function from ``float[M, time, channels]`` to ``float32[M,
      num_classes]``, log-probabilities.

    Raises:
      ValueError: as ``models.fit.fit_many``.
    """
    labels = [np.asarray(own) for own in labels]
    found: dict[int, Callable] = {}
    for sets in _alike([len(own) for own in labels]):
        own = [labels[index] for index in sets]
        fitted = fit.fit_many(
            keys[np.array(sets)],
            net=net,
            steps=steps,
            num_classes=[num_classes[index] for index in sets],
            **_stacked([windows[index] for index in sets], own, hold_back),
        )
        for place, index in enumerate(sets):
            found[index] = _reader(fitted, place)
    return [found[index] for index in range(len(labels))]


def _alike(sizes):
    """Numbers of the sets that train together, as lists."""
    by_size: dict[int, list[int]] = {}
    for index, size in enumerate(sizes):
        by_size.setdefault(int(size).bit_length(), []).append(index)
    for sets in by_size.values():
        for start in range(0, len(sets), TOGETHER):
            yield sets[start : start + TOGETHER]


def _stacked(windows, labels, hold_back):
    """The arrays of ``fit_many``: shared windows once, others filled up and masked."""
    most = max(map(len, labels))
    shape = len(labels), most
    if all(own is windows[0] for own in windows):
        stacked = np.asarray(windows[0], np.float32)
    else:
        stacked = np.zeros((*shape, *windows[0].shape[1:]), np.float32)
    marks, mask, valid = (np.zeros(shape, kind) for kind in (int, bool, bool))
    for index, own in enumerate(labels):
        if stacked.ndim == 4:
            stacked[index, : len(own)] = windows[index]
        marks[index, : len(own)] = own
        mask[index, : len(own)] = True
        valid[index, : len(own)] = hold_back & blocks(own)
    return {"windows": stacked, "labels": marks, "mask": mask, "valid": valid}


def _reader(fitted, place):
    params, classes, *told = jax.tree.map(lambda leaf: leaf[place], tuple(fitted[1:]))
    one = fit.Fitted(fitted.net, params, int(classes), *told)

    def read(windows):
        logits = fit.predict_logits(one, windows)
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

    return read
