"""Prepared recordings of a data set, built on first use."""

import contextlib
import importlib
import io
import os
from pathlib import Path

from jaxanon.datasets.description import Dataset, Origin
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import digest, expanded, naming


def cache_folder(data_dir=None) -> Path:
    """Returns ``data_dir``, else ``$JAXANON_CACHE``, else ``~/.cache/jaxanon``."""
    folder = data_dir or os.environ.get("JAXANON_CACHE") or "~/.cache/jaxanon"
    return expanded("JAXANON_CACHE", folder)


def read(dataset: Dataset | Origin, source=None, data_dir=None) -> list[Recording]:
    """Returns the recordings of a data set, and prepares them first if necessary.

    The name of the folder of prepared data contains a digest of the original files, so
    that each source has its own folder. TFDS writes to a temporary folder and renames
    it when it is complete.
    """
    cache = cache_folder(data_dir)
    files, content = locate(dataset, source, cache)
    folder = cache / content
    module, name = dataset.builder.split(":")
    builder_class = getattr(importlib.import_module(module), name)
    builder = builder_class(source=files, data_dir=folder)
    if not builder.data_path.exists():
        _prepare(builder)
    # Rebuild: a builder only sees data that existed when it was built.
    builder = builder_class(source=files, data_dir=folder)
    try:
        return builder.read()
    except Exception as error:  # array_record and TFDS raise many kinds.
        raise ValueError(
            f"the prepared data in {builder.data_path} is damaged ({error}); delete "
            "that folder and load again."
        ) from error


def locate(dataset: Dataset | Origin, source, cache: Path):
    """Returns the original files of a data set and a digest of their content.

    Raises:
      FileNotFoundError: if there are no such files.
      ValueError: if they are too damaged to list their content.
    """
    with naming(f"{dataset.name}, searched in {source or 'the default folders'}"):
        files = dataset.locate(source, cache)
        return files, digest(files, dataset.files)


def _prepare(builder) -> None:
    """Runs TFDS without its progress bars, which cannot be redirected."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            builder.download_and_prepare()
    except OSError:  # Another process may have completed the same folder first.
        if not builder.data_path.exists():
            raise
    finally:
        tfds.enable_progress_bar()
