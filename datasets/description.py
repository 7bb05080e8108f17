"""How a data set describes itself, and the ways to cut it."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxanon.datasets.splits import TEST_SHARE


def unchanged(rows: np.ndarray) -> np.ndarray:
    """The channels as they were recorded."""
    return rows


def lengths(*vectors: np.ndarray) -> np.ndarray:
    """Of every row of each of some vectors, ``float64[N, vectors]``.

    Example:
      >>> lengths(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]]))
      array([[5., 2.]])
    """
    found = [np.linalg.norm(vector.astype(np.float64), axis=1) for vector in vectors]
    return np.stack(found, axis=1)


def brackets(*bounds: int) -> tuple[str, ...]:
    """Names of the classes that ``bounds``, each included, cut whole numbers into.

    A value is of class ``numpy.searchsorted(bounds, value)``.

    Example:
      >>> brackets(70, 90)
      ('<=70', '71-90', '>90')
    """
    between = [f"{low + 1}-{high}" for low, high in itertools.pairwise(bounds)]
    return (f"<={bounds[0]}", *between, f">{bounds[-1]}")


@dataclasses.dataclass(frozen=True)
class Forecast:
    """A target: the mean of ``channel`` over the ``samples`` that follow a window."""

    unit: str
    channel: str
    samples: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Origin:
    """Where recordings come from: the fields of ``Dataset`` that say so."""

    builder: str
    locate: Callable[[str | Path | None, Path], tuple[Path, ...]]
    files: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preset:
    """One way to turn recordings into windows.

    ``keep`` names the classes of the data set's first attribute that enter, in the
    order in which they are numbered (empty: all), ``drop`` those of them that count
    for the statistics but whose windows are left out. ``read_as`` takes a class for
    another before that. ``people`` are the subjects who enter (empty: all).
    ``derive`` turns recorded channels into ``channels``; the mean of ``every`` so many
    rows of them is one sample. ``length`` and ``stride`` are in samples. A ``stream``
    is cut end to end, anything else recording by recording; ``across`` recordings, a
    window of a stream need only begin and end in the same class. ``precut`` recordings
    were put together from windows, so a time block begins with one. A ``sequence`` runs
    through whatever somebody did in a trial: a window is of the class of its last row,
    a time block of the trial. ``origin`` is where the recordings come from, if from
    other files than those of the data set. With ``tokens`` the one channel holds
    numbers that stand for something, 0 to ``tokens - 1``. Where nobody made the
    windows, they are dealt to ``clients`` by Dirichlet draws with ``alpha``.

    ``arrange`` makes the recordings that enter of those that are stored, before all
    else. Every window comes with the ``targets``, for which recording by recording as
    many rows are kept free after it. Recordings whose class is in ``new`` are only
    tested with, whatever their time: nobody of that kind was there in training.

    Raises:
      ValueError: for targets of a stream, or of a sequence.
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
            what = "stream" if self.stream else "sequence"
            raise ValueError(
                f"a {what} has no targets, got {sorted(self.targets)}: what follows a "
                "window may be of another recording."
            )

    @property
    def reach(self) -> int:
        """Samples of a window and of what is predicted from it."""
        return self.length + max((t.samples for t in self.targets.values()), default=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set: what it holds, where it comes from, how it may be cut.

    The first entry of ``attributes`` is the one that presets select by, and the
    default public one unless the presets have targets; the first entries of ``presets``
    and ``splits`` are the defaults. An attribute without names is open: recordings
    store the names themselves, which are numbered as they come. ``builder`` is
    ``module:class`` of the TFDS builder, imported when needed; ``locate(source,
    cache)`` finds the original files; ``files`` is the pattern of the names that matter
    among them. ``test_share`` of the subjects, or of the time, tests; a trial split, or
    a given one, trains on trials up to ``last_train_trial``. Where trials are days,
    ``whole_days``, everybody's last ones test in a split by time block.
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
    test_share: float = TEST_SHARE
    whole_days: bool = False

    @property
    def selector(self) -> str:
        """The attribute that presets select by."""
        return next(iter(self.attributes))

    @property
    def targets(self) -> dict[str, str]:
        """Units of the numbers that presets predict, by name."""
        presets = self.presets.values()
        return {name: t.unit for each in presets for name, t in each.targets.items()}

    @property
    def public(self) -> str:
        """The attribute that is kept, or predicted, when nothing else is asked for."""
        return next(iter(self.targets), self.selector)
