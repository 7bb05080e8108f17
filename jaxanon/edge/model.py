"""An anonymizer or attackers in a file, and what they make of a window."""

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
# As a node's type is written in an ONNX file: a field's tag, its length, its text.
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
      >>> digest = hashlib.sha256(b"a").hexdigest()
      >>> read_checked(path.write_bytes(b"a") and path, digest)
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


def read_metadata(path, properties: dict[str, str], kind: str) -> dict:
    """What a file tells of itself.

    Args:
      path: for messages.
      properties: ONNX metadata.
      kind: that it must be of.

    Raises:
      ValueError: without it, for a newer format or another kind.

    Example:
      >>> told = {"jaxanon": '{"format": 1, "kind": "attackers"}'}
      >>> read_metadata("a", told, "attackers")
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


def refuse_drawing(path, data: bytes) -> None:
    """Refuses a graph with nodes that draw: their generators are no secret.

    Args:
      path: for messages.
      data: of the file.

    Raises:
      ValueError: if there is such a node.

    Example:
      >>> refuse_drawing("a", b"")
    """
    for mark in _DRAWING:
        if mark in data:
            raise ValueError(
                f"{path} draws inside its graph ({mark[2:].decode()}), not from the "
                "operating system; export it again, its draws as inputs."
            )


def _session(path, data, threads):
    """An ONNX Runtime session that keeps no more memory than it needs."""
    import onnxruntime  # Whoever keeps a budget alone has it from no extra.

    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number >= 1, got {threads!r}.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # What fails is raised; nothing is printed.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime's own have no common ancestor.
        first = str(error).partition("\n")[0]
        raise ValueError(
            f"ONNX Runtime {onnxruntime.__version__} does not load {path} ({first}); "
            "export it with --format onnx, or run pip install --upgrade onnxruntime."
        ) from error


@contextlib.contextmanager
def _naming(path):
    """Whatever a file's words about itself raise becomes an error that names it."""
    try:
        yield
    except Exception as error:
        why = error if isinstance(error, ValueError) else f"damaged ({error!r})"
        raise ValueError(f"{path}: {why}") from error


def _check(path, what, found, wanted):
    """Refuses a graph whose inputs or outputs are not those that it describes."""
    found = {value.name: (value.type, value.shape) for value in found}
    same = found.keys() == wanted.keys()
    for name, (kind, shape) in wanted.items() if same else ():
        # No number is a size that the graph leaves open.
        sizes = itertools.zip_longest(found[name][1], shape)
        numbers = [n if isinstance(n, int) else m for n, m in sizes]
        same &= found[name][0] == kind and numbers == shape
    if not same:
        raise ValueError(
            f"the {what} of {path} are {found}, and it says {wanted}; export it again."
        )


class _Graph:
    """Of windows, one at a time, whose run can be stopped from another thread."""

    def __init__(self, session, metadata: dict, signature: types.Signature):
        import onnxruntime

        self.signature, self.metadata = signature, metadata
        self._session, self._input = session, metadata["input"]["name"]
        self._new_options = onnxruntime.RunOptions
        self._options = self._new_options()

    def _run(self, names, window, given: Mapping[str, np.ndarray]):
        """The named outputs for a window."""
        window = np.ascontiguousarray(window, np.float32)
        shape = (self.signature.time, len(self.signature.channels))
        if window.shape != shape:
            raise ValueError(
                f"window must be float[{shape[0]}, {shape[1]}], got shape "
                f"{window.shape}; cut the stream as the signature says."
            )
        self._options = options = self._new_options()
        feed = {self._input: window[None], **given}
        return [found[0] for found in self._session.run(names, feed, options)]

    def stop(self) -> None:
        """Ends the run that is under way, within a node's time; it raises."""
        self._options.terminate = True


class Model(_Graph):
    """An anonymizer of one window at a time. A class because it holds a session.

    ``load`` makes it. Attributes: ``signature``; ``epsilon`` that one released window
    spends, or None; ``card``, text for people; ``metadata``, all that the file tells.
    """

    def __init__(self, session, metadata: dict, signature: types.Signature):
        super().__init__(session, metadata, signature)
        self.epsilon: float | None = metadata["epsilon"]
        self.card: str = str(metadata.get("card", ""))
        self._draws, self._output = metadata["draws"], metadata["output"]

    def anonymize(self, window, given: Mapping[str, np.ndarray] | None = None):
        """Rewrites a window.

        Args:
          window: ``float[time, channels]`` in the signature's units.
          given: draws by name, to repeat an experiment: whoever knows them knows what
            was drawn. None draws anew from the operating system.

        Returns:
          ``float32[time, channels]``, in the same units.

        Raises:
          ValueError: for a window of another shape.
          Exception: ONNX Runtime's own, if the graph fails or was stopped.
        """
        if given is None:
            given = {each["name"]: draws.draw(each) for each in self._draws}
        return self._run([self._output], window, given)[0]


