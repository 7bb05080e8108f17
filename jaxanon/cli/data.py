"""Options that select data, and the record of a run's data."""

import csv
import dataclasses
import io
import json
import pathlib
import shlex
from collections.abc import Collection, Iterable
from typing import Annotated, Any, ClassVar

import tyro

from jaxanon.cli.arguments import Name, Names, Path

RECORD = "source.json"  # Next to a run's config.json.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Arguments of ``jaxanon.load``."""

    HELP: ClassVar = {
        "dataset": "name of a data set (see `jaxanon datasets`) or path of an .npz",
        "preset": "way to cut recordings into windows; default: the data set's first",
        "public": "attribute to preserve, or an inference (`jaxanon list-inferences`); "
        "default: by data set",
        "private": "attributes or inferences to hide; default: by data set. Double "
        "quotes keep a name with commas together: '\"group, A\"'",
        "split": "trial, subject, time_block, official or given; default: the data "
        "set's first",
        "split_seed": "random seed of the test subjects of --split subject",
        "test_people": "people to test on, instead of drawn ones; implies --split "
        "subject",
        "source": "folder or file of the original data; default: the usual locations",
    }

    dataset: Annotated[str, tyro.conf.arg(metavar="NAME_OR_NPZ")] = "smartwatch"
    preset: Name = None
    public: Name = None
    private: Names = None
    split: Name = None
    split_seed: int = 0
    test_people: Names = None
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
    """Loads the homes of a run: first the homes that train, then those that join.

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
    """Loads the homes of a run again; see ``recall``."""
    known = dataclasses.asdict(HomesOptions())
    record = run.folder / RECORD
    if record.exists():
        known |= recorded(record)
    known = with_given(known, record, dataset=dataset, source=source)
    return load_homes(HomesOptions(**known), run.method.config)


def of_homes(folder: pathlib.Path) -> bool:
    """Returns whether a folder holds a run of a controller, even a damaged one."""
    from jaxanon.core import registry

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return config["method"] in registry.names("controller")
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return False


def open_run(folder: pathlib.Path):
    """Opens a run on windows.

    Raises:
      ValueError: see ``run_folder.open_run``; also for a run on homes.
    """
    from jaxanon.training import run_folder

    run = run_folder.open_run(folder)
    if run.method.own_data is not None:
        raise ValueError(
            f"{folder} holds a run of {run.method.name}, which has no windows; use "
            "`jaxanon evaluate`."
        )
    return run


def load(options: DataOptions):
    """Loads ``jaxanon.datasets.Data`` for the options."""
    from jaxanon import datasets

    private = options.private
    return datasets.load(
        options.dataset,
        preset=options.preset,
        public=_attribute(options, options.public),
        private=None
        if private is None
        else tuple(_attribute(options, name) for name in names(private, "private")),
        split=options.split,
        seed=options.split_seed,
        test_people=_people(options.test_people),
        source=options.source,
    )


def _people(words):
    """Returns the names of test people in the words of the option, or None."""
    if words is None or isinstance(words, list):  # A run folder lists whole names.
        return words
    return names(words, "test-people")


def splits(options: DataOptions, number: int):
    """Loads several splits of the data, with ``split_seed`` and the following seeds.

    With few people, several seeds may select the same test subjects, or subjects of one
    class. Such seeds are skipped as long as other splits are likely.

    Returns:
      A list of the options of each split, and a list of ``Data``.
    """
    from jaxanon.datasets.held_out import OneClass
    from jaxanon.training.run_folder import fingerprint

    distinct: dict[str, tuple] = {}
    repeated, reason = [], None
    for seed in range(options.split_seed, options.split_seed + 4 * number):
        seeded = dataclasses.replace(options, split_seed=seed)
        try:
            data = load(seeded)
        except OneClass as error:
            if number == 1:
                raise
            reason = error
            continue
        digest = fingerprint(data)
        if digest in distinct:
            repeated.append((seeded, data))
        else:
            distinct[digest] = seeded, data
        # One split for three seeds: the seed has no effect.
        if len(distinct) == number or len(distinct) == 1 < len(repeated):
            break
    chosen = [*distinct.values(), *repeated][:number]
    if reason is not None and len(chosen) < number:
        raise reason
    return [seeded for seeded, _ in chosen], [data for _, data in chosen]


def _attribute(options, name):
    """Returns the attribute that labels an inference, or the name itself."""
    from jaxanon import datasets
    from jaxanon.methods.deeprotect import inferences

    rows = {row["name"]: row for row in datasets.describe()}
    if name is None or options.dataset not in rows:
        return name
    about = rows[options.dataset]
    return inferences.attribute(name, [*about["attributes"], *about["targets"]])


def _divided(word):
    try:
        return next(csv.reader([word], skipinitialspace=True), [])
    except csv.Error:  # A line end outside quotes.
        return word.split(",")


def names(
    words: str | Iterable[str], argument: str, known: Collection[str] = ()
) -> tuple[str, ...]:
    """Returns the names in the words of an option; commas separate names, too.

    Double quotes keep a name with commas together.

    Args:
      words: words of the option.
      argument: name of the option.
      known: names that may hold commas; a word of this name is not divided.

    Raises:
      ValueError: if a name is empty.

    Example:
      >>> names(("side", "subject"), "private"), names("side,subject", "private")
      (('side', 'subject'), ('side', 'subject'))
      >>> names(("acc, x", "y,z"), "channels", known=["acc, x"])
      ('acc, x', 'y', 'z')
      >>> names(('"group, A"', 'side,"5, 6"'), "private")
      ('group, A', 'side', '5, 6')
    """
    words = (words,) if isinstance(words, str) else tuple(words)
    divided = ([word] if word.strip() in known else _divided(word) for word in words)
    parts = tuple(part.strip() for each in divided for part in each)
    if not parts or not all(parts):
        raise ValueError(
            f"--{argument} must be names with spaces between them, such as "
            f"--{argument} a b, got {' '.join(words)!r}."
        )
    return parts


def _joined(texts):
    """Returns names as one word, which ``names`` divides again."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(texts)
    return line.getvalue()


