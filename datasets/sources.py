"""Original files, whether they lie in folders, in zips or by themselves."""

import contextlib
import gzip
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def find(name: str, source, pattern: str) -> Path | None:
    """The folder or zip that holds files whose names match ``pattern``.

    Looks at ``source`` and nowhere else if it is given; otherwise in
    ``$JAXANON_DATA/<name>`` and in ``../shared/data/<name>``, seen from the
    repository and from the current folder. Returns None if there is no such place.

    Raises:
      FileNotFoundError: if ``source`` is given and holds no such file.
    """
    if source is not None:
        found = _holding(Path(source).expanduser(), pattern)
        if found is None:
            there = Path(source).expanduser().exists()
            why = "" if there else " (there is no such place)"
            raise FileNotFoundError(
                f"source {str(source)!r} holds no file of {name}{why}; pass the folder "
                "or the zip of the original layout, which the README tells of."
            )
        return found
    places = [Path(__file__).parents[1].parent / "shared/data", Path("../shared/data")]
    if os.environ.get("JAXANON_DATA"):
        places.insert(0, Path(os.environ["JAXANON_DATA"]).expanduser())
    found = (_holding(place / name, pattern) for place in places)
    return next((place for place in found if place is not None), None)


def listing(sources: Sequence[Path], pattern: str = "") -> list[tuple]:
    """Name, size and fingerprint of each file that matches: what tells two apart.

    The fingerprint is the CRC-32 in a zip, the time of the last change elsewhere.
    """
    entries = [entry for source in sources for entry in _entries(source)]
    return sorted(entry for entry in entries if re.search(pattern, entry[0]))


def digest(sources: Sequence[Path], pattern: str = "") -> str:
    """16 hexadecimal digits that stand for ``listing``."""
    return hashlib.sha256(repr(listing(sources, pattern)).encode()).hexdigest()[:16]


def read_each(sources: Sequence[Path], pattern: str) -> Iterator:
    """Yields ``(match, content)`` of each file whose name matches, sorted by name."""
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
def opened(source: Path, name: str) -> Iterator[Any]:
    """One of the files that ``listing`` names, to read bytes from.

    It is unpacked from a zip, and decompressed if its name ends in ``.gz``.
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
    """What damaged files raise becomes a ValueError that says which they are.

    What is not there or not installed stays as it is, and what the system says of a
    file that it names.

    Args:
      what: is read meanwhile, its place included.

    Raises:
      ValueError: in place of any other exception; of a ValueError it keeps the words.

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
        said = type(error) is ValueError  # Not of its kinds: those are of codecs.
        why = error if said else f"damaged or of another layout ({error!r})."
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


def _holding(place: Path, pattern: str) -> Path | None:
    """``place`` or the first zip in it, whichever holds a matching file."""
    if not place.exists():
        return None
    zips = sorted(place.glob("*.zip")) if place.is_dir() else []
    return next((path for path in (place, *zips) if listing([path], pattern)), None)
