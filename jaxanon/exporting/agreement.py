"""Comparison of an exported graph with the method on windows."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from jaxanon.exporting.onnx_graph import missing
from jaxanon.kernels.portable import Draw


def sample(rng: np.random.Generator, draw: Draw) -> np.ndarray:
    """Samples ``draw`` for a comparison; a device uses its own generator.

    Example:
      >>> sample(np.random.default_rng(0), Draw("integers", (3,), 0, 2)).dtype
      dtype('int32')
    """
    if draw.law == "integers":
        return rng.integers(draw.low, draw.high, draw.shape).astype(np.int32)
    if draw.law == "discrete laplace":
        return np.rint(draw.scale * rng.laplace(size=draw.shape)).astype(np.int32)
    by_law = {"normal": rng.normal, "uniform": rng.random, "gumbel": rng.gumbel}
    return np.asarray(by_law[draw.law](size=draw.shape), np.float32)


def names(draws: Sequence[Draw]) -> list[str]:
    """Returns the names of the graph's inputs for draws.

    Example:
      >>> names([Draw("normal", (1, 2)), Draw("uniform", (1,))])
      ['draw 0', 'draw 1']
    """
    return [f"draw {number}" for number in range(len(draws))]


def examples(windows, draws: Sequence[Draw], seed: int = 0) -> list[dict]:
    """Returns the graph's inputs, including draws, for each window.

    Args:
      windows: ``float32[N, time, channels]``, in physical units.
      draws: draws from ``explicit``.
      seed: random seed of the draws.

    Returns:
      N dicts of arrays, by name.
    """
    rng = np.random.default_rng(seed)
    return [
        {"windows": np.float32(window[None])}
        | {
            name: sample(rng, draw)
            for name, draw in zip(names(draws), draws, strict=True)
        }
        for window in windows
    ]


def session(graph: bytes):
    """Loads a graph in ONNX Runtime on the CPU; logs only errors.

    Raises:
      ImportError: if the extra ``export`` is not installed.
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
    """Runs ONNX Runtime on inputs one by one; returns ``float32[N, ...]``, output 0.

    Raises:
      ImportError: if the extra ``export`` is not installed.
    """
    opened = session(graph)
    return np.concatenate([np.asarray(opened.run(None, one)[0]) for one in inputs])


def max_deviations(
    rewritten: Callable, outputs, inputs: Sequence[dict], std
) -> np.ndarray:
    """Returns the maximum deviation of each window from JAX, in standard deviations.

    Args:
      rewritten: function from ``explicit``.
      outputs: ``float32[N, time, channels]``, result of ``run_graph`` for ``inputs``.
      inputs: inputs from ``examples``.
      std: standard deviation of each channel, in physical units.

    Returns:
      ``float32[N]``, infinite for NaN.
    """
    program = jax.jit(rewritten)
    wanted = np.concatenate([np.asarray(program(*one.values())) for one in inputs])
    deviations = np.max(np.abs(outputs - wanted) / np.float32(std), axis=(1, 2))
    return np.where(np.isfinite(deviations), deviations, np.inf)