def remember(folder: pathlib.Path, options: DataOptions | HomesOptions) -> None:
    """Records the source of a run's data in its folder."""
    from jaxanon.datasets import writing

    absolute = lambda path: str(pathlib.Path(path).absolute())
    values = dataclasses.asdict(options)
    if values.get("private") is not None:
        values["private"] = _joined(names(values["private"], "private"))
    if values.get("test_people") is not None:
        values["test_people"] = [*(_people(values["test_people"]) or ())]
    if options.dataset.endswith(".npz"):
        values["dataset"] = absolute(options.dataset)
    if options.source is not None:
        values["source"] = absolute(options.source)
    writing.write(folder / RECORD, json.dumps(values, indent=2) + "\n")


def recorded(path: pathlib.Path) -> dict:
    """Reads the record that ``remember`` wrote, which may lack options.

    Raises:
      ValueError: if the file is damaged.
    """
    fields = {field.name: field for field in dataclasses.fields(DataOptions)}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        for name, value in record.items():
            # Optional values may be null; the other values are strings.
            kinds: Any = (str, type(fields[name].default))
            kinds = {"split_seed": int, "test_people": (list, type(None))}.get(
                name, kinds
            )
            if not isinstance(value, kinds) or not _all_texts(value):
                raise ValueError(f"{name} is {value!r}")
    except (AttributeError, KeyError, RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error!r}); delete it, and name the data by --dataset."
        ) from error
    return record


def _all_texts(value) -> bool:
    """Returns whether a list holds only texts; True for other values."""
    return not isinstance(value, list) or all(isinstance(each, str) for each in value)


def _options(values: dict) -> DataOptions:
    """Returns the options of a run folder, which names private attributes in a text."""
    private = values.get("private")
    if isinstance(private, str):
        values = values | {"private": (private,)}
    return DataOptions(**values)


def with_given(stored: dict, path: pathlib.Path, **given) -> dict:
    """Overrides the recorded options of a run's data by those of the command line.

    Run folders are untrusted. Many file readers may open the ``source`` of a record, so
    the command line must repeat it.

    Args:
      stored: result of ``recorded``, or defaults.
      path: path of the record, for the error.
      **given: options of the command line; None for a missing option.

    Raises:
      ValueError: if ``stored`` has a source and ``given`` has none.
    """
    given = {name: value for name, value in given.items() if value is not None}
    source = stored.get("source")
    if given.get("dataset", stored["dataset"]) != stored["dataset"]:
        source = None  # It belongs to the recorded data set.
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
    """Loads the data of a run again.

    Args:
      run: result of ``open_run``.
      dataset: current name or path of the data, if it moved.
      source: current path of the original files; required if the run records one.
      split_seed: random seed of the split, which runs trained in Python do not record;
        0 by default.

    Raises:
      ValueError: if the data differs from the training data, or the run records a
        source and ``source`` is None.
    """
    from jaxanon import datasets
    from jaxanon.training.run_folder import fingerprint

    known = run.config["data"]
    wanted = DataOptions(
        dataset=known["name"],
        preset=known["preset"],
        public=known["public"],
        private=(_joined(known["private"]),),
        split=known["split"],
    )
    record = run.folder / RECORD
    if record.exists():
        wanted = _options(recorded(record))
    elif split_seed is None and isinstance(known.get("test_people"), list):
        # A run trained in Python has no record, but its config names the test people.
        wanted = dataclasses.replace(wanted, test_people=known["test_people"])
    given = {"dataset": dataset, "source": source, "split_seed": split_seed}
    wanted = _options(with_given(dataclasses.asdict(wanted), record, **given))
    if wanted.dataset.endswith(".npz"):
        wanted = dataclasses.replace(wanted, preset=None)
    elif wanted.dataset not in datasets.names():
        raise ValueError(
            f"the run in {run.folder} was trained on {wanted.dataset!r}, which is "
            "not a registered data set; pass --dataset PATH.npz."
        )
    data = load(wanted)
    digest = fingerprint(data)
    if digest != known["fingerprint"]:
        unrecorded = split_seed is None and not record.exists()
        seed = ", or --split-seed with the seed of jaxanon.load" if unrecorded else ""
        raise ValueError(
            f"{wanted.dataset!r} must be the data that the run in {run.folder} was "
            f"trained on, with fingerprint {known['fingerprint']}, got {digest}; "
            f"restore the data, or pass --dataset with the original{seed}."
        )
    return data
