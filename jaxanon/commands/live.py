"""``jaxanon live``: the page that `jaxanon-edge live` serves, where JAX is, too."""

import importlib.util
import pathlib
from typing import Annotated

import tyro

from jaxanon.commands import arguments


def live(
    model: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="F")],
    /,
    *,
    input: pathlib.Path,
    attackers: arguments.File = None,
    port: int = 8700,
) -> None:
    """Draws what a sensor tells beside what leaves, live, and what attackers infer.

    The page is for this machine alone. A device has it without JAX: `jaxanon-edge
    live`, which has further options.

    Args:
      model: as `jaxanon export` wrote it
      input: samples to stream, as `jaxanon export --samples` wrote them, or - for a
        pipe of rows
      attackers: as `jaxanon export --attackers` wrote them
      port: to listen at, 0 for any that is free
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise ImportError(
            "jaxanon live needs onnxruntime; install it with pip install "
            "'jaxanon[edge]'."
        )
    from jaxanon.edge import command

    words = ["live", str(model), "--input", str(input), "--port", str(port)]
    if attackers is not None:
        words += ["--attackers", str(attackers)]
    status = command.main(words)
    if status:
        raise SystemExit(status)
