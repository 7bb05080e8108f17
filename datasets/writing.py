"""Files written whole or not at all, and never over others unasked."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A file open for bytes that takes its name when all of it is on the disk.

    Missing folders are made. What was there under that name stays until then, and for
    good if the block raises; who is killed leaves a ``.<name>.<process>.part`` that
    nobody reads.

    Args:
      path: of the file.

    Yields:
      The open file.

    Raises:
      OSError: if it cannot be written.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with replacing(f"{folder}/a/b.bin") as file:
      ...         _ = file.write(b"abc")
      ...     [entry.name for entry in Path(folder, "a").iterdir()]
      ['b.bin']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        if type(error) is not OSError or error.errno is not None:
            raise
        # NumPy tells how many items of how many were written, and not of what file.
        raise OSError(f"{path} could not be written whole ({error}).") from error
    finally:
        part.unlink(missing_ok=True)


def write(path: str | os.PathLike, content: bytes | str) -> None:
    """Writes a file of these bytes, or of this text in UTF-8."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def file_name(name: str) -> str:
    """Returns a name of one file, in no other folder, for any text.

    Letters, digits, spaces and ``_-.,=()`` stay; other characters, and dots and spaces
    at an end, become ``%`` and their bytes. Different names give different files.
    Names of more than 150 bytes end in a digest instead.

    Args:
      name: such as an attribute's, which may be any text.

    Example:
      >>> file_name("activity"), file_name("../a / b"), file_name("100%")
      ('activity', '%2E.%2Fa %2F b', '100%25')
    """
    last = len(name) - 1
    parts = [
        char
        if char.isalnum() or char in "_-,=()" or (char in ". " and 0 < at < last)
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for at, char in enumerate(name)
    ]
    escaped = "".join(parts) or "%"  # No escape is a lone percent sign.
    if len(escaped.encode()) <= 150:
        return escaped
    digest = hashlib.sha256(escaped.encode()).hexdigest()[:32]
    return f"{escaped.encode()[:100].decode(errors='ignore')}%~{digest}"


def refuse_unwritable(path: str | os.PathLike, overwrite: bool) -> None:
    """Refuses a file that could not be written later, before any work is done for it.

    Args:
      path: of the file.
      overwrite: whether a file that is there may be replaced.

    Raises:
      FileExistsError: if something is there that must not be replaced.
      IsADirectoryError: if that is a folder.
      NotADirectoryError, PermissionError: of ``refuse_unwritable_folder``.

    Example:
      >>> refuse_unwritable("a/b/c.npy", overwrite=False)
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists; pass overwrite=True (--overwrite) to replace it, or "
            "move it away."
        )
    refuse_unwritable_folder(path.absolute().parent)


def refuse_unwritable_folder(folder: str | os.PathLike) -> None:
    """Refuses a folder that could not be made later, or would take no files.

    Raises:
      NotADirectoryError: if it, or where it would be made, is a file.
      PermissionError: if it, or where it would be made, takes no files.

    Example:
      >>> refuse_unwritable_folder("a/b")
    """
    folder = Path(folder).absolute()
    there = next(own for own in (folder, *folder.parents) if os.path.lexists(own))
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is no folder; name one.")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise PermissionError(
            f"nothing can be written into {there} ({error.strerror}); choose another "
            "place, or copy it to one."
        ) from error
