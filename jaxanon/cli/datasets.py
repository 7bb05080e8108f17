"""``jaxanon datasets``: the list, a card, export and import."""

import pathlib
from typing import Annotated, Literal

import tyro

from jaxanon.cli import arguments, cards, console
from jaxanon.cli import data as cli_data

COMMANDS = "list", "show", "export", "import"

ABOUT = """Lists, exports and imports data sets.

  jaxanon datasets                  lists the data sets
  jaxanon datasets NAME             shows attributes, presets, splits and files of one
  jaxanon datasets export NAME --preset P --split test --output f.npz
  jaxanon datasets import --help    converts recordings of your own
  jaxanon datasets show FILE.npz    shows what an import kept and lost"""


def show(name: cards.Name = None, /, *, json: bool = False) -> None:
    """Lists the data sets, or shows the card of one or the summary of a file.

    `jaxanon datasets export --help` and `jaxanon datasets import --help` describe the
    commands for files.

    Args:
      name: data set whose attributes, presets, splits and files to show, or an .npz
        file of `jaxanon datasets import`
      json: print JSON
    """
    from jaxanon import datasets
    from jaxanon.kernels.checks import one_of

    if name is not None and (name.endswith(".npz") or pathlib.Path(name).is_file()):
        show_file(pathlib.Path(name), json=json)
        return
    rows = datasets.describe()
    if name is not None:
        one_of("dataset", name, [row["name"] for row in rows])
        rows = [row for row in rows if row["name"] == name]
    if json:
        each = [row | {"files": datasets.data_locations(row["name"])} for row in rows]
        console.print_json(each[0] if name is not None else each)
    elif name is None:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            attributes = ", ".join(row["attributes"])
            about = f"{attributes}; {console.rate(row['rate_hz'])}; {row['about']}"
            cards.row(row["name"], about, width)
    else:
        console.datasets(rows, {name: datasets.data_locations(name)})


def show_all(*, json: bool = False) -> None:
    """Lists the data sets.

    Args:
      json: print JSON
    """
    show(json=json)


def show_file(
    file: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="FILE")],
    /,
    *,
    json: bool = False,
) -> None:
    """Shows what an import kept and lost: windows by person and class, rows by cause.

    Args:
      file: .npz file of `jaxanon datasets import`
      json: print JSON
    """
    from jaxanon.datasets.importing import summary

    about = summary.read(file)
    if about is None:
        raise ValueError(
            f"{file} must hold the summary of an import, got none; write it with "
            "jaxanon datasets import."
        )
    if json:
        console.print_json(about)
        return
    for line in summary.lines(about):
        console.say(line)


def export(
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")],
    /,
    *,
    output: pathlib.Path,
    preset: arguments.Name = None,
    split: Literal["train", "test", "all"] = "test",
    public: arguments.Name = None,
    private: arguments.Names = None,
    split_by: arguments.Name = None,
    split_seed: int = 0,
    test_people: arguments.Names = None,
    source: arguments.Path = None,
    overwrite: bool = False,
) -> None:
    """Writes windows and labels of a data set to an .npz file.

    `--dataset` accepts the path of the file.

    Args:
      name: name of the data set
      output: .npz file to write
      preset: way to cut recordings into windows; default: the data set's first
      split: windows to write; all marks training and test windows
      public: attribute to preserve, stored in the file
      private: attributes to hide, stored in the file
      split_by: trial, subject, time_block or official; default: the data set's first
      split_seed: random seed of the test subjects of --split-by subject
      test_people: people to test on; implies --split-by subject
      source: folder or file of the original data; default: the usual locations
      overwrite: replace an existing file
    """
    from jaxanon import datasets
    from jaxanon.datasets import writing

    writing.check_writable(output, overwrite)
    options = cli_data.DataOptions(
        dataset=name,
        preset=preset,
        public=public,
        private=private,
        split=split_by,
        split_seed=split_seed,
        test_people=test_people,
        source=source,
    )
    data = cli_data.load(options)
    path = datasets.export(data, split, output, overwrite=overwrite)
    which, parts = f"{split} windows", [split]
    if split == "all":
        which, parts = "windows", ["train", "test"]
    count = sum(len(getattr(data, part).windows) for part in parts)
    shape = f"{count}x{data.spec.time}x{len(data.spec.channels)}"
    console.say(f"The {which} of {name}, {shape}: {path}")


