"""A model file on the device: read once, its digest checked, then its metadata."""

import hashlib
import json
import os
import pathlib

FORMAT = 1
# As a node's type is written in an ONNX file: a field's tag, its length, its text.
_DRAWING = [
    b"\x22" + bytes([len(name)]) + name
    for name in (
        *(b"RandomNormal", b"RandomUniform", b"RandomNormalLike", b"Multinomial"),
        *(b"RandomUniformLike", b"Bernoulli"),
    )
]


def read(
    path: str | os.PathLike, digest: str | None = None, how: str = "jaxanon export"
) -> bytes:
    """The bytes of a file whose SHA-256 is what it has to be.

    Args:
      path: of the model.
      digest: 64 hexadecimal digits; None takes them from the file beside it, of the
        same name and ``.sha256`` behind it, as ``sha256sum`` writes it.
      how: such a file is made.

    Raises:
      FileNotFoundError: without the file, or without a digest.
      ValueError: if the digest is none, or of other bytes.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.onnx"
      >>> read(path.write_bytes(b"a") and path, hashlib.sha256(b"a").hexdigest())
      b'a'
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model {path}; write one with {how}.")
    beside, source = path.with_name(path.name + ".sha256"), "digest"
    if digest is None:
        if not beside.is_file():
            raise FileNotFoundError(
                f"nothing tells whether {path} is whole: {beside.name} is not beside "
                "it; copy both files, or give its digest (of the model: --digest)."
            )
        digest, source = beside.read_text(errors="replace"), beside.name
    wanted = digest.split()[0].lower() if digest.split() else ""
    if len(wanted) != 64 or set(wanted) - set("0123456789abcdef"):
        raise ValueError(
            f"{source} must begin with the 64 hexadecimal digits of a SHA-256, got "
            f"{digest[:80]!r}; make it with sha256sum where the model was exported."
        )
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        raise ValueError(
            f"{path} has SHA-256 {found[:12]}..., and {source} says {wanted[:12]}...: "
            "it was truncated, tampered with or replaced; copy it anew with its digest."
        )
    return data


def metadata(path, properties: dict[str, str], kind: str) -> dict:
    """What a file tells of itself.

    Args:
      path: for messages.
      properties: ONNX metadata.
      kind: that it must be of.

    Raises:
      ValueError: without it, for a newer format or another kind.

    Example:
      >>> metadata("a", {"jaxanon": '{"format": 1, "kind": "attackers"}'}, "attackers")
      {'format': 1, 'kind': 'attackers'}
    """
    if "jaxanon" not in properties:
        raise ValueError(
            f"{path} is an ONNX file without jaxanon's metadata; make it with jaxanon "
            "export."
        )
    try:
        told = json.loads(properties["jaxanon"])
        made, found = int(told["format"]), told["kind"]
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"the metadata of {path} cannot be read ({error!r}); export it again."
        ) from error
    if made > FORMAT:
        raise ValueError(
            f"{path} is of format {made}, and this jaxanon reads {FORMAT}; run pip "
            "install --upgrade jaxanon."
        )
    if found != kind:
        raise ValueError(
            f"{path} must hold {kind!r}, and holds {found!r}; name the other file."
        )
    return told


def draws_nothing(path, data: bytes) -> None:
    """Refuses a graph with nodes that draw: their generators are no secret.

    Args:
      path: for messages.
      data: of the file.

    Raises:
      ValueError: if there is such a node.

    Example:
      >>> draws_nothing("a", b"")
    """
    for mark in _DRAWING:
        if mark in data:
            raise ValueError(
                f"{path} draws inside its graph ({mark[2:].decode()}), not from the "
                "operating system; export it again, its draws as inputs."
            )
