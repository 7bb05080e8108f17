"""Exported anonymizers and attackers, loaded in ONNX Runtime."""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxanon.edge import draws, types

FORMAT = 1
# Types of nodes, encoded as in an ONNX file: field tag, length, text.
_DRAWING = [
    b"\x22" + bytes([len(name)]) + name
    for name in (
        *(b"RandomNormal", b"RandomUniform", b"RandomNormalLike", b"Multinomial"),
        *(b"RandomUniformLike", b"Bernoulli"),
    )
]


def read_checked(
    path: str | os.PathLike, digest: str | None = None, how: str = "jaxanon export"
) -> bytes:
    """Returns the bytes of a file after checking its SHA-256 digest.

    Args:
      path: path of the model.
      digest: 64 hexadecimal digits. None reads them from the file ``<path>.sha256``, in
        the format of ``sha256sum``.
      how: command that makes such a file, for messages.

    Raises:
      FileNotFoundError: if the file or its digest is missing.
      ValueError: if the digest is malformed or does not match.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.onnx"
      >>> digest = hashlib.sha256(b"a").hexdigest()
      >>> read_checked(path.write_bytes(b"a") and path, digest)
      b'a'
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"model {path} does not exist; create it with {how}.")
    digest_path, source = path.with_name(path.name + ".sha256"), "digest"
    if digest is None:
        if not digest_path.is_file():
            raise FileNotFoundError(
                f"the digest file {digest_path.name} of {path} does not exist; copy "
                "both files, or give the digest (of the model: --digest)."
            )
        digest, source = digest_path.read_text(errors="replace"), digest_path.name
    wanted = digest.split()[0].lower() if digest.split() else ""
    if len(wanted) != 64 or set(wanted) - set("0123456789abcdef"):
        raise ValueError(
            f"{source} must begin with the 64 hexadecimal digits of a SHA-256, got "
            f"{digest[:80]!r}; create it with sha256sum where the model was exported."
        )
    data = path.read_bytes()
    actual = hashlib.sha256(data).hexdigest()
    if actual != wanted:
        raise ValueError(
            f"{path} must have the SHA-256 {wanted[:12]}... of {source}, got "
            f"{actual[:12]}...: the file was truncated, modified or replaced; copy it "
            "and its digest again."
        )
    return data


def read_metadata(path, properties: dict[str, str], kind: str) -> dict:
    """Returns the metadata of a file.

    Args:
      path: path of the file, for messages.
      properties: ONNX metadata.
      kind: required kind of file.

    Raises:
      ValueError: if metadata are missing or have a newer format or another kind.

    Example:
      >>> properties = {"jaxanon": '{"format": 1, "kind": "attackers"}'}
      >>> read_metadata("a", properties, "attackers")
      {'format': 1, 'kind': 'attackers'}
    """
    if "jaxanon" not in properties:
        raise ValueError(
            f"{path} has no metadata of jaxanon; create the file with jaxanon export."
        )
    try:
        metadata = json.loads(properties["jaxanon"])
        version, found = int(metadata["format"]), metadata["kind"]
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"the metadata of {path} cannot be read ({error!r}); export it again."
        ) from error
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version}, but this version of jaxanon reads {FORMAT}; "
            "run pip install --upgrade jaxanon."
        )
    if found != kind:
        raise ValueError(
            f"{path} must hold {kind!r}, got {found!r}; choose the other file."
        )
    return metadata


def refuse_drawing(path, data: bytes) -> None:
    """Raises an error if a graph draws random numbers, because they are predictable.

    Args:
      path: path of the file, for messages.
      data: contents of the file.

    Raises:
      ValueError: if a node draws.

    Example:
      >>> refuse_drawing("a", b"")
    """
    for mark in _DRAWING:
        if mark in data:
            raise ValueError(
                f"{path} draws random numbers inside its graph ({mark[2:].decode()}); "
                "export it again, so that draws are inputs."
            )


def _session(path, data, threads):
    """Creates an ONNX Runtime session with low memory use."""
    import onnxruntime  # Optional, because budgets do not need it.

    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number >= 1, got {threads!r}.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # Errors are raised instead.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime's errors have no common base class.
        first = str(error).partition("\n")[0]
        raise ValueError(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {path} ({first}); "
            "export it with --format onnx, or run pip install --upgrade onnxruntime."
        ) from error


@contextlib.contextmanager
def _naming(path):
    """Converts errors from a file's metadata to a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        why = error if isinstance(error, ValueError) else f"damaged ({error!r})"
        raise ValueError(f"{path}: {why}") from error