def import_recordings(
    paths: Annotated[
        tyro.conf.Positional[tuple[pathlib.Path, ...]],
        tyro.conf.arg(metavar="PATH ...", help_behavior_hint="(required)"),
    ],
    /,
    *,
    output: pathlib.Path,
    channels: arguments.Names = None,
    labels: arguments.Names = None,
    preset: arguments.Name = None,
    time: arguments.Name = None,
    time_format: arguments.Name = None,
    rate_hz: arguments.Real = None,
    resample: Literal["yes", "no"] = "yes",
    max_gap_s: arguments.Real = None,
    units: arguments.Names = None,
    encoding: arguments.Name = None,
    subject: arguments.Name = None,
    people: arguments.Path = None,
    bins: Annotated[
        tuple[str, ...] | None, arguments.optional("NAME=NUMBER,... ...")
    ] = None,
    length: int = 128,
    stride: arguments.Whole = None,
    allow_lost: bool = False,
    overwrite: bool = False,
) -> None:
    """Cuts recordings into windows and writes them to an .npz file.

    A recording has a row per sample: CSV, Parquet, Feather or HDF5 files, also in .gz
    or .zip, or folders of them. A window never spans two classes of a label, two
    people, or a gap in time. Short gaps are interpolated. The summary counts the
    windows of each person and class, and the lost rows by cause. `--dataset` accepts
    the .npz file.

    Args:
      paths: files, folders or zip archives, in order of time for each person
      output: .npz file to write
      channels: columns with measurements; default: those of --preset
      labels: columns with the classes of each sample, such as activities
      preset: app, logger or data set whose files these are, such as phyphox
      time: column with times; default: consecutive rows without gaps
      time_format: s, ms, us, ns, iso, or a strptime format such as "%d/%m/%Y %H:%M:%S";
        default: detected for each file
      rate_hz: samples per second of the windows; default: lowest rate of the recordings
      resample: no refuses recordings of different rates
      max_gap_s: longest gap in seconds that is interpolated; default: 0.25 s or three
        samples, whichever is longer
      units: units of the channels; one unit applies to all
      encoding: text encoding of CSV files; default: UTF-8 or UTF-16
      subject: column with the person; default: one person per file, named as the file
      people: CSV file with the column subject and a column per attribute of a person
      bins: bounds that divide the numbers of an attribute into classes: age=30,50
      length: samples per window
      stride: samples from the start of one window to the next; default: half of
        --length
      allow_lost: write the file even if a person or class has no window
      overwrite: replace an existing file
    """
    from jaxanon.datasets.importing import convert, frames, summary

    words = (*(channels or ()), *(labels or ()))
    known = frozenset()
    if paths and any("," in word for word in words):  # "acc, x" may be a column.
        columns = frames.columns_of(paths[0], encoding)
        known = frozenset((*columns, *columns.values()))
    names = lambda value, name: (
        () if value is None else cli_data.names(value, name, known)
    )
    about = convert.run(
        paths,
        output,
        channels=names(channels, "channels"),
        labels=names(labels, "labels"),
        preset=preset,
        time=time,
        time_format=time_format,
        rate_hz=rate_hz,
        resample=resample == "yes",
        max_gap_s=max_gap_s,
        units=names(units, "units"),
        encoding=encoding,
        subject=subject,
        people=people,
        bins=_bins(bins or ()),
        length=length,
        stride=stride,
        allow_lost=allow_lost,
        overwrite=overwrite,
    )
    for line in summary.lines(about):
        console.say(line)
    console.say(f"Written: {output}")


def _bins(words):
    """Parses ``("age=30,50",)``."""
    bins = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        try:
            bins[name] = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            equals = ""
        if not equals or not name:
            raise ValueError(f"bins must be like age=30,50, got {word!r}.")
    return bins


def list_inferences() -> None:
    """Lists inferences from sensor data, and the data sets that label them.

    `--public` and `--private` accept these names as well as attributes.
    """
    from rich.table import Table

    from jaxanon import datasets
    from jaxanon.methods.deeprotect.inferences import REPOSITORY

    known = {row["name"]: row["attributes"] for row in datasets.describe()}
    table = Table(title="Inferences of DEEProtect, Table I", title_justify="left")
    for column in ("inference", "reveals", "sensors", "labelled as"):
        table.add_column(column)
    for each in REPOSITORY:
        labelled = [
            f"{attribute}: {', '.join(names)}"
            for attribute in each.attributes
            if (names := [name for name in known if attribute in known[name]])
        ]
        sensors = ", ".join(each.sensors)
        table.add_row(each.name, each.tells, sensors, "; ".join(labelled))
    console.table(table)
