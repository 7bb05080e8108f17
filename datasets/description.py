"""Descriptions of data sets and of their presets."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxanon.datasets.splits import TEST_FRACTION


def unchanged(rows: np.ndarray) -> np.ndarray:
    """Returns the recorded channels unchanged."""
    return rows


def lengths(*vectors: np.ndarray) -> np.ndarray:
    """Returns the L2 norm of each row of each array, ``float64[N, arrays]``.

    Example:
      >>> lengths(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]]))
      array([[5., 2.]])
    """
    norms = [np.linalg.norm(vector.astype(np.float64), axis=1) for vector in vectors]
    return np.stack(norms, axis=1)


def brackets(*bounds: int) -> tuple[str, ...]:
    """Returns the class names of whole numbers divided at inclusive upper ``bounds``.

    A value belongs to class ``numpy.searchsorted(bounds, value)``.

    Example:
      >>> brackets(70, 90)
      ('<=70', '71-90', '>90')
    """
    between = [f"{low + 1}-{high}" for low, high in itertools.pairwise(bounds)]
    return (f"<={bounds[0]}", *between, f">{bounds[-1]}")


@dataclasses.dataclass(frozen=True)
class Forecast:
    """A target: the mean of ``channel`` over the ``samples`` after a window."""

    unit: str
    channel: str
    samples: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Origin:
    """Source of recordings: the corresponding fields of ``Dataset``."""

    name: str
    builder: str
    locate: Callable[[str | Path | None, Path], tuple[Path, ...]]
    files: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preset:
    """One way to turn recordings into windows.

    Steps in order of application:

    - ``arrange`` selects or rearranges the stored recordings.
    - ``people`` are the subjects to use (empty: all).
    - ``read_as`` maps classes of the data set's first attribute to others.
    - ``keep`` lists the classes to use, in the order of their indices (empty: all).
    - ``derive`` computes ``channels`` from the recorded channels.
    - ``every`` is the number of rows that are averaged to one sample.
    - ``length`` and ``stride`` of the windows are in samples.
    - ``drop`` lists classes whose windows are dropped after computing statistics.

    Options:

    - ``stream``: cut the concatenated recordings instead of each recording. With
      ``across``, a window of a stream only has to begin and end in the same class.
    - ``precut``: recordings consist of windows, so a time block begins with a window.
    - ``sequence``: windows span the recordings of a trial; the last row gives the
      class, and time blocks are blocks of the trial.
    - ``origin``: source of the recordings, if it is not that of the data set.
    - ``tokens``: number of token values 0 to ``tokens - 1`` in the single channel.
    - ``clients``: number of clients that get windows by Dirichlet draws with ``alpha``,
      for data without subjects.
    - ``targets``: forecast targets; windows without enough rows after them are dropped.
    - ``new``: classes that are used only for testing.

    Raises:
      ValueError: if a stream or a sequence has targets.
    """

    about: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    length: int
    stride: int
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    read_as: dict[str, str] = dataclasses.field(default_factory=dict)
    people: tuple[str, ...] = ()
    derive: Callable[[np.ndarray], np.ndarray] = unchanged
    every: int = 1
    stream: bool = False
    across: bool = False
    precut: bool = False
    sequence: bool = False
    origin: Origin | None = None
    tokens: int = 0
    clients: int = 0
    alpha: float = 1.0
    arrange: Callable[[list], list] = list
    targets: dict[str, Forecast] = dataclasses.field(default_factory=dict)
    new: tuple[str, ...] = ()

    def __post_init__(self):
        if (self.stream or self.sequence) and self.targets:
            kind = "stream" if self.stream else "sequence"
            raise ValueError(
                f"targets must be empty for a {kind}, got {sorted(self.targets)}: the "
                "samples after a window may belong to another recording."
            )

    @property
    def reach(self) -> int:
        """Samples of a window and of its forecast targets."""
        return self.length + max((t.samples for t in self.targets.values()), default=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset:
    """Description of a data set: its attributes, source, presets and splits.

    Presets select by the first entry of ``attributes``, which is also the default
    public attribute unless the presets have targets. The first entries of ``presets``
    and ``splits`` are the defaults. An attribute without class names is open:
    recordings store names, which are numbered in order of occurrence.

    ``builder`` is ``module:class`` of the TFDS builder, imported on demand.
    ``locate(source, cache)`` finds the original files, and ``files`` is the pattern of
    the relevant names. ``test_fraction`` is the fraction of subjects or of time on the
    test side. The splits "trial" and "given" train on trials up to
    ``last_train_trial``. With ``whole_days``, trials are days, and a split by time
    block tests on each subject's last days.
    """

    name: str
    about: str
    rate_hz: float
    attributes: dict[str, tuple[str, ...]]
    private: tuple[str, ...]
    presets: dict[str, Preset]
    splits: tuple[str, ...]
    builder: str
    locate: Callable[[str | Path | None, Path], tuple[Path, ...]]
    files: str = ""
    last_train_trial: int = 0
    test_fraction: float = TEST_FRACTION
    whole_days: bool = False

    @property
    def selector(self) -> str:
        """The attribute by which presets select recordings."""
        return next(iter(self.attributes))

    @property
    def targets(self) -> dict[str, str]:
        """Units of the presets' targets, by name."""
        presets = self.presets.values()
        return {name: t.unit for each in presets for name, t in each.targets.items()}

    @property
    def public(self) -> str:
        """The default public attribute or target."""
        return next(iter(self.targets), self.selector)
