"""Where a run's data comes from: options, loading, and finding it again."""

import dataclasses
import json
import pathlib
import shlex
from collections.abc import Iterable
from typing import Annotated, ClassVar

import tyro

from jaxanon.cli.arguments import Name, Names, Path

RECORD = "source.json"  # Beside a run's config.json.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Arguments of ``jaxanon.load``."""

    HELP: ClassVar = {
        "dataset": "name of a data set (see `jaxanon datasets`) or path of an .npz",
        "preset": "way to cut recordings into windows; default: the data set's first",
        "public": "attribute to preserve, or an inference (`jaxanon list-inferences`); "
        "default: by data set",
        "private": "attributes or inferences to hide; default: by data set",
        "split": "trial, subject, time_block, official or given; default: the data "
        "set's first",
        "split_seed": "random seed of the test subjects of --split subject",
        "source": "folder or file of the original data; default: the usual locations",
    }

    dataset: Annotated[str, tyro.conf.arg(metavar="NAME_OR_NPZ")] = "smartwatch"
    preset: Name = None
    public: Name = None
    private: Names = None
    split: Name = None
    split_seed: int = 0
    source: Path = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HomesOptions:
    """Arguments of ``jaxanon.energy.load_homes``."""

    HELP: ClassVar = {
        "dataset": "tracebase (homes composed of metered devices), households, "
        "pecan_street, simulated, or an .npz file of readings: arrays home, device, "
        "minute (since 1970) and power (W)",
        "source": "folder or file of the original data; default: the usual locations",
    }

    dataset: Annotated[str, tyro.conf.arg(metavar="NAME_OR_NPZ")] = "tracebase"
    source: Path = None


def load_homes(options: HomesOptions, settings):
    """The homes of a run: those that learn, and after them those that join.

    Args:
      options: ``HomesOptions``.
      settings: ``PFDRLSettings``.
    """
    from jaxanon import energy
    from jaxanon.energy.loading import COMPOSED, HOMES

    count = settings.homes
    if count is None and options.dataset in COMPOSED:
        count = HOMES
    kinds = settings.kinds
    return energy.load_homes(
        options.dataset,
        homes=None if count is None else count + settings.joining,
        devices=settings.devices,
        days=settings.days,
        test_days=settings.test_days,
        kinds=None if kinds is None else names(kinds, "kinds"),
        seed=settings.homes_seed,
        source=options.source,
    )


def recall_homes(run, *, dataset: str | None = None, source: str | None = None):
    """The homes that a run was trained on, as ``recall`` finds windows again."""
    known = dataclasses.asdict(HomesOptions())
    record = run.folder / RECORD
    if record.exists():
        known |= recorded(record)
    known = with_given(known, record, dataset=dataset, source=source)
    return load_homes(HomesOptions(**known), run.method.config)


def of_homes(folder: pathlib.Path) -> bool:
    """Whether a folder holds a run of a controller, damaged or not."""
    from jaxanon.core import registry

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return config["method"] in registry.names("controller")
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return False


def open_run(folder: pathlib.Path):
    """Opens a run that was trained on windows.

    Raises:
      ValueError: as ``run_folder.open_run``; for a run that has other data.
    """
    from jaxanon.training import run_folder

    run = run_folder.open_run(folder)
    if run.method.own_data is not None:
        raise ValueError(
            f"{folder} holds a run of {run.method.name}, which has no windows to read "
            "or rewrite; `jaxanon evaluate` tests it."
        )
    return run


def load(options: DataOptions):
    """``jaxanon.datasets.Data`` for the options."""
    from jaxanon import datasets

    private = options.private
    return datasets.load(
        options.dataset,
        preset=options.preset,
        public=_meant(options, options.public),
        private=None
        if private is None
        else tuple(_meant(options, name) for name in names(private, "private")),
        split=options.split,
        seed=options.split_seed,
        source=options.source,
    )


def splits(options: DataOptions, number: int):
    """Several splits of the options' data, by ``split_seed`` and the seeds after it.

    Of few people a seed may draw those whom another drew: it is passed over, while
    there is one split of other people to be hoped for.

    Returns:
      Lists of the options of each, and of ``Data``.
    """
    from jaxanon.training.run_folder import fingerprint

    found: dict[str, tuple] = {}
    rest = []
    for seed in range(options.split_seed, options.split_seed + 4 * number):
        own = dataclasses.replace(options, split_seed=seed)
        data = load(own)
        told = fingerprint(data)
        if told in found:
            rest.append((own, data))
        else:
            found[told] = own, data
        if len(found) == number or len(found) == 1 < len(rest):  # No seed matters.
            break
    chosen = [*found.values(), *rest][:number]
    return [own for own, _ in chosen], [data for _, data in chosen]


def _meant(options, name):
    """The attribute that labels an inference; any other name as it is."""
    from jaxanon import datasets
    from jaxanon.methods.deeprotect import inferences

    rows = {row["name"]: row for row in datasets.describe()}
    if name is None or options.dataset not in rows:
        return name
    about = rows[options.dataset]
    return inferences.attribute(name, [*about["attributes"], *about["targets"]])