def _check(path, what, found, wanted):
    """Raises ValueError if a graph's inputs or outputs differ from its metadata."""
    found = {value.name: (value.type, value.shape) for value in found}
    same = found.keys() == wanted.keys()
    for name, (kind, shape) in wanted.items() if same else ():
        # An entry that is not a number is a dynamic size.
        sizes = itertools.zip_longest(found[name][1], shape)
        numbers = [n if isinstance(n, int) else m for n, m in sizes]
        same &= found[name][0] == kind and numbers == shape
    if not same:
        raise ValueError(
            f"the {what} of {path} must be {wanted}, got {found}; export it again."
        )


class _Graph:
    """A graph that takes one window and can be stopped from another thread."""

    def __init__(self, session, metadata: dict, signature: types.Signature):
        import onnxruntime

        self.signature, self.metadata = signature, metadata
        self._session, self._input = session, metadata["input"]["name"]
        self._new_options = onnxruntime.RunOptions
        self._options = self._new_options()

    def _run(self, names, window, drawn: Mapping[str, np.ndarray]):
        """Returns the named outputs for a window."""
        window = np.ascontiguousarray(window, np.float32)
        shape = (self.signature.time, len(self.signature.channels))
        if window.shape != shape:
            raise ValueError(
                f"window must be float[{shape[0]}, {shape[1]}], got shape "
                f"{window.shape}; see the model's signature."
            )
        self._options = options = self._new_options()
        feed = {self._input: window[None], **drawn}
        return [output[0] for output in self._session.run(names, feed, options)]

    def stop(self) -> None:
        """Ends the current run, which raises, after its current node."""
        self._options.terminate = True


class Model(_Graph):
    """An anonymizer of one window at a time; see ``load``.

    Attributes:
      signature: signature of the windows.
      epsilon: ε of one released window, or None.
      card: model card.
      metadata: all metadata of the file.
    """

    def __init__(self, session, metadata: dict, signature: types.Signature):
        super().__init__(session, metadata, signature)
        self.epsilon: float | None = metadata["epsilon"]
        self.card: str = str(metadata.get("card", ""))
        self._draws, self._output = metadata["draws"], metadata["output"]

    def anonymize(self, window, given: Mapping[str, np.ndarray] | None = None):
        """Anonymizes a window.

        Args:
          window: ``float[time, channels]`` in the signature's units.
          given: draws by name, to repeat an experiment. They must stay secret. None
            draws from the operating system.

        Returns:
          ``float32[time, channels]``, in the same units.

        Raises:
          ValueError: if the window has another shape.
          Exception: error of ONNX Runtime, if the graph fails or is stopped.
        """
        if given is None:
            given = {each["name"]: draws.draw(each) for each in self._draws}
        return self._run([self._output], window, given)[0]


class Candidate(_Graph):
    """One of several anonymizers among which windows decide; see ``edge.folder``.

    Its graph also returns the classes that the method's classifiers infer from the
    anonymized window.
    """

    def __init__(self, session, metadata: dict, signature: types.Signature):
        super().__init__(session, metadata, signature)
        self._draws = metadata["draws"]

    def __call__(
        self, window, public: int, given: Mapping[str, np.ndarray] | None = None
    ) -> tuple[np.ndarray, int, np.ndarray]:
        """Anonymizes a window, and classifies the result.

        Args:
          window: ``float[time, channels]`` in the signature's units.
          public: public class of the raw window.
          given: draws by name; None draws from the operating system.

        Returns:
          ``float32[time, channels]``, the public class, and ``int32[A]`` private
          classes.
        """
        if given is None:
            given = {each["name"]: draws.draw(each) for each in self._draws}
        given = {"public": np.array([public], np.int32), **given}
        safe, found, private = self._run(
            ["safe", "public class", "private"], window, given
        )
        return safe, int(found), private


class Inference(NamedTuple):
    """Description of one of the attackers' outputs."""

    output: str
    attribute: str
    role: str  # "public" or "private"
    trained_on: str  # "raw" or "anonymized"
    classes: tuple[str, ...]


class Attackers(_Graph):
    """Classifiers of a window, for demonstrations; see ``load_attackers``.

    Attributes:
      signature: signature of the windows.
      inferences: descriptions of the outputs.
    """

    def __init__(self, session, metadata, signature, inferences: tuple[Inference, ...]):
        super().__init__(session, metadata, signature)
        self.inferences = inferences

    def __call__(self, window) -> dict[str, np.ndarray]:
        """Returns ``float32[classes]`` by output for a ``float[time, channels]``.

        Raises:
          ValueError: if the window has another shape.
        """
        names = [each.output for each in self.inferences]
        return dict(zip(names, self._run(names, window, {}), strict=True))


