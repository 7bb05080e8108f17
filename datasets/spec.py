"""What a data set's windows are: their shape, units, labels and statistics."""

import dataclasses
import json
import math
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.targets import Target

SPLITS = ("trial", "subject", "time_block", "given", "official")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    """All that a model needs to know of a data set without seeing its windows.

    ``name`` and ``preset`` say where the windows come from. ``channels`` and
    ``units`` name the last axis, ``rate_hz`` and ``time`` (samples) the middle one.
    ``classes`` holds the class names of *every* attribute, ``"subject"`` included,
    and ``targets`` what there is beside them: attributes that are numbers. ``public``
    is the attribute that anonymized windows should keep, or, if it is a target, that
    learners should predict; ``private`` those that windows should hide. ``mean`` and
    ``std`` (population) of each channel are those of the training rows, in physical
    units. ``split`` is one of ``"trial"``, ``"subject"``, ``"time_block"``, ``"given"``
    and ``"official"``; the last leaks: its test windows overlap training windows, and
    its statistics are of both sides. ``tokens`` is 0 where windows are measured; else
    the one channel holds whole numbers, 0 to ``tokens - 1``, that stand for something
    (0 for nothing), and mean and std are 0 and 1.

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
    targets: dict[str, Target] = dataclasses.field(default_factory=dict)
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
        if taken := set(self.targets) & set(self.classes):
            raise ValueError(
                f"{sorted(taken)} are both classes and targets; name them apart."
            )
        for name, target in self.targets.items():
            if target.channel and target.channel not in self.channels:
                raise ValueError(
                    f"target {name!r} goes on with channel {target.channel!r}, which "
                    f"is none of {self.channels}."
                )
        with_classes = () if self.public in self.targets else (self.public,)
        for attribute in (*self.private, *with_classes, "subject"):
            classes = self.num_classes(attribute)
            if classes < 2 and attribute != "subject":
                raise ValueError(
                    f"attribute {attribute!r} has {classes} class; to keep or hide it "
                    "there must be at least 2."
                )

    @property
    def target(self) -> Target | None:
        """What the public attribute is as a number; None where it has classes."""
        return self.targets.get(self.public)

    def num_classes(self, attribute: str) -> int:
        """Number of classes of ``attribute``; ValueError if it has none."""
        if attribute in self.targets:
            raise ValueError(
                f"{attribute!r} of {self.name!r} is a number and has no classes, which "
                "is what anonymizers keep and hide; predict it by a learner, such as "
                "jaxanon.learners.build('fedavg', spec) or `jaxanon train fedavg`, or "
                f"choose public and private from {sorted(self.classes)}."
            )
        if attribute not in self.classes:
            raise ValueError(
                f"{self.name!r} has no attribute {attribute!r}; it has "
                f"{sorted(self.classes)}."
            )
        return len(self.classes[attribute])

    def __hash__(self):
        """Hashes what equal specs have in common; dicts of classes are unordered."""
        return hash((self.name, self.preset, self.channels, self.time, self.mean))

    def to_json(self) -> str:
        """The spec as one JSON object; targets and tokens only where there are."""
        fields = dataclasses.asdict(self)
        for name in ("targets", "tokens"):
            if not fields[name]:  # As it was written before there were any.
                del fields[name]
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """The spec that ``to_json`` wrote."""
        fields = json.loads(text)
        for name in ("channels", "units", "private", "mean", "std"):
            fields[name] = tuple(fields[name])
        fields["classes"] = {a: tuple(names) for a, names in fields["classes"].items()}
        targets = fields.get("targets", {})
        fields["targets"] = {name: Target(**told) for name, told in targets.items()}
        return cls(**fields)


class Windows(NamedTuple):
    """Windows of one side of a split, in physical units, with their labels."""

    windows: np.ndarray  # float32[N, time, channels]
    # int32[N] for every attribute, "subject" included; float32[N] for every target.
    labels: dict[str, np.ndarray]

    def __repr__(self):
        """In one line: arrays would fill a terminal."""
        return f"Windows(shape={np.shape(self.windows)}, labels={[*self.labels]})"


def take(windows: Windows, rows: np.ndarray) -> Windows:
    """The windows at ``rows``, indices or ``bool[N]``, with their labels."""
    labels = {name: label[rows] for name, label in windows.labels.items()}
    return Windows(windows.windows[rows], labels)


class Data(NamedTuple):
    """A data set ready to train on and to test with."""

    spec: Spec
    train: Windows
    test: Windows

    def __repr__(self):
        """In one line: arrays would fill a terminal."""
        spec, counts = self.spec, (len(side.windows) for side in self[1:])
        train, test = counts
        return (
            f"Data({spec.name!r}, windows of {spec.time} x {len(spec.channels)}, "
            f"{train} to train on and {test} to test with, split by {spec.split!r}, "
            f"public={spec.public!r}, private={spec.private})"
        )


def contradict(own, other) -> bool:
    """Whether two lists of names, of channels or of their units, say different things.

    An empty name leaves its place open, as do those that a shorter list lacks.

    Example:
      >>> contradict(("g", ""), ("g", "rad/s")), contradict(("g",), ("m/s^2",))
      (False, True)
    """
    return any(a and b and a != b for a, b in zip(own, other, strict=False))


def rates_differ(own: float, other: float) -> bool:
    """Whether rates in Hz are more than 1 % of the greater one apart.

    1 stands for one that nobody told.

    Example:
      >>> rates_differ(50.0, 49.6), rates_differ(1.0, 50.0), rates_differ(50.0, 49.4)
      (False, False, True)
    """
    return 1.0 not in (own, other) and not math.isclose(own, other, rel_tol=0.01)


def attributes(spec) -> tuple[str, ...]:
    """The public attribute, then the private ones."""
    return (spec.public, *spec.private)


def standardise(spec, windows):
    """Physical units to zero mean and unit deviation of the training rows."""
    return (windows - np.float32(spec.mean)) / np.float32(spec.std)


def physical(spec, windows):
    """The inverse of ``standardise``."""
    return windows * np.float32(spec.std) + np.float32(spec.mean)
