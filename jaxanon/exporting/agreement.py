"""Whether an exported graph does what the method does, on windows."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from jaxanon.exporting.onnx_graph import missing
from jaxanon.kernels.portable import Draw


def some(rng: np.random.Generator, draw: Draw) -> np.ndarray:
    """One drawing of ``draw``, for a comparison; a device draws by its own means.

    Example:
      >>> some(np.random.default_rng(0), Draw("integers", (3,), 0, 2)).dtype
      dtype('int32')
    """
    if draw.law == "integers":
        return rng.integers(draw.low, draw.high, draw.shape).astype(np.int32)
    if draw.law == "discrete laplace":
        return np.rint(draw.scale * rng.laplace(size=draw.shape)).astype(np.int32)
    by_law = {"normal": rng.normal, "uniform": rng.random, "gumbel": rng.gumbel}
    return np.asarray(by_law[draw.law](size=draw.shape), np.float32)


def names(draws: Sequence[Draw]) -> list[str]:
    """What the graph's inputs for draws are called.

    Example:
      >>> names([Draw("normal", (1, 2)), Draw("uniform", (1,))])
      ['draw 0', 'draw 1']
    """
    return [f"draw {number}" for number in range(len(draws))]


def examples(windows, draws: Sequence[Draw], seed: int = 0) -> list[dict]:
    """Inputs of the graph for windows one by one, draws and all.

    Args:
      windows: ``float32[N, time, channels]``, in physical units.
      draws: of ``explicit``.
      seed: of what is drawn.

    Returns:
      N dicts of arrays, by name.
    """
    rng = np.random.default_rng(seed)
    return [
        {"windows": np.float32(window[None])}
        | {
            name: some(rng, draw)
            for name, draw in zip(names(draws), draws, strict=True)
        }
        for window in windows
    ]


def session(graph: bytes):
    """ONNX Runtime with a graph, on the processor, silent but for errors.

    Raises:
      ImportError: without the extra ``export``.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise missing("running an ONNX file") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        graph, options, providers=["CPUExecutionProvider"]
    )


def run_graph(graph: bytes, inputs: Sequence[dict]) -> np.ndarray:
    """What ONNX Runtime makes of inputs one by one; ``float32[N, ...]``, first output.

    Raises:
      ImportError: without the extra ``export``.
    """
    opened = session(graph)
    return np.concatenate([np.asarray(opened.run(None, one)[0]) for one in inputs])


def away(rewritten: Callable, made, inputs: Sequence[dict], std) -> np.ndarray:
    """How far a graph's windows are from JAX's, in standard deviations.

    Args:
      rewritten: of ``explicit``.
      made: ``float32[N, time, channels]``, of ``run_graph`` for the same inputs.
      inputs: of ``examples``.
      std: of each channel, in physical units.

    Returns:
      ``float32[N]``, of each window the sample that is furthest; infinite for NaN.
    """
    program = jax.jit(rewritten)
    told = np.concatenate([np.asarray(program(*one.values())) for one in inputs])
    found = np.max(np.abs(made - told) / np.float32(std), axis=(1, 2))
    return np.where(np.isfinite(found), found, np.inf)
