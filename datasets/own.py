"""Windows of your own, from an ``.npz`` file.

The file holds

* ``windows``: ``float[N, time, channels]`` in physical units, finite;
* ``subject``: ``int[N]``, who made the window;
* any number of attributes, ``int[N]`` each under its own name, with the names of its
  classes in ``<attribute>_names`` if you like: labels then count from 0 through that
  list; without names the distinct numbers are the classes (so for ``subject``);
* optionally ``targets``: names of arrays that are ``float[N]``, numbers to predict;
  with them ``target_units``, and if a target is the mean of a channel over some samples
  after the window, ``target_channels`` (else ``""``) and ``target_samples``;
* optionally ``split``: ``int[N]``, 0 to train on, 1 to test with;
* optionally ``channels`` and ``units`` (strings, one per channel), ``rate_hz`` (else
  1.0: time counts in samples), ``name``, ``preset``, ``public``, ``private`` (the
  defaults of ``load``), and with ``split`` also ``mean`` and ``std`` (per channel, of
  the training rows), ``target_mean`` and ``target_std``;
* ``tokens``, an integer, if the one channel holds whole numbers from 0 to
  ``tokens - 1`` that stand for something, 0 for nothing.

Without ``split``, windows are taken to be in order of time. Of the windows that agree
in every class the last 30 % test; training windows that share samples with a
neighbouring test window are left out. ``split="subject"`` divides by person instead.
A target that looks ahead may lie in a test window: give a ``split`` with a gap for it.
"""

import zipfile
from pathlib import Path

import numpy as np

from jaxanon.datasets.choices import choose
from jaxanon.datasets.own_arrays import (
    Arrays,
    classes_of,
    distinct,
    one_per,
    targets_of,
    tokens_of,
    windows_of,
)
from jaxanon.datasets.own_split import by_subject, by_time_block, given
from jaxanon.datasets.sources import naming
from jaxanon.datasets.spec import Data, Spec, Windows, take
from jaxanon.datasets.targets import Target, moments

UNMEASURED = {"mean": (0.0,), "std": (1.0,)}  # Of numbers that stand for something.
SIDES = {"given": given, "time_block": by_time_block, "subject": by_subject}
MEANING = {"public": "keep, or tell", "private": "hide (learners: nothing is hidden)"}


def read_arrays(path: Path) -> Arrays:
    """All arrays of the file; ValueError if it is damaged or holds Python objects."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist or is not a file; name an .npz file."
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{str(path)!r} is truncated or is no .npz file, for it is no zip; write "
            "it again with numpy.savez."
        )
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if wrong := [n for n, a in arrays.items() if not isinstance(a, np.ndarray)]:
            raise TypeError(f"{wrong} in it are no arrays")
    except ValueError as error:  # NumPy's advice is to load it unsafely.
        raise ValueError(
            f"{str(path)!r} is damaged or holds Python objects; save names as "
            "numpy.array of strings."
        ) from error
    except Exception as error:  # What zip, NumPy and Python's parser make of damage.
        raise ValueError(
            f"{str(path)!r} is truncated or is no .npz file ({error}); write it again "
            "with numpy.savez."
        ) from error
    return arrays


def load_file(path, *, public, private, split, seed: int) -> Data:
    """``load`` for a file; its arguments and errors are described there."""
    path = Path(path)
    arrays = read_arrays(path)
    with naming(repr(str(path))):
        return _loaded(arrays, path, public, private, split, seed)


def _loaded(arrays, path, public, private, split, seed):
    windows = windows_of(arrays)
    numbers = targets_of(arrays)
    classes, labels = classes_of(arrays)
    split = split or ("given" if "split" in arrays else "time_block")
    side = SIDES[choose("split", split, SIDES)](arrays, windows, labels, seed)
    tokens = tokens_of(arrays, windows)
    both = Windows(windows, labels | numbers)
    train, test = (take(both, side == number) for number in (0, 1))
    for number, part in enumerate((train, test)):
        if len(part.windows) == 0:
            raise ValueError(
                f"split={split!r} gives no {('training', 'test')[number]} windows out "
                f"of {len(windows)}; choose another split, or see to the file's."
            )
    spec = Spec(
        **_described(arrays, windows, path.stem),
        **(UNMEASURED if tokens else _statistics(arrays, train, split)),
        **_chosen(arrays, classes, [*numbers], public, private),
        time=windows.shape[1],
        classes=classes,
        split=split,
        targets=_targets(arrays, train, [*numbers], split),
        tokens=tokens,
    )
    return Data(spec, train, test)


def _described(arrays, windows, stem):
    """Name, channels, units and rate, with what holds where the file says nothing."""
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
    """The file's own where its split holds, else those of the training windows."""
    count = train.windows.shape[2]
    mean = train.windows.mean(axis=(0, 1), dtype=np.float64)
    std = train.windows.std(axis=(0, 1), dtype=np.float64)
    if split == "given":
        mean = one_per(arrays, "mean", count, mean)
        std = one_per(arrays, "std", count, std)
    return {"mean": tuple(map(float, mean)), "std": tuple(map(float, std))}


def _targets(arrays, train, names, split):
    """What the file says of each target, and the statistics as of the channels."""
    entries = lambda name, default: one_per(
        arrays, f"target_{name}", len(names), default, "targets"
    )
    told = [moments(train.labels[name]) for name in names]
    means, stds = [mean for mean, _ in told], [std for _, std in told]
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


def _chosen(arrays, classes, targets, public, private):
    """The attribute to keep and those to hide: the caller's choice, else the file's."""
    if public is None and "public" in arrays:
        public = str(arrays["public"])
    if private is None and "private" in arrays:
        private = tuple(map(str, np.atleast_1d(arrays["private"])))
    for argument, value in {"public": public, "private": private}.items():
        if value is None:
            raise ValueError(
                f"{argument} (--{argument}) must be given for a file of your own: "
                f"what windows {MEANING[argument]}; its attributes are "
                f"{[*classes, *targets]}."
            )
    choose("public", public, (*classes, *targets))
    for attribute in private:
        choose("private", attribute, classes)
    return {"public": public, "private": private}
