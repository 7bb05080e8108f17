"""Custom data sets from an ``.npz`` file.

The file contains these arrays:

* ``windows``: ``float[N, time, channels]`` in physical units, finite.
* ``subject``: ``int[N]``, the person of each window.
* Any number of attributes, ``int[N]``. The optional array ``<attribute>_names`` holds
  the class names, which labels index from 0. Without it, the distinct numbers are the
  classes. The same applies to ``subject``.
* Optional ``targets``: names of arrays ``float[N]`` that learners predict.
  ``target_units`` holds their units. For a target that is the mean of a channel over
  samples after the window, ``target_channels`` holds the channel (else ``""``) and
  ``target_samples`` the number of samples.
* Optional ``split``: ``int[N]``, 0 for training and 1 for test windows.
* Optional ``channels`` and ``units`` (strings, one per channel), ``rate_hz`` (default
  1.0), ``name`` and ``preset``.
* Optional ``public`` and ``private``, the defaults of ``load``.
* Optional with ``split``: ``mean`` and ``std`` of each channel over the training rows,
  ``target_mean`` and ``target_std``.
* Optional ``tokens``: an integer, if the single channel holds tokens, whole numbers
  from 0 (nothing) to ``tokens - 1``.

Without ``split``, windows must be in order of time. The last 30 % of the windows of
each combination of classes are test windows, and training windows that share samples
with a neighbouring test window are omitted. ``split="subject"`` splits by person
instead. A forecast target may overlap a test window; give a ``split`` with a gap then.
"""

import zipfile
from pathlib import Path

import numpy as np

from jaxanon.datasets.choices import choose
from jaxanon.datasets.custom_arrays import (
    Arrays,
    classes_of,
    distinct,
    one_per,
    targets_of,
    tokens_of,
    windows_of,
)
from jaxanon.datasets.custom_split import (
    by_people,
    by_subject,
    by_time_block,
    given,
)
from jaxanon.datasets.sources import naming
from jaxanon.datasets.spec import Data, Spec, Windows, take
from jaxanon.datasets.targets import Target, moments

TOKEN_STATISTICS = {"mean": (0.0,), "std": (1.0,)}
SIDES = {"given": given, "time_block": by_time_block, "subject": by_subject}
MEANING = {"public": "preserve or predict", "private": "hide (unused by learners)"}


def read_arrays(path: Path) -> Arrays:
    """Reads all arrays; raises ValueError for damage or Python objects."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist or is not a file; give an .npz file."
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{str(path)!r} is truncated or not an .npz file; write it again with "
            "numpy.savez."
        )
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            names = [name for name in file.files if not name.endswith(".json")]
            arrays = {name: file[name] for name in names}
        if wrong := [n for n, a in arrays.items() if not isinstance(a, np.ndarray)]:
            raise TypeError(f"{wrong} are not arrays")
    except ValueError as error:  # NumPy's message recommends unsafe loading.
        raise ValueError(
            f"{str(path)!r} is damaged or holds Python objects; save names as "
            "numpy.array of strings."
        ) from error
    except Exception as error:  # Damage raises many kinds in zip, NumPy and Python.
        raise ValueError(
            f"{str(path)!r} is truncated or not an .npz file ({error}); write it again "
            "with numpy.savez."
        ) from error
    return arrays


def load_file(path, *, public, private, split, seed: int, test_people=None) -> Data:
    """Implements ``load`` for a file."""
    path = Path(path)
    arrays = read_arrays(path)
    with naming(repr(str(path))):
        return build_data(arrays, path.stem, public, private, split, seed, test_people)


def build_data(
    arrays: Arrays, name: str, public, private, split, seed, test_people=None
) -> Data:
    """Returns the data set that the arrays of a file describe.

    Raises:
      ValueError: if an array, an attribute or the split is invalid.
    """
    windows = windows_of(arrays)
    numbers = targets_of(arrays)
    classes, labels = classes_of(arrays)
    split = split or ("given" if "split" in arrays else "time_block")
    if test_people is None:
        side = SIDES[choose("split", split, SIDES)](arrays, windows, labels, seed)
    else:
        side = by_people(classes["subject"], labels, test_people)
    tokens = tokens_of(arrays, windows)
    both = Windows(windows, labels | numbers)
    train, test = (take(both, side == number) for number in (0, 1))
    for number, part in enumerate((train, test)):
        if len(part.windows) == 0:
            raise ValueError(
                f"split={split!r} must give {('training', 'test')[number]} windows, "
                f"got none out of {len(windows)}; choose another split, or change the "
                "array split."
            )
    spec = Spec(
        **_description(arrays, windows, name),
        **(TOKEN_STATISTICS if tokens else _statistics(arrays, train, split)),
        **_choose_attributes(arrays, classes, [*numbers], public, private),
        time=windows.shape[1],
        classes=classes,
        split=split,
        targets=_targets(arrays, train, [*numbers], split),
        tokens=tokens,
    )
    return Data(spec, train, test)


def _description(arrays, windows, stem):
    """Returns name, preset, channels, units and rate, with defaults."""
    count = windows.shape[2]
    numbers = [str(channel) for channel in range(count)]
    channels = one_per(arrays, "channels", count, numbers)
    return {
        "name": str(arrays.get("name", stem)),
        "preset": str(arrays.get("preset", "file")),
        "channels": distinct("channels", tuple(map(str, channels))),
        "units": tuple(map(str, one_per(arrays, "units", count, [""] * count))),
        "rate_hz": float(arrays.get("rate_hz", 1.0)),
    }


def _statistics(arrays, train, split):
    """Returns the file's mean and std with its split, else those of ``train``."""
    count = train.windows.shape[2]
    mean = train.windows.mean(axis=(0, 1), dtype=np.float64)
    std = train.windows.std(axis=(0, 1), dtype=np.float64)
    if split == "given":
        mean = one_per(arrays, "mean", count, mean)
        std = one_per(arrays, "std", count, std)
    return {"mean": tuple(map(float, mean)), "std": tuple(map(float, std))}


def _targets(arrays, train, names, split):
    """Returns the targets, with statistics from the file or from ``train``."""
    entries = lambda name, default: one_per(
        arrays, f"target_{name}", len(names), default, "targets"
    )
    each = [moments(train.labels[name]) for name in names]
    means, stds = [mean for mean, _ in each], [std for _, std in each]
    if split == "given":
        means, stds = entries("mean", means), entries("std", stds)
    blank = [""] * len(names)
    units, channels = entries("units", blank), entries("channels", blank)
    samples = entries("samples", [1] * len(names))
    return {
        name: Target(
            unit=str(units[number]),
            channel=str(channels[number]),
            samples=int(samples[number]),
            mean=float(means[number]),
            std=float(stds[number]),
        )
        for number, name in enumerate(names)
    }


def _choose_attributes(arrays, classes, targets, public, private):
    """Returns public and private attributes: the caller's, else the file's."""
    if public is None and "public" in arrays:
        public = str(arrays["public"])
    if private is None and "private" in arrays:
        private = tuple(map(str, np.atleast_1d(arrays["private"])))
    for argument, value in {"public": public, "private": private}.items():
        if value is None:
            raise ValueError(
                f"{argument} (--{argument}) must be given for a custom file, got "
                f"None; choose what to {MEANING[argument]} from "
                f"{[*classes, *targets]}."
            )
    choose("public", public, (*classes, *targets))
    for attribute in private:
        choose("private", attribute, classes)
    return {"public": public, "private": private}
