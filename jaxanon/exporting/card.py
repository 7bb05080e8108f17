"""What is said of an exported model: facts for the device, and a card for people."""

import importlib.metadata
import json
import pathlib

from jaxanon import __version__
from jaxanon.datasets.sources import naming
from jaxanon.exporting.agreement import names

FORMAT = 1
PRIVATEHUB = (
    "Windows whose class is not suspected to be one that shall be hidden leave as they "
    "were."
)


def facts(run, draws, *, weights: str, epsilon: float | None, text: str) -> dict:
    """What a device needs to know of a model, ready for JSON.

    Args:
      run: that was exported.
      draws: of ``explicit``.
      weights: ``float32``, ``float16`` or ``int8``.
      epsilon: of each window that is released; None without a guarantee.
      text: the card.

    Returns:
      A dict; ``jaxanon.edge.load`` reads it.
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
    """The signature of the windows that go in and come out."""
    return {
        "name": "windows",
        "batch": 1,
        "time": spec.time,
        "channels": list(spec.channels),
        "units": list(spec.units),
        "rate_hz": spec.rate_hz,
    }


def dataset(spec) -> dict:
    """What the model was trained on."""
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


def card(run, *, weights: str, epsilon: float | None, measured, told) -> str:
    """The model's card, in Markdown.

    Args:
      run: that was exported.
      weights: as of ``facts``.
      epsilon: of each window; None without a guarantee.
      measured: lines of ``measured_of_run``.
      told: sentences on how the file was made and checked.
    """
    spec = run.spec
    hidden = ", ".join(spec.private)
    seconds = spec.time / spec.rate_hz
    channels = ", ".join(
        f"{name} [{unit}]" if unit else name
        for name, unit in zip(spec.channels, spec.units, strict=True)
    )
    lines = [
        f"# {run.method.name} for {spec.name} ({spec.preset})",
        "",
        f"Rewrites sensor windows so that {spec.public} can still be read of them and "
        f"{hidden} cannot. Made by jaxanon {__version__}; weights in {weights}.",
        "",
        "## Input and output",
        "",
        f"Windows of {spec.time} samples at {spec.rate_hz:g} Hz ({seconds:g} s) of "
        f"{len(spec.channels)} channels: {channels}. What comes out has the same shape "
        "and units. What is drawn is an input, for the device to draw.",
        "",
        "## What is hidden, from whom, measured on what",
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
        *(f"- {sentence}" for sentence in told),
    ]
    return "\n".join(lines) + "\n"


def _guarantee(epsilon, seconds):
    if epsilon is None:
        return (
            "None that holds against everybody: what is hidden is hidden from the "
            "attackers that were tried."
        )
    return (
        f"ε = {epsilon:g} for each window of {seconds:g} s, pure, by discrete Laplace "
        "noise on a grid; windows of one wearer add up, and the runtime's budget stops "
        "the stream where it is spent."
    )


def _unprotected(run, epsilon):
    spec = run.spec
    known = sorted(set(spec.classes) - {spec.public, *spec.private})
    yield f"{spec.public}, which is meant to be read."
    if known:
        yield f"{', '.join(known)}: in the training data, and not asked to be hidden."
    yield "Anything else that the sensors tell; nobody has looked."
    yield "When windows are sent, from where, and that they are."
    if epsilon is None:
        yield (
            "Evidence that adds up over many windows of one wearer: attackers are "
            "tried on single windows."
        )
        yield "Against attackers who are better than those that were tried."
    if run.method.name == "privatehub":
        yield PRIVATEHUB


def made_with() -> str:
    """Versions of what made the file, in a sentence."""
    used = ("jax", "jax2onnx", "onnx", "onnxruntime")
    found = []
    for name in used:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"Made with {', '.join(found)}."


def measured_of_run(run, weights: str) -> list[str]:
    """``measured_lines`` of the report in a run's folder, if there is one.

    Args:
      run: ``Run``.
      weights: as of ``measured_lines``.

    Raises:
      ValueError: if the report is damaged.
    """
    path = None if run.folder is None else pathlib.Path(run.folder, "report.json")
    if path is None or not path.is_file():
        return measured_lines(None, weights)
    with naming(f"{path} (jaxanon evaluate --overwrite writes it anew)"):
        report = json.loads(path.read_text(encoding="utf-8"))
        # Reports of before do not say after how many rounds.
        seen, done = (report.get("method") or {}).get("rounds"), int(run.state.round)
        if seen not in (None, done):
            return [
                f"Not measured after {done} rounds: `jaxanon evaluate` attacked the "
                f"run after {seen}. Evaluated anew (`--overwrite`), it is told here."
            ]
        return measured_lines(report if "intrusive" in report else None, weights)


def measured_lines(report: dict | None, weights: str) -> list[str]:
    """What a card says was measured, line by line.

    Args:
      report: of ``evaluate``; None if the run was not evaluated.
      weights: ``float32``, ``float16`` or ``int8``.

    Example:
      >>> measured_lines(None, "float32")[0][:12]
      'Not measured'
    """
    if report is None:
        return [
            "Not measured: `jaxanon evaluate` before `jaxanon export` attacks the run, "
            "and what it finds is told here."
        ]

    def percent(scores):
        if scores.get("not_measured"):
            return "not measured"
        return f"{100 * scores['balanced_accuracy']:.1f} %"

    verdict = []
    if "verdict" in report:  # The sentences of the report and of the terminal.
        lines = [x for x in report["headline"] if not x.startswith("Next step")]
        verdict = [*(f"- {line}" for line in lines), ""]
    before = "" if weights == "float32" else f", before weights were cut to {weights}"
    rows = [
        *verdict,
        "Balanced accuracies on test windows of "
        f"{report['dataset']['name']} ({report['dataset']['split']} split){before}:",
        "",
        "| attribute | role | classifier | raw | anonymized | chance level |",
        "|---|---|---|---|---|---|",
    ]
    judged = [(report["utility"]["attribute"], "kept", report["utility"])]
    # None of what no classifier of raw windows can be asked, such as unseen subjects.
    intrusive = report["intrusive"].items()
    judged += [(name, "hidden", own) for name, own in intrusive if own is not None]
    for name, role, own in judged:
        cells = (name, role, "trained on raw windows", percent(own["raw"]))
        chance = f"{100 * own['raw']['chance']:.1f} %"
        rows.append(_row(*cells, percent(own["anonymized"]), chance))
    for name, found in report["reidentification"].items():
        for attacker, scores in found["attackers"].items():
            chance = f"{100 * scores['chance']:.1f} %"
            who = f"{attacker}, trained on anonymized windows"
            rows.append(_row(name, "hidden", who, "", percent(scores), chance))
    return rows


def _row(*cells):
    return f"| {' | '.join(cells)} |"
