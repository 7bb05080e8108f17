"""``export``: a trained anonymizer as a file that needs no JAX."""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core import checks, registry, release
from jaxanon.datasets.choices import choose
from jaxanon.exporting import agreement, card, files, onnx_graph, quantization
from jaxanon.kernels.portable import explicit

WEIGHTS = ("float32", "float16", "int8")

CHECKED = 1000  # Windows that a graph is compared on, at most.

CLOSE = 1e-3  # Standard deviations that a window may be off.

SHARE = 0.99  # Of windows that must be as close: a class on the edge may tip over.

CALIBRATED = 256  # Windows that int8 takes the ranges of activations from.


class Exported(NamedTuple):
    """What ``export`` wrote, and how well it does what the method does."""

    path: pathlib.Path
    digest: str  # SHA-256 of the file, in hexadecimal
    size: int  # bytes
    windows: int  # compared
    share: float  # of them that are within ``CLOSE`` deviations of JAX's
    median: float  # deviations, over windows, of the furthest sample of each
    rounding: float  # likewise, from what float32 weights make; 0 for those


def export(
    run,
    path: str | os.PathLike,
    *,
    format: str = "onnx",
    weights: str = "float32",
    windows=None,
    calibration=None,
    overwrite: bool = False,
) -> Exported:
    """Writes a trained anonymizer as one file, its digest and its card.

    Normalisation, the classifier of the public attribute and the method's own weights
    are in the graph, which takes one window at a time; what is drawn is an input, for
    the device to draw from its operating system. Before anything is written the graph
    is compared with JAX on ``windows``.

    Args:
      run: of ``train`` or ``open_run``, of a method that rewrites windows.
      path: of the file, which ends in ``.onnx`` if its format is onnx, and else does
        not; its digest goes to ``<path>.sha256`` and its card, in Markdown, to
        ``<path>.md``. What a device is told (signature, draws, card) is in the file;
        beside a StableHLO file, in ``<path>.json``.
      format: ``onnx``, for ``jaxanon.edge`` and any ONNX Runtime of 1.20 or newer; or
        ``stablehlo``, for ``jax.export.deserialize``.
      weights: ``float32``; ``float16``, half the size, computed in float32; ``int8``, a
        quarter, of ONNX alone.
      windows: ``float[N, time, channels]`` in physical units to compare on, 1,000 at
        most; None: noise of the data's mean and deviation.
      calibration: likewise, to take the ranges of int8's activations from, 256 at most.
      overwrite: replace what is there.

    Returns:
      ``Exported``.

    Raises:
      TypeError: for a run of a learner.
      ValueError: for an unknown format or weights, a path of the other format, int8
        without ``calibration`` or of StableHLO, weights that are rounded where an ε is
        claimed, windows that do not fit, a method that draws in a loop, noise whose ε a
        float's bits would give away, and if the graph does not do what JAX does.
      FileExistsError: if there is a file, and ``overwrite`` is False.
      ImportError: without the extra ``export``.

    Example:
      >>> import tempfile, jaxanon as ja
      >>> data = ja.load("smartwatch")
      >>> method = ja.methods.orf(data.spec)
      >>> run = ja.train(method, data, epochs=1, seed=0, progress=False)
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     told = export(run, f"{folder}/watch.onnx", windows=data.test.windows[:3])
      >>> told.windows, told.share
      (3, 1.0)
    """
    path = pathlib.Path(path)
    _check(run, path, format, weights, calibration)
    endings = (".md", ".json") if format == "stablehlo" else (".md",)
    files.refuse_unwritable(path, *endings, overwrite=overwrite)
    run, epsilon = _releasable(run, weights)
    spec = run.spec
    if windows is None:
        noise = np.random.default_rng(0).normal(size=(8, spec.time, len(spec.channels)))
        windows = spec.mean + np.asarray(spec.std) * noise
    shown = checks.windows(_few(windows, CHECKED), spec.time, spec.channels)
    rewritten, draws = explicit(_program(run, weights), shown[:1])
    inputs = agreement.examples(shown, draws)
    if format == "stablehlo":
        model = None
        raw, made = _stablehlo(rewritten, inputs)
    else:
        few = () if weights != "int8" else _few(calibration, CALIBRATED)
        model = _onnx(run, rewritten, inputs, draws, few)
        raw = model.SerializeToString()
        made = agreement.run_graph(raw, inputs)
    away = agreement.away(rewritten, made, inputs, spec.std)
    _refuse_others(away, made, weights)
    rounding = {
        "float32": lambda: 0.0,
        "float16": lambda: _rounding(run, shown, made, inputs),
        "int8": lambda: float(np.median(away)),  # ``rewritten`` is in float32.
    }[weights]()
    share, median = float(np.mean(away <= CLOSE)), float(np.median(away))
    told = [card.made_with()]
    if weights != "int8":  # Which has nothing to be near to.
        told.append(
            f"Compared with JAX on {len(away)} windows: {100 * share:.1f} % of them "
            f"within {CLOSE:g} standard deviations in every sample, the furthest "
            f"sample off by {median:.1e} in the median."
        )
    if weights != "float32":
        told.append(f"{moved(rounding)}, of {len(away)} windows.")
    kind = {"weights": weights, "epsilon": epsilon}
    text = card.card(
        run, measured=card.measured_of_run(run, weights), told=told, **kind
    )
    facts = json.dumps(card.facts(run, draws, text=text, **kind))
    if model is not None:
        onnx_graph.tell(model, facts)
        raw = model.SerializeToString()
    digest = files.write(path, raw, md=text, json=facts if model is None else None)
    return Exported(path, digest, len(raw), len(away), share, median, rounding)


