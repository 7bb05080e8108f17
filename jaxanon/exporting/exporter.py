"""Export of a trained anonymizer as a file that runs without JAX."""

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

CHECKED = 1000  # Maximum windows on which a graph is compared with JAX.

CLOSE = 1e-3  # Tolerance, in standard deviations.

SHARE = 0.99  # Fraction of windows within it; a class at a threshold may flip.

CALIBRATED = 256  # Maximum windows for int8's activation ranges.


class Exported(NamedTuple):
    """Result of ``export``: the file and its agreement with JAX."""

    path: pathlib.Path
    digest: str  # SHA-256 of the file, in hexadecimal
    size: int  # bytes
    windows: int  # number of compared windows
    share: float  # fraction of windows within ``CLOSE`` standard deviations of JAX
    median: float  # median over windows of the maximum deviation
    rounding: float  # the same, compared with float32 weights; 0 for float32


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
    """Writes a trained anonymizer as one file, with its digest and model card.

    The graph includes normalization, the classifier of the public attribute and the
    method's weights. It takes one window at a time. Random numbers are inputs, which
    the device draws from its operating system. The graph is compared with JAX on
    ``windows`` before anything is written.

    Args:
      run: result of ``train`` or ``open_run`` with a method that rewrites windows.
      path: path of the file, which ends in ``.onnx`` if and only if the format is onnx.
        The digest goes to ``<path>.sha256`` and the model card to ``<path>.md``.
        Metadata (signature, draws, card) is in an ONNX file, or in ``<path>.json``.
      format: ``onnx``, for ``jaxanon.edge`` and ONNX Runtime 1.20 or newer, or
        ``stablehlo``, for ``jax.export.deserialize``.
      weights: ``float32``; ``float16`` halves the size and computes in float32;
        ``int8`` quarters the size and requires ONNX.
      windows: ``float[N, time, channels]`` in physical units for the comparison. At
        most 1,000 are used. None uses noise with the data's mean and deviation.
      calibration: windows for int8's activation ranges. At most 256 are used.
      overwrite: whether to replace existing files.

    Returns:
      ``Exported``.

    Raises:
      TypeError: if the run is of a learner.
      ValueError: if an argument is invalid, ``calibration`` is missing for int8, or the
        graph disagrees with JAX. Also if the method draws in a loop, or claims an ε
        that rounding or floating-point noise would break.
      FileExistsError: if a file exists and ``overwrite`` is False.
      ImportError: if the extra ``export`` is not installed.

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
    shown = checks.windows(spaced(windows, CHECKED), spec.time, spec.channels)
    rewritten, draws = explicit(_program(run, weights), shown[:1])
    inputs = agreement.examples(shown, draws)
    if format == "stablehlo":
        model = None
        raw, outputs = _stablehlo(rewritten, inputs)
    else:
        few = () if weights != "int8" else spaced(calibration, CALIBRATED)
        model = _onnx(run, rewritten, inputs, draws, few)
        raw = model.SerializeToString()
        outputs = agreement.run_graph(raw, inputs)
    deviations = agreement.max_deviations(rewritten, outputs, inputs, spec.std)
    _check_agreement(deviations, outputs, weights)
    rounding = {
        "float32": lambda: 0.0,
        "float16": lambda: _rounding(run, shown, outputs, inputs),
        "int8": lambda: float(np.median(deviations)),  # ``rewritten`` is in float32.
    }[weights]()
    share, median = float(np.mean(deviations <= CLOSE)), float(np.median(deviations))
    notes = [card.made_with()]
    if weights != "int8":  # An int8 graph has no equivalent in JAX.
        notes.append(
            f"Compared with JAX on {len(deviations)} windows: {100 * share:.1f} % "
            f"differ by at most {CLOSE:g} standard deviations in every sample; the "
            f"median over windows of the maximum deviation is {median:.1e}."
        )
    if weights != "float32":
        notes.append(f"{moved(rounding)}, over {len(deviations)} windows.")
    kind = {"weights": weights, "epsilon": epsilon}
    text = card.card(
        run, measured=card.measured_of_run(run, weights), notes=notes, **kind
    )
    facts = json.dumps(card.facts(run, draws, text=text, **kind))
    if model is not None:
        onnx_graph.add_metadata(model, facts)
        raw = model.SerializeToString()
    digest = files.write(path, raw, md=text, json=facts if model is None else None)
    return Exported(path, digest, len(raw), len(deviations), share, median, rounding)


def moved(rounding: float) -> str:
    """Describes the effect of rounding weights, as a sentence without a period.

    Args:
      rounding: ``Exported.rounding``.

    Example:
      >>> moved(0.04)
      'Rounding the weights changes the windows by at most 0.04 standard deviations \
(median over windows)'
    """
    return (
        f"Rounding the weights changes the windows by at most {rounding:.1g} standard "
        "deviations (median over windows)"
    )


def _stablehlo(rewritten, inputs):
    """Returns the graph as bytes and its outputs for all inputs."""
    traced = jax.export.export(jax.jit(rewritten), platforms=("cpu", "cuda", "tpu"))
    with _without_locations():
        graph = traced(*inputs[0].values())
    call = jax.jit(graph.call)
    outputs = np.concatenate([np.asarray(call(*one.values())) for one in inputs])
    return bytes(graph.serialize()), outputs


@contextlib.contextmanager
def _without_locations():
    """Keeps source file paths out of graphs that are traced in this context.

    It also affects traces in other threads meanwhile.
    """
    name = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _onnx(run, rewritten, inputs, draws, calibration):
    """Returns the graph as a model, in int8 if there are calibration windows."""
    shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in inputs[0].items()}
    model = onnx_graph.to_onnx(rewritten, shapes, ["safe"], run.method.name)
    if not len(calibration):
        return model
    few = checks.windows(calibration, run.spec.time, run.spec.channels)
    return quantization.in_int8(model, agreement.examples(few, draws, seed=1))


def _check_agreement(deviations, outputs, weights):
    """Raises ValueError if the graph's outputs differ from JAX's."""
    share = float(np.mean(deviations <= CLOSE))
    if weights != "int8" and not share >= SHARE:
        raise ValueError(
            f"the exported graph must agree with JAX within {CLOSE:g} standard "
            f"deviations on {100 * SHARE:g} % of {len(deviations)} windows, but does "
            f"on {100 * share:.1f} %. Nothing was written; use the other format."
        )
    if not np.isfinite(outputs).all():
        raise ValueError(
            f"the exported graph returns NaN or infinity for some of "
            f"{len(deviations)} windows. Nothing was written; use weights='float32'."
        )


def _rounding(run, shown, outputs, inputs) -> float:
    """Returns the median over windows of the deviation from float32 weights."""
    exact, _ = explicit(_program(run, "float32"), shown[:1])
    std = run.spec.std
    return float(np.median(agreement.max_deviations(exact, outputs, inputs, std)))


def _check(run, path, format, weights, calibration):
    if run.method.anonymize is None:
        raise TypeError(
            f"{run.method.name} predicts {run.spec.public} but rewrites no windows; "
            "export an anonymizer, such as blinder."
        )
    choose("weights", weights, WEIGHTS)
    if weights == "int8" and format != "onnx":
        raise ValueError("weights='int8' requires ONNX; use format='onnx'.")
    if weights == "int8" and (calibration is None or not len(calibration)):
        raise ValueError(
            "weights='int8' requires calibration windows; pass training windows."
        )
    files.check_ending(path, format)


def _releasable(run, weights):
    """Returns a run that may release windows on a device, and each window's ε."""
    epsilon = release.epsilon_of(run)
    if epsilon is None:
        return run, None
    if weights != "float32":
        # Rounded weights can increase the distance between two windows' features.
        raise ValueError(
            f"weights={weights!r} changes the sensitivity on which the noise is based, "
            f"so epsilon {epsilon:g} would not hold; export with float32."
        )
    config = run.method.config
    if config.mechanism not in ("laplace", "grid"):
        raise ValueError(
            f"mechanism {config.mechanism!r} claims an epsilon that its floating-point "
            "noise breaks; train deeprotect with --mechanism grid to export it."
        )
    if config.mode == "named" or config.sensitivity == "published":
        raise ValueError(
            f"mode {config.mode!r} with sensitivity {config.sensitivity!r} has no "
            "noise that is private in floating point; train deeprotect with --mode "
            "everything --sensitivity corrected --mechanism grid to export it."
        )
    config = dataclasses.replace(config, mechanism="grid")
    method = registry.rebuild(run.method.name, run.spec, config, run.method.recipe)
    return dataclasses.replace(run, method=method), float(epsilon)


def _program(run, weights) -> Callable:
    """Returns ``(key, windows) -> windows``, with weights in half precision if set."""
    state: Any = run.state
    if weights == "float16":
        state = jax.tree.map(_halved, state)

    def program(key, windows):
        whole = jax.tree.map(_whole, state)
        return run.method.anonymize(key, whole, windows)

    return program


def _halved(leaf):
    """Converts matrices to half precision if it can represent them."""
    if leaf.dtype != jnp.float32 or leaf.ndim < 2:
        return leaf
    if not jnp.max(jnp.abs(leaf), initial=0) < jnp.finfo(jnp.float16).max:
        return leaf
    return leaf.astype(jnp.float16)


def _whole(leaf):
    return leaf.astype(jnp.float32) if leaf.dtype == jnp.float16 else leaf


def spaced(windows, most):
    """Returns at most ``most`` evenly spaced windows."""
    windows = np.asarray(windows)
    if len(windows) <= most:
        return windows
    return windows[np.linspace(0, len(windows) - 1, most).astype(int)]
