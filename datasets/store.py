"""The prepared recordings of a data set, made on first use."""

import contextlib
import importlib
import io
import os
from pathlib import Path

from jaxanon.datasets.description import Dataset, Origin
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import digest, naming


def cache_folder(data_dir=None) -> Path:
    """``data_dir``, else ``$JAXANON_CACHE``, else ``~/.cache/jaxanon``."""
    folder = data_dir or os.environ.get("JAXANON_CACHE") or "~/.cache/jaxanon"
    return Path(folder).expanduser()


def read(dataset: Dataset | Origin, source=None, data_dir=None) -> list[Recording]:
    """The recordings of ``dataset``, prepared first if they are not yet.

    Prepared data lies in a folder named for the content of the original files, so
    another source is prepared anew and never mistaken for this one. TFDS writes to
    a temporary folder and renames it when it is complete.
    """
    cache = cache_folder(data_dir)
    found, original = located(dataset, source, cache)
    folder = cache / original
    module, name = dataset.builder.split(":")
    make = getattr(importlib.import_module(module), name)
    builder = make(source=found, data_dir=folder)
    if not builder.data_path.exists():
        _prepare(builder)
    # A builder knows what was there when it was made, before which no other process
    # may have been done.
    builder = make(source=found, data_dir=folder)
    try:
        return builder.read()
    except Exception as error:  # Whatever array_record and TFDS make of damage.
        raise ValueError(
            f"the prepared data in {builder.data_path} cannot be read ({error}); "
            "delete that folder and load again."
        ) from error


def located(dataset: Dataset | Origin, source, cache: Path):
    """The original files of a data set, and what stands for their content.

    Raises:
      FileNotFoundError: if there are none.
      ValueError: if they are damaged so much that their names cannot be told.
    """
    name = dataset.builder.split(".")[-2]
    with naming(f"{name}, looked for in {source or 'the usual places'}"):
        found = dataset.locate(source, cache)
        return found, digest(found, dataset.files)


def _prepare(builder) -> None:
    """Runs TFDS without its progress bars, which it cannot redirect."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            builder.download_and_prepare()
    except OSError:  # Another process may have finished the same folder first.
        if not builder.data_path.exists():
            raise
    finally:
        tfds.enable_progress_bar()
