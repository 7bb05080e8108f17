"""Metadata of an exported model for devices, and its model card."""

import importlib.metadata
import json
import pathlib

from jaxanon import __version__
from jaxanon.core import escaping
from jaxanon.datasets.sources import naming
from jaxanon.exporting.agreement import names

FORMAT = 1
PRIVATEHUB = (
    "Windows leave unchanged unless their class is likely to be one of the classes to "
    "hide."
)


def facts(run, draws, *, weights: str, epsilon: float | None, text: str) -> dict:
    """Returns an exported model's metadata, ready for JSON.

    Args:
      run: exported run.
      draws: draws from ``explicit``.
      weights: ``float32``, ``float16`` or ``int8``.
      epsilon: ε of each released window. None without a guarantee.
      text: model card.

    Returns:
      A dict that ``jaxanon.edge.load`` reads.
    """
    spec = run.spec
    return {
        "format": FORMAT,
        "kind": "anonymizer",
        "version": __version__,
        "method": run.method.name,
        "weights": weights,
        "input": described(spec),
        "output": "safe",
        "draws": [
            {"name": name, **{k: v for k, v in draw._asdict().items() if v is not None}}
            for name, draw in zip(names(draws), draws, strict=True)
        ],
        "dataset": dataset(spec),
        "epsilon": epsilon,
        "card": text,
    }


def described(spec) -> dict:
    """Returns the signature of input and output windows."""
    return {
        "name": "windows",
        "batch": 1,
        "time": spec.time,
        "channels": list(spec.channels),
        "units": list(spec.units),
        "rate_hz": spec.rate_hz,
    }


def dataset(spec) -> dict:
    """Describes the training data."""
    classes = {
        name: list(spec.classes[name])
        for name in (spec.public, *spec.private)
        if name in spec.classes
    }
    return {
        "name": spec.name,
        "preset": spec.preset,
        "public": spec.public,
        "private": list(spec.private),
        "classes": classes,
    }


def card(run, *, weights: str, epsilon: float | None, measured, notes) -> str:
    """Returns the model card, in Markdown.

    Args:
      run: exported run.
      weights: ``float32``, ``float16`` or ``int8``.
      epsilon: ε of each window. None without a guarantee.
      measured: lines of ``measured_of_run``.
      notes: sentences on how the file was made and checked.
    """
    spec = run.spec
    public = escaping.markdown(spec.public)
    hidden = escaping.markdown(", ".join(spec.private))
    seconds = spec.time / spec.rate_hz
    channels = ", ".join(
        escaping.markdown(name) + (f" [{escaping.markdown(unit)}]" if unit else "")
        for name, unit in zip(spec.channels, spec.units, strict=True)
    )
    lines = [
        f"# {run.method.name} for {escaping.markdown(spec.name)} ({spec.preset})",
        "",
        f"Rewrites sensor windows to preserve {public} and hide {hidden}. "
        f"Made by jaxanon {__version__}; weights in {weights}.",
        "",
        "## Input and output",
        "",
        f"Windows of {spec.time} samples at {spec.rate_hz:g} Hz ({seconds:g} s) of "
        f"{len(spec.channels)} channels: {channels}. The output has the same shape and "
        "units. Random numbers are inputs, which the device draws.",
        "",
        "## Measured privacy and utility",
        "",
        *measured,
        "",
        "## Guarantee",
        "",
        _guarantee(epsilon, seconds),
        "",
        "## What is not protected",
        "",
        *(f"- {sentence}" for sentence in _unprotected(run, epsilon)),
        "",
        "## How this file was made",
        "",
        *(f"- {sentence}" for sentence in notes),
    ]
    return "\n".join(lines) + "\n"


def _guarantee(epsilon, seconds):
    if epsilon is None:
        return (
            "No formal guarantee: protection is measured only against the attackers "
            "that were tried."
        )
    return (
        f"ε = {epsilon:g} for each window of {seconds:g} s (pure), by discrete Laplace "
        "noise on a grid. The ε of a wearer's windows add up; the runtime stops the "
        "stream when its budget is spent."
    )


