"""Atomic writing of files, which never overwrites others by accident."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Opens a binary file that replaces ``path`` atomically at the end of the context.

    Creates missing folders. An existing file stays until the new one is on the disk,
    and for good if the block raises. A killed process leaves the temporary file
    ``.<name>.<process>.part``.

    Args:
      path: path of the file.

    Yields:
      The open file.

    Raises:
      OSError: if the file cannot be written.

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
        # NumPy's error for a full disk does not name the file.
        raise OSError(f"{path} could not be written completely ({error}).") from error
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_all(folder: str | os.PathLike) -> Iterator[Path]:
    """Makes an empty folder, whose files move to ``folder`` at the end of the context.

    If the block raises, ``folder`` stays as it was. A killed process leaves a hidden
    folder ``.*.part`` inside ``folder``. Files move one by one: if one cannot be moved,
    those before it have moved.

    Args:
      folder: path of the folder; missing folders are created.

    Yields:
      Path of the empty folder. Files in its folders move to folders of the same name.

    Raises:
      OSError: if the files cannot be moved.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with replacing_all(folder) as part:
      ...         write(part / "a" / "b.txt", "abc")
      ...         (Path(folder) / "a").exists()
      ...     (Path(folder) / "a" / "b.txt").read_text()
      False
      'abc'
    """
    folder = Path(folder)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(".part", ".", folder))
    try:
        yield part
        for path in sorted(part.rglob("*")):
            if path.is_file():
                target = folder / path.relative_to(part)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()  # Fails unless it is empty.


def write(path: str | os.PathLike, content: bytes | str) -> None:
    """Writes bytes, or text in UTF-8, to a file atomically."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def file_name(name: str) -> str:
    """Escapes any text as a file name without path separators.

    Keeps letters, digits, inner spaces and dots, and ``_-,=()``. Other characters
    become ``%`` and their bytes in hexadecimal. Different texts give different names.
    Names above 150 bytes end in a digest.

    Args:
      name: any text, such as an attribute's name.

    Example:
      >>> file_name("activity"), file_name("../a / b"), file_name("100%")
      ('activity', '%2E.%2Fa %2F b', '100%25')
    """
    last = len(name) - 1
    parts = [
        char
        if char.isalnum() or char in "_-,=()" or (char in ". " and 0 < index < last)
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for index, char in enumerate(name)
    ]
    escaped = "".join(parts) or "%"  # No other text escapes to a single "%".
    if len(escaped.encode()) <= 150:
        return escaped
    digest = hashlib.sha256(escaped.encode()).hexdigest()[:32]
    return f"{escaped.encode()[:100].decode(errors='ignore')}%~{digest}"


def check_writable(path: str | os.PathLike, overwrite: bool) -> None:
    """Checks that a file can be written, before the work to produce it.

    Args:
      path: path of the file.
      overwrite: whether to replace an existing file.

    Raises:
      FileExistsError: if ``path`` exists and ``overwrite`` is False.
      IsADirectoryError: if ``path`` is a folder.
      NotADirectoryError, PermissionError: if ``check_writable_folder`` raises.

    Example:
      >>> check_writable("a/b/c.npy", overwrite=False)
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a file, got a folder.")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists; pass overwrite=True (--overwrite) to replace it, "
            "or move it."
        )
    check_writable_folder(path.absolute().parent)


def check_writable_folder(folder: str | os.PathLike) -> None:
    """Checks that files can be written to a folder, which may not exist yet.

    Raises:
      NotADirectoryError: if the folder or its nearest existing parent is a file.
      PermissionError: if the folder or its nearest existing parent is not writable.

    Example:
      >>> check_writable_folder("a/b")
    """
    folder = Path(folder).absolute()
    nearest = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not nearest.is_dir():
        raise NotADirectoryError(f"{nearest} must be a folder, got a file.")
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise PermissionError(
            f"{nearest} must be writable, got: {error.strerror}; choose another "
            "folder, or copy it to a writable one."
        ) from error
