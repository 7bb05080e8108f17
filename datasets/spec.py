"""Specification of a data set's windows: shape, units, labels and statistics."""

import dataclasses
import json
import math
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.targets import Target

SPLITS = ("trial", "subject", "time_block", "given", "official")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    """Properties of a data set that a model needs, without the windows.

    - ``name`` and ``preset`` identify the source of the windows.
    - ``channels`` and ``units`` describe the last axis; ``time`` is the number of
      samples of the middle axis and ``rate_hz`` their rate.
    - ``classes`` holds the class names of *all* attributes, including ``"subject"``.
    - ``targets`` holds the numeric attributes.
    - ``public`` is the attribute that anonymized windows preserve, or a target that
      learners predict. ``private`` are the attributes that windows hide.
    - ``mean`` and ``std`` (population) of each channel are computed on the training
      rows, in physical units.
    - ``split`` is ``"trial"``, ``"subject"``, ``"time_block"``, ``"given"`` or
      ``"official"``. The last one leaks: test windows overlap training windows, and
      statistics include both sides.
    - ``tokens`` is 0 for measurements. Otherwise the single channel holds tokens from 0
      (nothing) to ``tokens - 1``, and mean and std are 0 and 1.

    Raises:
      ValueError: if fields are inconsistent.

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
                    f"{field} must have one entry per channel, got "
                    f"{len(getattr(self, field))} for channels {self.channels}."
                )
        for field in ("rate_hz", "time"):
            if not 0 < getattr(self, field) < math.inf:
                raise ValueError(f"{field} must be > 0, got {getattr(self, field)!r}.")
        for channel, mean, std in zip(self.channels, self.mean, self.std, strict=True):
            if not (math.isfinite(mean) and 0 < std < math.inf):
                raise ValueError(
                    f"channel {channel!r} must have a finite mean and std > 0 over the "
                    f"training rows, got mean {mean} and std {std}; drop constant "
                    "channels."
                )
        if self.tokens < 0 or (self.tokens and (self.mean, self.std) != ((0,), (1,))):
            raise ValueError(
                "tokens must be 0, or the number of values of one channel with mean 0 "
                f"and std 1, got {self.tokens!r} for channels {self.channels} with "
                f"mean {self.mean} and std {self.std}."
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
                "private must not repeat an attribute or contain the public one, "
                f"{self.public!r}, got {self.private!r}."
            )
        if shared := set(self.targets) & set(self.classes):
            raise ValueError(
                "targets must have other names than attributes with classes, got "
                f"{sorted(shared)} for both; rename them."
            )
        for name, target in self.targets.items():
            if target.channel and target.channel not in self.channels:
                raise ValueError(
                    f"target {name!r} must have a channel in {self.channels}, got "
                    f"{target.channel!r}."
                )
        with_classes = () if self.public in self.targets else (self.public,)
        for attribute in (*self.private, *with_classes, "subject"):
            classes = self.num_classes(attribute)
            if classes < 2 and attribute != "subject":
                raise ValueError(
                    f"attribute {attribute!r} must have at least 2 classes, got "
                    f"{classes}."
                )

    @property
    def target(self) -> Target | None:
        """The target if the public attribute is one, else None."""
        return self.targets.get(self.public)

    def num_classes(self, attribute: str) -> int:
        """Returns the number of classes; raises ValueError if there are none."""
        if attribute in self.targets:
            raise ValueError(
                f"attribute must have classes, one of {sorted(self.classes)}, got the "
                f"target {attribute!r} of {self.name!r}. Anonymizers preserve and hide "
                "only classes; predict a target by a learner, such as "
                "jaxanon.learners.build('fedavg', spec) or `jaxanon train fedavg`."
            )
        if attribute not in self.classes:
            raise ValueError(
                f"attribute must be one of {sorted(self.classes)} for {self.name!r}, "
                f"got {attribute!r}."
            )
        return len(self.classes[attribute])

    def __hash__(self):
        """Hashes fields that are equal for equal specs, without unordered dicts."""
        return hash((self.name, self.preset, self.channels, self.time, self.mean))

    def to_json(self) -> str:
        """Returns the spec as a JSON object, without empty targets and tokens."""
        fields = dataclasses.asdict(self)
        for name in ("targets", "tokens"):
            if not fields[name]:  # Keep the format of files without these fields.
                del fields[name]
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """Parses the result of ``to_json``."""
        fields = json.loads(text)
        for name in ("channels", "units", "private", "mean", "std"):
            fields[name] = tuple(fields[name])
        fields["classes"] = {a: tuple(names) for a, names in fields["classes"].items()}
        targets = fields.get("targets", {})
        fields["targets"] = {name: Target(**each) for name, each in targets.items()}
        return cls(**fields)


class Windows(NamedTuple):
    """Windows of one side of a split, in physical units, with their labels."""

    windows: np.ndarray  # float32[N, time, channels]
    # int32[N] for each attribute, including "subject"; float32[N] for each target.
    labels: dict[str, np.ndarray]

    def __repr__(self):
        """Returns one line, without the arrays."""
        return f"Windows(shape={np.shape(self.windows)}, labels={[*self.labels]})"


def take(windows: Windows, rows: np.ndarray) -> Windows:
    """Returns the windows and labels at ``rows``, indices or ``bool[N]``."""
    labels = {name: label[rows] for name, label in windows.labels.items()}
    return Windows(windows.windows[rows], labels)


class Data(NamedTuple):
    """A data set with training and test windows."""

    spec: Spec
    train: Windows
    test: Windows

    def __repr__(self):
        """Returns one line, without the arrays."""
        spec, counts = self.spec, (len(side.windows) for side in self[1:])
        train, test = counts
        return (
            f"Data({spec.name!r}, windows of {spec.time} x {len(spec.channels)}, "
            f"{train} for training and {test} for testing, split by {spec.split!r}, "
            f"public={spec.public!r}, private={spec.private})"
        )


def contradict(first, second) -> bool:
    """Returns whether two lists of channel names or units contradict each other.

    Empty or missing names match any name.

    Example:
      >>> contradict(("g", ""), ("g", "rad/s")), contradict(("g",), ("m/s^2",))
      (False, True)
    """
    return any(a and b and a != b for a, b in zip(first, second, strict=False))


def rates_differ(first: float, second: float) -> bool:
    """Returns whether two rates in Hz differ by more than 1 % of the larger one.

    A rate of 1 is unknown and matches any rate.

    Example:
      >>> rates_differ(50.0, 49.6), rates_differ(1.0, 50.0), rates_differ(50.0, 49.4)
      (False, False, True)
    """
    return 1.0 not in (first, second) and not math.isclose(first, second, rel_tol=0.01)


def attributes(spec) -> tuple[str, ...]:
    """Returns the public attribute, then the private attributes."""
    return (spec.public, *spec.private)


def standardise(spec, windows):
    """Standardizes windows by mean and standard deviation of the training rows."""
    return (windows - np.float32(spec.mean)) / np.float32(spec.std)


def physical(spec, windows):
    """Inverts ``standardise``."""
    return windows * np.float32(spec.std) + np.float32(spec.mean)
