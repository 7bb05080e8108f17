"""``jaxanon datasets``: which there are, and their windows as a file."""

import pathlib
from typing import Annotated, Literal

import tyro

from jaxanon.cli import arguments, console
from jaxanon.cli import data as cli_data

ABOUT = """The data sets that have a name.

  jaxanon datasets                                        lists them
  jaxanon datasets export NAME --preset P --split test --output f.npz
  jaxanon datasets import --help                          makes one of your own CSV"""


def show_all() -> None:
    """Lists the data sets; there are also `export --help` and `import --help`."""
    from jaxanon import datasets

    rows = datasets.describe()
    console.datasets(
        rows, {row["name"]: datasets.data_locations(row["name"]) for row in rows}
    )


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
    source: arguments.Path = None,
    overwrite: bool = False,
) -> None:
    """Writes windows and labels as an .npz file that works wherever a name does.

    Args:
      name: of the data set
      output: the .npz to write
      preset: how recordings are cut into windows; default: the data set's first
      split: which windows; all keeps what is to train and what to test with apart
      public: attribute that the file gives as the one to keep
      private: attributes that the file gives as those to hide, comma-separated
      split_by: trial, subject, time-block or released; default: the first on offer
      split_seed: draws the test subjects of --split-by subject
      source: folder or file of the original data, where it is not found alone
      overwrite: replace the output file that is there
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
    channels: Annotated[str, tyro.conf.arg(metavar="A,B,...")],
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
    """Cuts CSV files into windows, an .npz that works wherever a name does.

    A file has a line of names and a row for each sample. No window reaches over two
    classes of a label, two people, a gap in time, or rows that lack something.

    Args:
      paths: the files, in order of time for each person
      output: the .npz to write
      channels: columns with what was measured, comma-separated
      labels: columns with what was being done, comma-separated
      rate_hz: rows a second; default: by --time
      time: column with seconds; default: rows follow each other without gaps
      units: of the channels, comma-separated; one is that of all
      subject: column that says whose row it is; default: a file is of one person, who
        is called as it is
      people: CSV with the column subject, and one for each attribute of a person
      length: samples of a window
      stride: samples from the start of a window to the next; default: half of --length
      overwrite: replace the output file that is there
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
            told = zip(classes, counts, strict=True)
            console.say(f"{name[:-6]}: " + ", ".join(f"{c} {n}" for c, n in told))
    rate = float(arrays["rate_hz"])
    console.say(
        f"{len(arrays['windows'])} windows of {length} samples at {rate:g} Hz: {path}"
    )


def list_inferences() -> None:
    """Lists known inferences from sensor data, and the data sets that label them.

    `--public` and `--private` accept these names in place of attributes.
    """
    from rich.table import Table

    from jaxanon import datasets
    from jaxanon.methods.deeprotect.inferences import REPOSITORY

    known = {row["name"]: row["attributes"] for row in datasets.describe()}
    table = Table(title="Inferences, of DEEProtect's Table I", title_justify="left")
    for column in ("inference", "tells", "sensors", "labelled here as"):
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
