"""``export``: a data set written as a file that ``load`` reads back."""

from pathlib import Path

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.choices import choose
from jaxanon.datasets.spec import Data


def export(data: Data, split: str, path, *, overwrite: bool = False) -> Path:
    """Writes windows, labels and class names as an ``.npz`` of one's own.

    Args:
      data: what ``load`` returned.
      split: ``"train"`` or ``"test"`` for that side alone; the file then stands for
        itself and ``load`` splits it anew. ``"all"`` writes training windows, then
        test windows, with the array ``split`` (0, 1) and the training statistics, so
        that ``load`` gives the same ``data`` back but for ``spec.split == "given"``.
      path: a name that ends in ``.npz``; missing folders are made.
      overwrite: whether a file that is there may be replaced.

    Returns:
      ``path``. It appears when it is complete; an interrupted export leaves none.

    Raises:
      ValueError: for another ``split`` or ending.
      FileExistsError: if ``path`` is there and ``overwrite`` is false.

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
    writing.refuse_unwritable(path, overwrite)
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
        if attribute == "subject":  # Whoever is on the other side only is left out.
            found, label = np.unique(label, return_inverse=True)
            names = [names[index] for index in found]
        arrays[attribute] = label.astype(np.int32)
        arrays[f"{attribute}_names"] = np.array(names)
    if spec.targets:
        arrays |= _targets(spec.targets, sides, statistics=split == "all")
    if split == "all":
        arrays["split"] = np.repeat([0, 1], [len(side.windows) for side in sides])
        arrays["mean"], arrays["std"] = np.array(spec.mean), np.array(spec.std)
    return arrays


def _targets(targets, sides, statistics: bool) -> dict[str, np.ndarray]:
    """Their numbers, and what there is to say of them, as ``own`` describes it."""
    told = targets.values()
    arrays = {
        "targets": np.array([*targets]),
        "target_units": np.array([one.unit for one in told]),
        "target_channels": np.array([one.channel for one in told]),
        "target_samples": np.array([one.samples for one in told]),
    }
    if statistics:
        arrays["target_mean"] = np.array([one.mean for one in told])
        arrays["target_std"] = np.array([one.std for one in told])
    for name in targets:
        arrays[name] = np.concatenate([side.labels[name] for side in sides])
    return arrays
