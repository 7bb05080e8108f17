"""Places of PrivateHub's evaluation: rooms, an office and homes."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from jaxanon.datasets import registry, store
from jaxanon.datasets.pipeline import cut_and_split
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.spec import Data, Spec, Windows, take
from jaxanon.datasets.splits import by_time_block
from jaxanon.datasets.windows import cut_each

TEST_SHARE = 0.25  # Of each stretch in rooms; homes use a fifth, as the chapter.
TIME = 28  # Samples per home window, not 30, so that it can be halved twice.
STRIDE = 5  # Minutes between windows of a home, because meals are short.
LEAST_TRAIN, LEAST_TEST = 16, 8  # Minimum windows per class; smaller ones are dropped.
HOMES = ("A", "C", "D", "Ordonez A", "Ordonez B")  # Others have too few classes.
HOME_CHOICES = {
    "bath and leaving": ("bathe", "leave"),
    "cooking and eating": ("breakfast", "lunch", "dinner"),
    "hygiene and eating": ("groom", "breakfast"),
}
ROOM_CHOICES = {
    "work": ("work",),
    "read": ("read",),
    "stand and walk": ("stand", "walk"),
}
OFFICE_CHOICES = {"three people": ("3",), "two or three": ("2", "3")}
SMOKE_CHOICES = {"two": ("c",)}


class Place(NamedTuple):
    """A room or home, its windows, and the windows of other places of its kind."""

    name: str
    data: Data
    others: Data | None  # for pre-training; same spec, no test windows
    choices: dict[str, tuple[str, ...]]  # public classes to hide; the first is default
    categories: tuple[str, ...]  # setting of methods
    predicted: dict[str, tuple[str, ...]]  # channels of each forecast quantity
    ahead: int  # samples between consecutive inputs of a forecaster
    beside: str = ""  # corresponding row of table 4.2


def every(smoke, case=None) -> list[Place]:
    """Returns all available places, those of a kind, or the one with a given name.

    Raises:
      ValueError: if no place has that name.
    """
    if smoke:
        return [simulated()]
    if case == "simulated":
        return [simulated(windows=400)]
    kinds = {"rooms": rooms, "office": office, "homes": homes}
    asked = [case] if case in kinds else list(kinds)
    found, lacking = [], []
    for kind in asked:
        try:
            found += kinds[kind]()
        except OSError as error:
            lacking.append(kind)
            print(f"Skipping {kind}: {error}")
    if case not in (None, *kinds):
        named = [place for place in found if place.name == case]
        if not named:
            raise ValueError(
                f"--case must be one of {[*kinds, *(place.name for place in found)]}, "
                f"got {case!r}; missing data: {lacking}."
            )
        return named
    return found


@functools.cache
def rooms() -> list[Place]:
    """Returns three rooms with three nodes each: temperature, humidity, light."""
    about, sides, classes = _recorded("room_climate")
    return _places(
        about,
        sides,
        classes,
        [f"room {name}" for name in classes["room"]],
        choices=ROOM_CHOICES,
        predicted={
            "temperature": tuple(name for name in about[1] if name.startswith("temp"))
        },
        beside=["Smart office"],
    )


@functools.cache
def office() -> list[Place]:
    """Returns a room with CO2, labelled by the number of people."""
    about, sides, classes = _recorded("occupancy", ("office", "no other"))
    channels = about[1]
    predicted = {
        "CO2": ("CO2",),
        "temperature": tuple(name for name in channels if name.endswith("temp")),
    }
    return _places(
        about,
        sides,
        classes,
        ["office"],
        choices=OFFICE_CHOICES,
        categories=tuple(name for name in channels if name.startswith("PIR")),
        predicted=predicted,
        beside=["Smart office"],
    )


@functools.cache
def homes() -> list[Place]:
    """Returns homes with binary sensors, in windows of 28 minutes."""
    dataset = registry.find("smart_homes")
    preset = dataclasses.replace(dataset.presets["changes"], stride=STRIDE)
    parts = store.read(dataset, None, None)
    classes, _, _, *both = cut_and_split(dataset, preset, parts, "time_block", 0)
    sides = [side._replace(windows=side.windows[:, 1 : 1 + TIME]) for side in both]
    named = classes["subject"]
    order = [named.index(home) for home in HOMES]
    rest = [index for index in range(len(named)) if index not in order]
    renumber = np.argsort([*order, *rest])
    for side in sides:
        side.labels["subject"] = renumber[side.labels["subject"]].astype(np.int32)
    names = tuple(named[index] for index in [*order, *rest])
    about = ("smart_homes", preset.channels, preset.units, 1 / 60, "subject")
    return _places(
        about,
        sides,
        classes | {"subject": names},
        [f"home {name}" for name in HOMES],
        choices=HOME_CHOICES,
        categories=("* changed",),
        beside=["Milan", "Kyoto1", "Kyoto2", "Kyoto3", "Kyoto4"],
    )


def simulated(windows=80) -> Place:
    """Returns sines whose frequency is the class; the last class sets a switch."""
    generator = np.random.default_rng(0)
    names, time = ("a", "b", "c", "d"), 16

    def side(count, room):
        label = np.arange(count) % len(names)
        at = np.arange(time) / time * 2 * np.pi
        phase = generator.uniform(0, 2 * np.pi, (count, 1))
        wave = np.sin((1 + label[:, None]) * at + phase)
        on = (generator.random((count, time)) < (label == 3)[:, None] * 0.6).astype(int)
        rows = np.stack([wave, on, 20 + 0.1 * wave], axis=2)
        noise = 0.1 * generator.normal(size=rows.shape) * np.array([1, 0, 0.1])
        labels = {"activity": label, "room": np.full(count, room), "subject": label * 0}
        labels = {name: own.astype(np.int32) for name, own in labels.items()}
        return Windows((rows + noise).astype(np.float32), labels)

    both = [side(windows, 0), side(windows // 2, 0)]
    others = side(windows, 1)
    joined = lambda *parts: Windows(
        np.concatenate([part.windows for part in parts]),
        {n: np.concatenate([p.labels[n] for p in parts]) for n in parts[0].labels},
    )
    about = ("simulated", ("wave", "on", "temp"), ("1", "1", "°C"), 1.0, "room")
    (place,) = _places(
        about,
        (joined(both[0], others), both[1]),
        {"activity": names, "room": ("one", "other")},
        ["simulated"],
        choices=SMOKE_CHOICES,
        categories=("on",),
        predicted={"temperature": ("temp",)},
        beside=[""],
        ahead=2,
    )
    return place


def _recorded(name, rooms=()):
    """Returns the description, both sides of the default preset, and the classes.

    Subjects are rooms, or all belong to the first of ``rooms``. Occupants have no
    identity; their number counts as an activity.
    """
    dataset = registry.find(name)
    preset = next(iter(dataset.presets.values()))
    recordings = []
    for own in store.read(dataset):
        labels = {"activity": own.labels[dataset.public], "subject": 0}
        labels["room"] = 0 if rooms else own.labels["subject"]
        recordings.append(own._replace(labels=labels))
    about = (name, preset.channels, preset.units, dataset.rate_hz, "room")
    classes = {
        "activity": dataset.attributes[dataset.public],
        "room": rooms or dataset.attributes["subject"],
    }
    return about, _windows(recordings, preset.length, preset.stride), classes


def _windows(recordings: list[Recording], length, stride):
    """Cuts both sides: the end of each stretch is for testing, after a gap of a window.

    With a split by measurements of different days, raw windows of rooms hardly reveal
    activities.
    """
    sides = [by_time_block([own], length, TEST_SHARE) for own in recordings]
    train, test = (
        [one for side in each for one in side] for each in zip(*sides, strict=True)
    )
    return cut_each(train, length, stride), cut_each(test, length, stride)


def _places(about, sides, classes, names, **more):
    """Returns a place for each of the first classes of the attribute of the place."""
    by = about[-1]
    beside = more.pop("beside")
    found = []
    for index, name in enumerate(names):
        own = [take(side, side.labels[by] == index) for side in sides]
        kept = kept_classes(classes["activity"], *own)
        train, test = (_of_classes(side, kept) for side in own)
        others = _of_classes(take(sides[0], sides[0].labels[by] != index), kept)
        spec = _spec(about, classes, tuple(classes["activity"][k] for k in kept), train)
        there = possible(more["choices"], spec.classes["activity"])
        data = Data(spec, train, test)
        empty = take(test, np.zeros(len(test.windows), bool))
        before = Data(spec, others, empty) if len(others.windows) else None
        place = {"categories": (), "predicted": {}, "ahead": 4} | more
        place |= {"choices": there, "beside": beside[index % len(beside)]}
        found.append(Place(name, data, before, **place))
    return found


def possible(choices, names):
    """Returns choices with at least one class present and two classes left to show.

    Example:
      >>> possible({"x": ("a", "e"), "y": ("a",), "z": ("a", "b")}, ("a", "b", "c"))
      {'x': ('a',)}
    """
    found = {}
    for choice, hidden in choices.items():
        own = tuple(name for name in hidden if name in names)
        if own and len(own) <= len(names) - 2 and own not in found.values():
            found[choice] = own
    return found


def kept_classes(names, train: Windows, test: Windows) -> list[int]:
    """Returns the indices of classes with enough windows on both sides."""
    enough = lambda side, least, k: np.sum(side.labels["activity"] == k) >= least
    return [
        k
        for k in range(len(names))
        if enough(train, LEAST_TRAIN, k) and enough(test, LEAST_TEST, k)
    ]


def _of_classes(side, kept):
    side = take(side, np.isin(side.labels["activity"], kept))
    label = np.searchsorted(kept, side.labels["activity"]).astype(np.int32)
    return side._replace(labels=side.labels | {"activity": label})


def _spec(about, classes, kept, train):
    """Returns a spec whose private attribute is the place, with a single class."""
    name, channels, units, rate_hz, by = about
    mean, std = (
        f(train.windows, axis=(0, 1), dtype=np.float64) for f in (np.mean, np.std)
    )
    std = np.where(std > 1e-6, std, 1.0)  # The sensor exists only in other places.
    return Spec(
        name=name,
        preset="bench",
        channels=tuple(channels),
        units=tuple(units),
        rate_hz=rate_hz,
        time=train.windows.shape[1],
        public="activity",
        private=(by,),
        classes={"activity": kept, by: classes[by], **_subjects(classes, by)},
        mean=tuple(map(float, mean)),
        std=tuple(map(float, std)),
        split="time_block",
    )


def _subjects(classes, by):
    return {} if by == "subject" else {"subject": ("everybody",)}
