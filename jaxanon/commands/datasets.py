"""``jaxanon datasets``: which there are, and their windows as a file."""

import pathlib
from typing import Annotated, Literal

import tyro

from jaxanon.commands import show, sources

ABOUT = """The data sets that have a name.

  jaxanon datasets                                        lists them
  jaxanon datasets export NAME --preset P --split test --output f.npz"""


def show_all() -> None:
    """Lists the data sets, or exports one: `jaxanon datasets export --help`."""
    from jaxanon import datasets

    rows = datasets.describe()
    show.datasets(
        rows, {row["name"]: datasets.whereabouts(row["name"]) for row in rows}
    )


def export(
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")],
    /,
    *,
    output: pathlib.Path,
    preset: sources.Name = None,
    split: Literal["train", "test", "all"] = "test",
    public: sources.Name = None,
    private: sources.Names = None,
    split_by: sources.Name = None,
    split_seed: int = 0,
    source: sources.Path = None,
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

    writing.refuse_unwritable(output, overwrite)
    options = sources.DataOptions(
        dataset=name,
        preset=preset,
        public=public,
        private=private,
        split=split_by,
        split_seed=split_seed,
        source=source,
    )
    path = datasets.export(sources.load(options), split, output, overwrite=overwrite)
    which = "windows" if split == "all" else f"{split} windows"
    show.say(f"The {which} of {name}: {path}")
