"""A file with its digest, and with what is said of it, beside it."""

import hashlib
import pathlib

from jaxanon.datasets import writing
from jaxanon.datasets.choices import choose

FORMATS = ("onnx", "stablehlo")


def names(path: pathlib.Path, *endings: str) -> list[pathlib.Path]:
    """The file, its digest's, and those of further endings.

    Example:
      >>> [one.name for one in names(pathlib.Path("a/b.onnx"), ".md")]
      ['b.onnx', 'b.onnx.sha256', 'b.onnx.md']
    """
    return [path.with_name(path.name + ending) for ending in ("", ".sha256", *endings)]


def check_ending(path: pathlib.Path, format: str) -> None:
    """Raises ValueError for a format that there is not, or the name of another's file.

    Example:
      >>> check_ending(pathlib.Path("a/b.onnx"), "onnx")
    """
    choose("format", format, FORMATS)
    onnx = path.suffix.lower() == ".onnx"
    if onnx != (format == "onnx"):
        raise ValueError(
            "the name of a file must end in .onnx if its format is onnx, and else may "
            f"not, or it is taken for what it is not; got {path.name!r} for {format}."
        )


def refuse_unwritable(path: pathlib.Path, *endings: str, overwrite: bool) -> None:
    """Refuses those files, if one of them could not be written later."""
    for file in names(path, *endings):
        writing.refuse_unwritable(file, overwrite)


def write(path: pathlib.Path, raw: bytes, **beside: str | None) -> str:
    """Writes a file, its digest, and texts beside it, by their endings.

    The digest is there first, so that nobody ever finds a file that passes for another.

    Args:
      path: of the file.
      raw: its bytes.
      **beside: of each ending the text; what is None is not written.

    Returns:
      The SHA-256 digest, in hexadecimal.
    """
    digest = hashlib.sha256(raw).hexdigest()
    texts = {"sha256": f"{digest}  {path.name}\n"} | beside
    for ending, text in texts.items():
        if text is not None:
            writing.write(path.with_name(f"{path.name}.{ending}"), text)
    writing.write(path, raw)
    return digest