def _open(path, digest, threads, kind):
    """Returns session, metadata, signature, and type and shape of windows."""
    option = " --attackers" if kind == "attackers" else ""
    data = read_checked(path, digest, f"jaxanon export{option}")
    refuse_drawing(path, data)
    session = _session(path, data, threads)
    metadata = read_metadata(path, session.get_modelmeta().custom_metadata_map, kind)
    described: Any = metadata.get("input")
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise ValueError(f"{path} does not describe its input; export it again.")
    with _naming(path):
        signature = types.read(described)
    windows = "tensor(float)", [1, signature.time, len(signature.channels)]
    return session, metadata, signature, windows


def load(path: str | os.PathLike, digest: str | None = None, threads: int = 1) -> Model:
    """Loads an anonymizer that ``jaxanon export`` wrote.

    Args:
      path: path of the ONNX file.
      digest: SHA-256 of the file. None reads it from ``<path>.sha256``.
      threads: number of threads of ONNX Runtime, > 0.

    Returns:
      ``Model``.

    Raises:
      FileNotFoundError: if the file or its digest is missing.
      ValueError: if the file is damaged, is not an anonymizer, has a newer format, or
        is inconsistent.

    Example:
      >>> load("nowhere.onnx")
      Traceback (most recent call last):
      ...
      FileNotFoundError: model nowhere.onnx does not exist; create it with jaxanon ...
    """
    session, metadata, signature, windows = _open(path, digest, threads, "anonymizer")
    inputs = _inputs(path, metadata, windows)
    epsilon = metadata.get("epsilon")
    number = isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool)
    if epsilon is not None and not (number and 0 < epsilon < float("inf")):
        raise ValueError(
            f"epsilon of {path} must be null or > 0, got {epsilon!r}; export it again."
        )
    metadata |= {"epsilon": epsilon}
    _check(path, "inputs", session.get_inputs(), inputs)
    outputs = {str(metadata.get("output")): windows}
    _check(path, "outputs", session.get_outputs(), outputs)
    return Model(session, metadata, signature)


def _inputs(path, metadata, windows):
    """Checks the description of the draws; returns type and shape by input."""
    described = metadata.get("draws")
    if not isinstance(described, list):
        raise ValueError(f"{path} does not describe its draws; export it again.")
    with _naming(path):
        metadata["draws"] = [draws.checked(each) for each in described]
    inputs = {metadata["input"]["name"]: windows}
    for each in metadata["draws"]:
        inputs[each["name"]] = draws.LAWS[each["law"]][2], each["shape"]
    return inputs


def load_candidate(path: str | os.PathLike, digest: str, num_private: int) -> Candidate:
    """Loads one of several models of a folder.

    Args:
      path, digest: see ``load``.
      num_private: number of private attributes.

    Raises:
      FileNotFoundError, ValueError: see ``load``.
    """
    session, metadata, signature, windows = _open(path, digest, 1, "candidate")
    inputs = _inputs(path, metadata, windows) | {"public": ("tensor(int32)", [1])}
    _check(path, "inputs", session.get_inputs(), inputs)
    outputs = {"safe": windows, "public class": ("tensor(int32)", [1])}
    outputs |= {"private": ("tensor(int32)", [1, num_private])}
    _check(path, "outputs", session.get_outputs(), outputs)
    return Candidate(session, metadata, signature)


def load_attackers(
    path: str | os.PathLike, digest: str | None = None, threads: int = 1
) -> Attackers:
    """Loads attackers that ``jaxanon export --attackers`` wrote.

    Args:
      path, digest, threads: see ``load``.

    Returns:
      ``Attackers``, which map ``float[time, channels]`` to probabilities by output.

    Raises:
      FileNotFoundError, ValueError: see ``load``.

    Example:
      >>> load_attackers("nowhere.onnx")
      Traceback (most recent call last):
      ...
      FileNotFoundError: model nowhere.onnx does not exist; create it with jaxanon ...
    """
    session, metadata, signature, windows = _open(path, digest, threads, "attackers")
    # Files of version 0.1 have the key "reads".
    described = metadata.get("inferences", metadata.get("reads"))
    try:
        inferences = tuple(
            Inference(
                str(each["output"]),
                str(each["attribute"]),
                str(each["role"]),
                str(each["trained_on"]),
                tuple(map(str, each["classes"])),
            )
            for each in described
        )
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} does not describe its outputs ({error!r}); export it again."
        ) from error
    inputs = {metadata["input"]["name"]: windows}
    _check(path, "inputs", session.get_inputs(), inputs)
    outputs = {
        each.output: ("tensor(float)", [1, len(each.classes)]) for each in inferences
    }
    _check(path, "outputs", session.get_outputs(), outputs)
    return Attackers(session, metadata, signature, inferences)
