"""Access to original files in folders, in zip archives or on their own."""

import contextlib
import gzip
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def expanded(name: str, path) -> Path:
    """Returns a path with the home folder instead of ``~``.

    Raises:
      ValueError: if the system knows no home folder; names the argument or variable.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # Without $HOME, for a user without an account.
        raise ValueError(
            f"{name} must be a path without ~, because the home folder is unknown, got "
            f"{str(path)!r}; set {name} to a full path, or set HOME."
        ) from error


def find(name: str, source, pattern: str) -> Path | None:
    """Finds the folder or zip archive with files whose names match ``pattern``.

    Searches only ``source`` if it is given. Otherwise searches ``$JAXANON_DATA/<name>``
    and ``../shared/data/<name>``, relative to the repository and to the current folder.
    Returns None if nothing is found.

    Raises:
      FileNotFoundError: if ``source`` is given and holds no matching file.
    """
    if source is not None:
        given = expanded("source", source)
        path = _with_match(given, pattern)
        if path is None:
            why = "" if given.exists() else ", because it does not exist"
            raise FileNotFoundError(
                f"source {str(source)!r} has no file of {name}{why}; pass the folder "
                "or zip archive with the original layout, see the data set's README.md."
            )
        return path
    roots = [Path(__file__).parents[1].parent / "shared/data", Path("../shared/data")]
    if os.environ.get("JAXANON_DATA"):
        roots.insert(0, expanded("JAXANON_DATA", os.environ["JAXANON_DATA"]))
    paths = (_with_match(root / name, pattern) for root in roots)
    return next((path for path in paths if path is not None), None)


def listing(sources: Sequence[Path], pattern: str = "") -> list[tuple]:
    """Returns name, size and fingerprint of each matching file, sorted.

    The fingerprint is the CRC-32 in a zip archive, else the modification time.
    """
    entries = [entry for source in sources for entry in _entries(source)]
    return sorted(entry for entry in entries if re.search(pattern, entry[0]))


def digest(sources: Sequence[Path], pattern: str = "") -> str:
    """Returns 16 hexadecimal digits of a digest of ``listing``."""
    return hashlib.sha256(repr(listing(sources, pattern)).encode()).hexdigest()[:16]


def read_each(sources: Sequence[Path], pattern: str) -> Iterator:
    """Yields ``(match, content)`` of each matching file, sorted by name."""
    for source in sources:
        names = [entry[0] for entry in listing([source], pattern)]
        if not zipfile.is_zipfile(source):
            for name in names:
                path = source / name if source.is_dir() else source
                yield re.search(pattern, name), path.read_bytes()
            continue
        with zipfile.ZipFile(source) as archive:
            for name in names:
                yield re.search(pattern, name), archive.read(name)


@contextlib.contextmanager
def open_file(source: Path, name: str) -> Iterator[Any]:
    """Opens a file of ``listing`` for reading bytes.

    Extracts it from a zip archive, and decompresses it if its name ends in ``.gz``.
    """
    with contextlib.ExitStack() as stack:
        if zipfile.is_zipfile(source):
            archive = stack.enter_context(zipfile.ZipFile(source))
            file = stack.enter_context(archive.open(name))
        else:
            path = source / name if source.is_dir() else source
            file = stack.enter_context(path.open("rb"))
        if name.endswith(".gz"):
            file = stack.enter_context(gzip.open(file))
        yield file


@contextlib.contextmanager
def naming(what: str) -> Iterator[None]:
    """Converts errors of damaged files in a context to a ValueError that names them.

    Missing files, missing packages and errors of the system that name a file pass
    unchanged.

    Args:
      what: description of the data that is read, including its path.

    Raises:
      ValueError: in place of any other exception; keeps the message of a ValueError.

    Example:
      >>> with naming("toy in toy.csv"):
      ...     {}["x"]
      Traceback (most recent call last):
      ...
      ValueError: toy in toy.csv: damaged or of another layout (KeyError('x')).
    """
    try:
        yield
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # Whatever a file format's reader raises.
        if isinstance(error, OSError) and error.filename is not None:
            raise
        explained = type(error) is ValueError  # Subclasses come from codecs.
        why = error if explained else f"damaged or of another layout ({error!r})."
        raise ValueError(f"{what}: {why}") from error


def _entries(source):
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        stats = [(path.relative_to(source).as_posix(), path.stat()) for path in files]
        return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            return [(i.filename, i.file_size, i.CRC) for i in archive.infolist()]
    stat = source.stat()
    return [(source.name, stat.st_size, stat.st_mtime_ns)]


def _with_match(root: Path, pattern: str) -> Path | None:
    """Returns ``root``, or the first zip archive in it, with a matching file."""
    if not root.exists():
        return None
    zips = sorted(root.glob("*.zip")) if root.is_dir() else []
    return next((path for path in (root, *zips) if listing([path], pattern)), None)