class Read(NamedTuple):
    """One of the attackers' outputs."""

    output: str
    attribute: str
    role: str  # "public" or "private"
    trained_on: str  # "raw" or "anonymized"
    classes: tuple[str, ...]


class Attackers(_Graph):
    """Classifiers that read a window, for demonstrations; ``load_attackers`` makes it.

    A class because it holds a session. Attributes: ``signature``, ``reads``.
    """

    def __init__(self, session, metadata, signature, reads: tuple[Read, ...]):
        super().__init__(session, metadata, signature)
        self.reads = reads

    def __call__(self, window) -> dict[str, np.ndarray]:
        """Probabilities by output, ``float32[classes]``, of ``float[time, channels]``.

        Raises:
          ValueError: for a window of another shape.
        """
        names = [read.output for read in self.reads]
        return dict(zip(names, self._run(names, window, {}), strict=True))


def _opened(path, digest, threads, kind):
    """Session, metadata, signature and what the graph takes windows as."""
    option = " --attackers" if kind == "attackers" else ""
    data = read_checked(path, digest, f"jaxanon export{option}")
    refuse_drawing(path, data)
    session = _session(path, data, threads)
    told = read_metadata(path, session.get_modelmeta().custom_metadata_map, kind)
    described: Any = told.get("input")
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise ValueError(f"{path} does not describe its input; export it again.")
    with _naming(path):
        signature = types.read(described)
    windows = "tensor(float)", [1, signature.time, len(signature.channels)]
    return session, told, signature, windows


def load(path: str | os.PathLike, digest: str | None = None, threads: int = 1) -> Model:
    """Loads an anonymizer that ``jaxanon export`` wrote.

    Args:
      path: of the ONNX file.
      digest: its SHA-256; None takes the file beside it, named ``.sha256``.
      threads: of ONNX Runtime, > 0.

    Returns:
      ``Model``.

    Raises:
      FileNotFoundError: without the file, or without a digest.
      ValueError: if the file is not whole, not an anonymizer's, of a newer format, or
        contradicts itself.

    Example:
      >>> load("nowhere.onnx")
      Traceback (most recent call last):
      ...
      FileNotFoundError: there is no model nowhere.onnx; write one with jaxanon export.
    """
    session, told, signature, windows = _opened(path, digest, threads, "anonymizer")
    epsilon = told.get("epsilon")
    number = isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool)
    if epsilon is not None and not (number and 0 < epsilon < float("inf")):
        raise ValueError(
            f"epsilon of {path} must be null or > 0, got {epsilon!r}; export it again."
        )
    described = told.get("draws")
    if not isinstance(described, list):
        raise ValueError(f"{path} does not say what it draws; export it again.")
    with _naming(path):
        described = [draws.checked(each) for each in described]
    told |= {"epsilon": epsilon, "draws": described}
    taken = {told["input"]["name"]: windows}
    for each in told["draws"]:
        taken[each["name"]] = draws.LAWS[each["law"]][2], each["shape"]
    _check(path, "inputs", session.get_inputs(), taken)
    _check(path, "outputs", session.get_outputs(), {str(told.get("output")): windows})
    return Model(session, told, signature)


def load_attackers(
    path: str | os.PathLike, digest: str | None = None, threads: int = 1
) -> Attackers:
    """Loads attackers that ``jaxanon export`` wrote, to show what they read.

    Args:
      path, digest, threads: as ``load`` takes them.

    Returns:
      ``Attackers``: of ``float[time, channels]`` probabilities by output.

    Raises:
      FileNotFoundError, ValueError: as ``load``.

    Example:
      >>> load_attackers("nowhere.onnx")
      Traceback (most recent call last):
      ...
      FileNotFoundError: there is no model nowhere.onnx; write one with jaxanon ...
    """
    session, told, signature, windows = _opened(path, digest, threads, "attackers")
    try:
        reads = tuple(
            Read(
                str(read["output"]),
                str(read["attribute"]),
                str(read["role"]),
                str(read["trained_on"]),
                tuple(map(str, read["classes"])),
            )
            for read in told["reads"]
        )
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} does not say what it reads ({error!r}); export it again."
        ) from error
    taken = {told["input"]["name"]: windows}
    _check(path, "inputs", session.get_inputs(), taken)
    given = {read.output: ("tensor(float)", [1, len(read.classes)]) for read in reads}
    _check(path, "outputs", session.get_outputs(), given)
    return Attackers(session, told, signature, reads)