def names(words: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """Returns the names in the words of an option; commas separate names, too.

    Raises:
      ValueError: if a name is empty.

    Example:
      >>> names(("side", "subject"), "private"), names("side,subject", "private")
      (('side', 'subject'), ('side', 'subject'))
    """
    words = (words,) if isinstance(words, str) else tuple(words)
    parts = tuple(part.strip() for word in words for part in word.split(","))
    if not parts or not all(parts):
        raise ValueError(
            f"--{argument} must be names with spaces between them, such as "
            f"--{argument} a b, got {' '.join(words)!r}."
        )
    return parts


def remember(folder: pathlib.Path, options: DataOptions | HomesOptions) -> None:
    """Writes into a run's folder where its data came from."""
    from jaxanon.datasets import writing

    absolute = lambda path: str(pathlib.Path(path).absolute())
    values = dataclasses.asdict(options)
    if values.get("private") is not None:
        values["private"] = ",".join(names(values["private"], "private"))
    if options.dataset.endswith(".npz"):
        values["dataset"] = absolute(options.dataset)
    if options.source is not None:
        values["source"] = absolute(options.source)
    writing.write(folder / RECORD, json.dumps(values, indent=2) + "\n")


def recorded(path: pathlib.Path) -> dict:
    """What ``remember`` wrote, or a part of it.

    Raises:
      ValueError: if the file is damaged.
    """
    fields = {field.name: field for field in dataclasses.fields(DataOptions)}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        for name, value in told.items():
            # Whatever may be left out may be null; all but the seed are words.
            kinds = int if name == "split_seed" else (str, type(fields[name].default))
            if not isinstance(value, kinds):
                raise ValueError(f"{name} is {value!r}")
    except (AttributeError, KeyError, RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error!r}); delete it, and say where the data is by "
            "--dataset."
        ) from error
    return told


def _options(values: dict) -> DataOptions:
    """Returns the options of a run folder, which names private attributes in a text."""
    private = values.get("private")
    if isinstance(private, str):
        values = values | {"private": names(private, "private")}
    return DataOptions(**values)


def with_given(stored: dict, path: pathlib.Path, **given) -> dict:
    """Replaces what a run's folder says of its data by what the command line says.

    A run's folder may come from anywhere. Its ``source`` names files that readers of
    many formats open, so it is used only if the command line repeats it.

    Args:
      stored: of ``recorded``, or defaults.
      path: of the file that ``stored`` was read from, for the error.
      **given: settings of the command line; None where it says nothing.

    Raises:
      ValueError: if ``stored`` names a source that ``given`` does not repeat.
    """
    given = {name: value for name, value in given.items() if value is not None}
    source = stored.get("source")
    if given.get("dataset", stored["dataset"]) != stored["dataset"]:
        source = None  # It belongs to the other data set.
    elif source is not None and "source" not in given:
        raise ValueError(
            f"--source must repeat the source that {path} names, got none; pass "
            f"--source {shlex.quote(source)} if you trust those files."
        )
    return stored | {"source": source} | given


def recall(
    run,
    *,
    dataset: str | None = None,
    source: str | None = None,
    split_seed: int | None = None,
):
    """The data that ``run`` was trained on, loaded again.

    Args:
      run: of ``open_run``.
      dataset: name or path to look in instead of where the data was.
      source: likewise for the original files; where the run's folder names some, it
        must be given.
      split_seed: that the split was drawn by, which a run that Python trained does
        not tell; 0 unless it is given.

    Raises:
      ValueError: if what is found is not what the run was trained on, or the run's
        folder names a source and ``source`` is None.
    """
    from jaxanon import datasets
    from jaxanon.training.run_folder import fingerprint

    known = run.config["data"]
    wanted = DataOptions(
        dataset=known["name"],
        preset=known["preset"],
        public=known["public"],
        private=tuple(known["private"]),
        split=known["split"],
    )
    record = run.folder / RECORD
    if record.exists():
        wanted = _options(recorded(record))
    given = {"dataset": dataset, "source": source, "split_seed": split_seed}
    wanted = _options(with_given(dataclasses.asdict(wanted), record, **given))
    if wanted.dataset.endswith(".npz"):
        wanted = dataclasses.replace(wanted, preset=None)
    elif wanted.dataset not in datasets.names():
        raise ValueError(
            f"the run in {run.folder} was trained on {wanted.dataset!r}, which is no "
            "data set that jaxanon knows; pass --dataset PATH.npz."
        )
    data = load(wanted)
    found = fingerprint(data)
    if found != known["fingerprint"]:
        unsaid = split_seed is None and not record.exists()
        seed = ", or --split-seed with the seed that jaxanon.load had" if unsaid else ""
        raise ValueError(
            f"{wanted.dataset!r} is not the data that the run in {run.folder} was "
            f"trained on: its fingerprint is {found} and was {known['fingerprint']}; "
            f"restore the data, or pass --dataset with the right one{seed}."
        )
    return data
