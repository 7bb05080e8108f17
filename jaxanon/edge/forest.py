"""A random forest that classifies windows, without scikit-learn."""

import io
from typing import NamedTuple

import numpy as np

LEAST = 1e-3  # Floor of probabilities, so that no single window decides.


def features(windows) -> np.ndarray:
    """Computes each window's values and phase-invariant statistics.

    Statistics per channel: mean, standard deviation, minimum, maximum, mean absolute
    step, and the magnitudes of the 16 lowest frequencies (fewer for short windows).

    Args:
      windows: ``float[N, time, channels]`` with ``time >= 2``.

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


class Forest(NamedTuple):
    """Trees as arrays over all nodes, with the scales of the windows' channels.

    Attributes:
      roots: ``int32[trees]``, first node of each tree.
      left, right: ``int32[nodes]``, next nodes; -1 for a leaf.
      feature: ``int32[nodes]``, feature that a node compares.
      threshold: ``float64[nodes]``; values up to it go left.
      shares: ``float64[nodes, classes]``, fractions of the classes.
      classes: ``int64[classes]``, class numbers.
      mean, std: ``float32[channels]``.
    """

    roots: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    shares: np.ndarray
    classes: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    def __call__(self, windows) -> np.ndarray:
        """Returns the classes of ``float[N, time, channels]``, ``int32[N]``."""
        rows = features((windows - self.mean) / self.std)
        node = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        row = np.arange(len(rows))[:, None]
        while (inner := self.left[node] >= 0).any():
            is_left = rows[row, self.feature[node]] <= self.threshold[node]
            after = np.where(is_left, self.left[node], self.right[node])
            node = np.where(inner, after, node)
        mean = self.shares[node].sum(axis=1) / len(self.roots)
        with np.errstate(divide="ignore"):
            evidence = np.maximum(np.log(mean), np.log(LEAST)).astype(np.float32)
        return self.classes[evidence.argmax(axis=1)].astype(np.int32)

    def save(self) -> bytes:
        """Returns the forest as the bytes of an ``.npz`` file."""
        file = io.BytesIO()
        np.savez_compressed(file, **self._asdict())
        return file.getvalue()


def load(path, data: bytes) -> Forest:
    """Reads a forest from the bytes of ``Forest.save``.

    Raises:
      ValueError: if the bytes are damaged or inconsistent.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            forest = Forest(*(arrays[name] for name in Forest._fields))
        count, inner = len(forest.left), forest.left >= 0
        nodes = np.concatenate([forest.roots, forest.left[inner], forest.right[inner]])
        fits = forest.shares.shape == (count, len(forest.classes))
        # Nodes follow their parents, so that every path ends.
        follow = np.flatnonzero(inner) < np.minimum(forest.left, forest.right)[inner]
        if not (fits and nodes.min() >= 0 and nodes.max() < count and follow.all()):
            raise ValueError("its arrays do not fit")
    except Exception as error:  # NumPy and zipfile raise many types.
        raise ValueError(f"{path} holds no forest ({error}); export again.") from None
    return forest
