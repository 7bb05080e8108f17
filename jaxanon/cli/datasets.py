"""``jaxanon datasets``: the list, a card, export and import."""

import pathlib
from typing import Annotated, Literal

import tyro

from jaxanon.cli import arguments, cards, console
from jaxanon.cli import data as cli_data

COMMANDS = "list", "export", "import"

ABOUT = """Lists, exports and imports data sets.

  jaxanon datasets                  lists the data sets
  jaxanon datasets NAME             shows attributes, presets, splits and files of one
  jaxanon datasets export NAME --preset P --split test --output f.npz
  jaxanon datasets import --help    converts CSV recordings of your own"""


def show(name: cards.Name = None, /, *, json: bool = False) -> None:
    """Lists the data sets, or shows the card of one.

    `jaxanon datasets export --help` and `jaxanon datasets import --help` describe the
    commands for files.

    Args:
      name: data set whose attributes, presets, splits and files to show
      json: print JSON
    """
    from jaxanon import datasets
    from jaxanon.kernels.checks import one_of

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


def import_csv(
    paths: Annotated[
        tyro.conf.Positional[tuple[pathlib.Path, ...]],
        tyro.conf.arg(metavar="CSV ...", help_behavior_hint="(required)"),
    ],
    /,
    *,
    output: pathlib.Path,
    channels: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")],
    labels: arguments.Names = None,
    rate_hz: arguments.Real = None,
    time: arguments.Name = None,
    units: arguments.Names = None,
    subject: arguments.Name = None,
    people: arguments.Path = None,
    length: int = 128,
    stride: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Cuts CSV recordings into windows and writes them to an .npz file.

    A CSV file has a header and one row per sample. A window never spans two classes of
    a label, two people, a gap in time, or rows with missing values. `--dataset` accepts
    the path of the .npz file.

    Args:
      paths: CSV files, in order of time for each person
      output: .npz file to write
      channels: columns with measurements
      labels: columns with the classes of each sample, such as activities
      rate_hz: samples per second; default: derived from --time
      time: column with seconds; default: consecutive rows without gaps
      units: units of the channels; one unit applies to all
      subject: column with the person; default: one person per file, named as the file
      people: CSV file with the column subject and a column per attribute of a person
      length: samples per window
      stride: samples from the start of one window to the next; default: half of
        --length
      overwrite: replace an existing file
    """
    import numpy as np

    from jaxanon import datasets
    from jaxanon.datasets import custom

    path = datasets.import_csv(
        paths,
        output,
        channels=cli_data.names(channels, "channels"),
        labels=() if labels is None else cli_data.names(labels, "labels"),
        rate_hz=rate_hz,
        time=time,
        units=() if units is None else cli_data.names(units, "units"),
        subject=subject,
        people=people,
        length=length,
        stride=stride,
        overwrite=overwrite,
    )
    arrays = custom.read_arrays(path)
    for name, classes in arrays.items():
        if name.endswith("_names"):
            counts = np.bincount(arrays[name.removesuffix("_names")])
            pairs = zip(classes, counts, strict=True)
            console.say(f"{name[:-6]}: " + ", ".join(f"{c} {n}" for c, n in pairs))
    rate = float(arrays["rate_hz"])
    console.say(
        f"{len(arrays['windows'])} windows of {length} samples at {rate:g} Hz: {path}"
    )


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