def _unprotected(run, epsilon):
    spec = run.spec
    known = sorted(set(spec.classes) - {spec.public, *spec.private})
    yield f"{escaping.markdown(spec.public)}, the public attribute."
    if known:
        shown = escaping.markdown(", ".join(known))
        yield f"{shown}: in the training data, but not among those to hide."
    yield "Any other information in the sensor data; it was not evaluated."
    yield "The times, the origin and the existence of messages."
    if epsilon is None:
        yield (
            "Evidence accumulated over many windows of one wearer: attackers see "
            "single windows."
        )
        yield "Attackers that are stronger than those that were tried."
    if run.method.name == "privatehub":
        yield PRIVATEHUB


def made_with() -> str:
    """Returns the versions of the packages that made the file, as a sentence."""
    packages = ("jax", "jax2onnx", "onnx", "onnxruntime")
    versions = []
    for name in packages:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"Made with {', '.join(versions)}."


def measured_of_run(run, weights: str) -> list[str]:
    """Returns ``measured_lines`` of the report in a run's folder, if there is one.

    Args:
      run: ``Run``.
      weights: ``float32``, ``float16`` or ``int8``.

    Raises:
      ValueError: if the report is damaged.
    """
    path = None if run.folder is None else pathlib.Path(run.folder, "report.json")
    if path is None or not path.is_file():
        return measured_lines(None, weights)
    with naming(f"{path} (rewrite it with jaxanon evaluate --overwrite)"):
        report = json.loads(path.read_text(encoding="utf-8"))
        # Old reports lack the number of rounds.
        seen, done = (report.get("method") or {}).get("rounds"), int(run.state.round)
        if seen not in (None, done):
            return [
                f"Not measured after {done} rounds: `jaxanon evaluate` evaluated the "
                f"run after {seen}. Run it again with `--overwrite`."
            ]
        return measured_lines(report if "intrusive" in report else None, weights)


def measured_lines(report: dict | None, weights: str) -> list[str]:
    """Returns the evaluation results for a card, line by line.

    Args:
      report: report of ``evaluate``. None if the run was not evaluated.
      weights: ``float32``, ``float16`` or ``int8``.

    Example:
      >>> measured_lines(None, "float32")[0][:12]
      'Not measured'
    """
    if report is None:
        return [
            "Not measured: run `jaxanon evaluate` before `jaxanon export` to include "
            "results here."
        ]

    def percent(scores):
        if scores.get("not_measured"):
            return "not measured"
        return f"{100 * scores['balanced_accuracy']:.1f} %"

    verdict = []
    if "verdict" in report:  # The sentences of the report and of the terminal.
        lines = [x for x in report["headline"] if not x.startswith("Next step")]
        verdict = [*(f"- {escaping.markdown(line)}" for line in lines), ""]
    before = "" if weights == "float32" else f", before weights were cut to {weights}"
    dataset, split = report["dataset"]["name"], report["dataset"]["split"]
    rows = [
        *verdict,
        "Balanced accuracies on test windows of "
        f"{escaping.markdown(dataset)} ({split} split){before}:",
        "",
        "| attribute | role | classifier | raw | anonymized | chance level |",
        "|---|---|---|---|---|---|",
    ]
    raw_trained = [(report["utility"]["attribute"], "public", report["utility"])]
    # An entry is None if raw-data classifiers cannot be scored, as on unseen subjects.
    intrusive = report["intrusive"].items()
    raw_trained += [(name, "private", x) for name, x in intrusive if x is not None]
    for name, role, scores in raw_trained:
        cells = (name, role, "trained on raw windows", percent(scores["raw"]))
        chance = f"{100 * scores['raw']['chance']:.1f} %"
        rows.append(_row(*cells, percent(scores["anonymized"]), chance))
    for name, entry in report["reidentification"].items():
        for attacker, scores in entry["attackers"].items():
            chance = f"{100 * scores['chance']:.1f} %"
            classifier = f"{attacker}, trained on anonymized windows"
            rows.append(_row(name, "private", classifier, "", percent(scores), chance))
    return rows


def _row(*cells):
    return f"| {' | '.join(map(escaping.markdown, cells))} |"
