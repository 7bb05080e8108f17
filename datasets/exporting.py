"""Export of a data set to an ``.npz`` file that ``load`` reads."""

from pathlib import Path

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.choices import choose
from jaxanon.datasets.spec import Data


def export(data: Data, split: str, path, *, overwrite: bool = False) -> Path:
    """Writes windows, labels and class names to an ``.npz`` file.

    Args:
      data: ``Data``, returned by ``load``.
      split: ``"train"`` or ``"test"`` writes only that side, which ``load`` splits
        again. ``"all"`` writes training windows, then test windows, with the array
        ``split`` (0, 1) and the training statistics; ``load`` then returns the same
        ``data``, except that ``spec.split`` is ``"given"``.
      path: output path, ending in ``.npz``; missing folders are created.
      overwrite: whether to replace an existing file.

    Returns:
      ``path``. The file is written atomically.

    Raises:
      ValueError: if ``split`` is unknown or ``path`` has another suffix.
      FileExistsError: if ``path`` exists and ``overwrite`` is False.

    Example:
      >>> import tempfile
      >>> from jaxanon.datasets import load
      >>> data = load("smartwatch")
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     again = load(export(data, "all", f"{folder}/watch.npz"))
      >>> again.spec.split, again.test.windows.shape == data.test.windows.shape
      ('given', True)
    """
    choose("split", split, ("train", "test", "all"))
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {str(path)!r}.")
    writing.check_writable(path, overwrite)
    with writing.replacing(path) as file:
        np.savez(file, **_arrays(data, split))  # pyrefly: ignore[bad-argument-type]
    return path


def _arrays(data: Data, split: str) -> dict[str, np.ndarray]:
    spec = data.spec
    sides = {"train": [data.train], "test": [data.test]}.get(split, [*data[1:]])
    arrays = {
        "windows": np.concatenate([side.windows for side in sides]),
        "name": np.array(spec.name),
        "preset": np.array(spec.preset),
        "channels": np.array(spec.channels),
        "units": np.array(spec.units),
        "rate_hz": np.array(spec.rate_hz),
        "public": np.array(spec.public),
        "private": np.array(spec.private),
    }
    if spec.tokens:
        arrays["tokens"] = np.array(spec.tokens)
    for attribute, names in spec.classes.items():
        label = np.concatenate([side.labels[attribute] for side in sides])
        if attribute == "subject":  # Drop subjects that occur only on the other side.
            present, label = np.unique(label, return_inverse=True)
            names = [names[index] for index in present]
        arrays[attribute] = label.astype(np.int32)
        arrays[f"{attribute}_names"] = np.array(names)
    if spec.targets:
        arrays |= _targets(spec.targets, sides, statistics=split == "all")
    if split == "all":
        arrays["split"] = np.repeat([0, 1], [len(side.windows) for side in sides])
        arrays["mean"], arrays["std"] = np.array(spec.mean), np.array(spec.std)
    return arrays


def _targets(targets, sides, statistics: bool) -> dict[str, np.ndarray]:
    """Returns the targets' values and descriptions, in the layout of ``custom``."""
    each = targets.values()
    arrays = {
        "targets": np.array([*targets]),
        "target_units": np.array([target.unit for target in each]),
        "target_channels": np.array([target.channel for target in each]),
        "target_samples": np.array([target.samples for target in each]),
    }
    if statistics:
        arrays["target_mean"] = np.array([target.mean for target in each])
        arrays["target_std"] = np.array([target.std for target in each])
    for name in targets:
        arrays[name] = np.concatenate([side.labels[name] for side in sides])
    return arrays