def moved(rounding: float) -> str:
    """What rounding the weights comes to, as a sentence without its end.

    Args:
      rounding: of ``Exported``.

    Example:
      >>> moved(0.04)
      'Rounding the weights moves the furthest sample of a window by 0.04 standard \
deviations in the median'
    """
    return (
        "Rounding the weights moves the furthest sample of a window by "
        f"{rounding:.1g} standard deviations in the median"
    )


def _stablehlo(rewritten, inputs):
    """The graph as bytes, and what it makes of every input."""
    traced = jax.export.export(jax.jit(rewritten), platforms=("cpu", "cuda", "tpu"))
    with _nameless():
        graph = traced(*inputs[0].values())
    call = jax.jit(graph.call)
    made = np.concatenate([np.asarray(call(*one.values())) for one in inputs])
    return bytes(graph.serialize()), made


@contextlib.contextmanager
def _nameless():
    """Graphs do not tell which files, in whose home, they were traced from.

    Other threads that trace meanwhile make such graphs, too.
    """
    name = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _onnx(run, rewritten, inputs, draws, calibration):
    """The graph as a model, in 8 bits where there are windows to calibrate it with."""
    shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in inputs[0].items()}
    model = onnx_graph.to_onnx(rewritten, shapes, ["safe"], run.method.name)
    if not len(calibration):
        return model
    few = checks.windows(calibration, run.spec.time, run.spec.channels)
    return quantization.in_int8(model, agreement.examples(few, draws, seed=1))


def _refuse_others(away, made, weights):
    """ValueError of a graph that does not do what JAX does."""
    share = float(np.mean(away <= CLOSE))
    if weights != "int8" and not share >= SHARE:
        raise ValueError(
            f"the exported graph is within {CLOSE:g} deviations of JAX for "
            f"{100 * share:.1f} % of {len(away)} windows, and should be for "
            f"{100 * SHARE:g} %; nothing is written. Export with the other format."
        )
    if not np.isfinite(made).all():
        raise ValueError(
            f"the exported graph makes NaN or infinity of some of {len(away)} windows; "
            "nothing is written. Export with weights='float32'."
        )


def _rounding(run, shown, made, inputs) -> float:
    """How far from what float32 weights make, in the median over windows."""
    exact, _ = explicit(_program(run, "float32"), shown[:1])
    return float(np.median(agreement.away(exact, made, inputs, run.spec.std)))


def _check(run, path, format, weights, calibration):
    if run.method.anonymize is None:
        raise TypeError(
            f"{run.method.name} predicts {run.spec.public} and rewrites no windows; "
            "export a method of jaxanon.methods."
        )
    choose("weights", weights, WEIGHTS)
    if weights == "int8" and format != "onnx":
        raise ValueError("weights='int8' is ONNX Runtime's; use format='onnx'.")
    if weights == "int8" and (calibration is None or not len(calibration)):
        raise ValueError(
            "weights='int8' needs calibration windows, such as those of training."
        )
    files.check_ending(path, format)


def _releasable(run, weights):
    """The run as a device may release by it, and the ε of each window."""
    epsilon = release.epsilon_of(run)
    if epsilon is None:
        return run, None
    if weights != "float32":
        # Weights that are rounded may take two windows' features further apart.
        raise ValueError(
            f"weights={weights!r} rounds what the noise is measured by, so that "
            f"epsilon {epsilon:g} would not hold; export with float32."
        )
    config = run.method.config
    if config.mechanism not in ("laplace", "grid"):
        raise ValueError(
            f"mechanism {config.mechanism!r} claims an epsilon that a float's bits "
            "give away; train deeprotect with --mechanism grid to export it."
        )
    if config.mode == "named" or config.sensitivity == "published":
        raise ValueError(
            f"mode {config.mode!r} of sensitivity {config.sensitivity!r} has no noise "
            "that is private in floating point; train deeprotect with --mode "
            "everything --sensitivity corrected --mechanism grid to export it."
        )
    config = dataclasses.replace(config, mechanism="grid")
    method = registry.rebuild(run.method.name, run.spec, config, run.method.recipe)
    return dataclasses.replace(run, method=method), float(epsilon)


def _program(run, weights) -> Callable:
    """``(key, windows) -> windows``; weights are kept in half precision if asked."""
    state: Any = run.state
    if weights == "float16":
        state = jax.tree.map(_halved, state)

    def program(key, windows):
        whole = jax.tree.map(_whole, state)
        return run.method.anonymize(key, whole, windows)

    return program


def _halved(leaf):
    """Weights in half precision, if that holds them; scalars and the rest stay."""
    if leaf.dtype != jnp.float32 or leaf.ndim < 2:
        return leaf
    if not jnp.max(jnp.abs(leaf), initial=0) < jnp.finfo(jnp.float16).max:
        return leaf
    return leaf.astype(jnp.float16)


def _whole(leaf):
    return leaf.astype(jnp.float32) if leaf.dtype == jnp.float16 else leaf


def _few(windows, most):
    """So many of the windows, evenly spread."""
    windows = np.asarray(windows)
    if len(windows) <= most:
        return windows
    return windows[np.linspace(0, len(windows) - 1, most).astype(int)]
