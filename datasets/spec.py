"""What a data set's windows are: their shape, units, classes and statistics."""

import dataclasses
import json
import math
from typing import NamedTuple

import numpy as np

SPLITS = ("trial", "subject", "time block", "given", "released")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    """All that a model needs to know of a data set without seeing its windows.

    ``name`` and ``preset`` say where the windows come from. ``channels`` and
    ``units`` name the last axis, ``rate_hz`` and ``time`` (samples) the middle one.
    ``classes`` holds the class names of *every* attribute, ``"subject"`` included;
    ``public`` is the attribute that anonymized windows should keep, ``private``
    those that they should hide. ``mean`` and ``std`` (population) of each channel
    are those of the training rows, in physical units. ``split`` is one of
    ``"trial"``, ``"subject"``, ``"time block"``, ``"given"`` and ``"released"``; the
    last leaks: its test windows overlap training windows, and its statistics are of
    both sides. ``tokens`` is 0 where windows are measured; else the one channel holds
    whole numbers, 0 to ``tokens - 1``, that stand for something (0 for nothing), and
    mean and std are 0 and 1.

    Raises:
      ValueError: if the parts do not fit each other.

    Example:
      >>> spec = Spec(
      ...     name="toy", preset="raw", channels=("x",), units=("g",), rate_hz=50.0,
      ...     time=128, public="activity", private=("subject",),
      ...     classes={"activity": ("sit", "walk"), "subject": ("1", "2", "3")},
      ...     mean=(0.0,), std=(1.0,), split="subject")
      >>> spec.num_classes("subject")
      3
      >>> Spec.from_json(spec.to_json()) == spec
      True
    """

    name: str
    preset: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: float
    time: int
    public: str
    private: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    split: str
    tokens: int = 0

    def __post_init__(self):
        for field in ("units", "mean", "std"):
            if len(getattr(self, field)) != len(self.channels):
                raise ValueError(
                    f"{field} must have one entry per channel: got "
                    f"{len(getattr(self, field))} for channels {self.channels}."
                )
        for field in ("rate_hz", "time"):
            if not 0 < getattr(self, field) < math.inf:
                raise ValueError(f"{field} must be > 0, got {getattr(self, field)!r}.")
        for channel, mean, std in zip(self.channels, self.mean, self.std, strict=True):
            if not (math.isfinite(mean) and 0 < std < math.inf):
                raise ValueError(
                    f"channel {channel!r} has mean {mean} and std {std} over the "
                    "training rows; a constant channel says nothing, leave it out."
                )
        if self.tokens < 0 or (self.tokens and (self.mean, self.std) != ((0,), (1,))):
            raise ValueError(
                "tokens must be 0, or the number of values of one channel of mean 0 "
                f"and std 1; got {self.tokens!r} for channels {self.channels} of mean "
                f"{self.mean} and std {self.std}."
            )
        if self.split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}, got {self.split!r}.")
        if isinstance(self.private, str) or not self.private:
            raise ValueError(
                "private must be a tuple with at least one attribute, "
                f"got {self.private!r}."
            )
        if len(set(self.private)) < len(self.private) or self.public in self.private:
            raise ValueError(
                f"private {self.private!r} must not repeat an attribute nor contain "
                f"the public one, {self.public!r}; an attribute is kept or hidden."
            )
        for attribute in (*self.private, self.public, "subject"):
            classes = self.num_classes(attribute)
            if classes < 2 and attribute != "subject":
                raise ValueError(
                    f"attribute {attribute!r} has {classes} class; to keep or hide it "
                    "there must be at least 2."
                )

    def num_classes(self, attribute: str) -> int:
        """Number of classes of ``attribute``; ValueError if there is none such."""
        if attribute not in self.classes:
            raise ValueError(
                f"{self.name!r} has no attribute {attribute!r}; it has "
                f"{sorted(self.classes)}."
            )
        return len(self.classes[attribute])

    def to_json(self) -> str:
        """The spec as one JSON object."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """The spec that ``to_json`` wrote."""
        fields = json.loads(text)
        for name in ("channels", "units", "private", "mean", "std"):
            fields[name] = tuple(fields[name])
        fields["classes"] = {a: tuple(names) for a, names in fields["classes"].items()}
        return cls(**fields)


class Windows(NamedTuple):
    """Windows of one side of a split, in physical units, with their labels."""

    windows: np.ndarray  # float32[N, time, channels]
    labels: dict[str, np.ndarray]  # int32[N] for every attribute, "subject" included


def take(windows: Windows, rows: np.ndarray) -> Windows:
    """The windows at ``rows``, indices or ``bool[N]``, with their labels."""
    labels = {name: label[rows] for name, label in windows.labels.items()}
    return Windows(windows.windows[rows], labels)


class Data(NamedTuple):
    """A data set ready to train on and to test with."""

    spec: Spec
    train: Windows
    test: Windows
