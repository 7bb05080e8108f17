"""Original files, whether they lie in a folder or in a zip."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path


def listing(source: Path, pattern: str = "") -> list[tuple]:
    """Name, size and fingerprint of each file that matches: what tells two apart.

    The fingerprint is the CRC-32 in a zip, the time of the last change elsewhere.
    """
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        entries = [
            (path.relative_to(source).as_posix(), path.stat().st_size, path.stat())
            for path in files
        ]
        entries = [(name, size, stat.st_mtime_ns) for name, size, stat in entries]
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            entries = [(i.filename, i.file_size, i.CRC) for i in archive.infolist()]
    else:
        stat = source.stat()
        return [(source.name, stat.st_size, stat.st_mtime_ns)]
    return sorted(entry for entry in entries if re.search(pattern, entry[0]))


def read_each(source: Path, pattern: str) -> Iterator[tuple[re.Match, bytes]]:
    """Yields ``(match, content)`` of each file whose name matches, sorted by name."""
    names = [name for name, _, _ in listing(source, pattern)]
    if source.is_dir():
        for name in names:
            yield re.search(pattern, name), (source / name).read_bytes()
        return
    with zipfile.ZipFile(source) as archive:
        for name in names:
            yield re.search(pattern, name), archive.read(name)
