"""Writes the files of reports; each file is written atomically.

Functions create folders, replace older files of the same names, embed figures in pages
and return the path of the page.
"""

import dataclasses
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.report import energy, federated, figures, origin, sweep, text, verdicts
from jaxanon.report.page import render

PUBLIC_CLASSES, PRIVATE_CLASSES = 3, 2  # Classes of the example windows.


class Examples(NamedTuple):
    """Test windows before and after anonymization, in physical units."""

    names: tuple[str, ...]  # of the classes of each window
    raw: np.ndarray  # float[examples, time, channels]
    safe: np.ndarray  # float[examples, time, channels]


def choose_examples(data, safe) -> Examples:
    """Returns example windows of public classes and of both private classes.

    It takes the middle window of each pair of the three most frequent public classes
    and the two most frequent classes of the first private attribute.

    Args:
      data: ``Data``.
      safe: ``float[M, time, channels]``, anonymized test windows, standardised.
    """
    spec, _, test = data
    private = next((name for name in spec.private if name != "subject"), "subject")
    public = np.asarray(test.labels[spec.public])
    hidden = np.asarray(test.labels[private])
    middle, names = [], []
    for label in _frequent(public, PUBLIC_CLASSES):
        for other in _frequent(hidden, PRIVATE_CLASSES):
            rows = np.flatnonzero((public == label) & (hidden == other))
            if len(rows):
                middle.append(rows[len(rows) // 2])
                pair = spec.classes[spec.public][label], spec.classes[private][other]
                names.append(", ".join(pair))
    middle = np.array(middle)
    names = tuple(names)
    physical = safe[middle] * np.float32(spec.std) + np.float32(spec.mean)
    return Examples(names, np.asarray(test.windows)[middle], physical)


def _frequent(labels, count):
    """Returns the most frequent classes in ascending order."""
    classes, counts = np.unique(labels, return_counts=True)
    return np.sort(classes[np.argsort(-counts, kind="stable")[:count]])


def describe_data(data) -> dict:
    """Returns the spec and sizes of a data set for JSON."""
    spec, train, test = data
    known = set(np.asarray(train.labels["subject"]).tolist())
    tested = set(np.asarray(test.labels["subject"]).tolist())
    return {
        **json.loads(spec.to_json()),
        "train_windows": len(train.windows),
        "test_windows": len(test.windows),
        "train_subjects": len(known),
        "test_subjects": len(tested),
        "test_subjects_in_training": len(tested & known),
    }


def describe_method(run) -> dict | None:
    """Returns name, configuration and rounds of a run's method for JSON.

    The result is None without a method; ``"rounds"`` is None without a state.
    """
    method = getattr(run, "method", None)
    if method is None:
        return None
    config = method.config
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        config = dataclasses.asdict(config)
    done = getattr(getattr(run, "state", None), "round", None)
    return {
        "name": method.name,
        "config": json.loads(json.dumps(config, default=str)),
        "rounds": None if done is None else int(done),
    }


def write(
    folder, report: dict, examples, history: list[dict], footer=None
) -> pathlib.Path:
    """Writes ``report.json``, ``report.html`` and the figures as SVG.

    Args:
      folder: output folder.
      report: report of ``evaluate``, without NaN.
      examples: ``Examples`` to draw.
      history: metrics by round, dicts with ``"round"``. It may be empty.
      footer: ``Footer`` of the page; None is one without duration.
    """
    pictures = figures.draw(report, examples, history)
    page = render_anonymizer(report, pictures, footer)
    return _written(folder, "report", report, pictures, page)


def render_anonymizer(report: dict, pictures: dict, footer=None) -> str:
    """Renders the page of an anonymizer with the pictures of ``figures.draw``."""
    data = {k: v for k, v in report["dataset"].items() if k not in ("mean", "std")}
    chosen = {"method": report["method"], "dataset": data}
    chosen |= {"attackers": report["attackers"], "attacks": list(report["attacks"])}
    chosen |= {"share": report["share"], "seed": report["seed"]}
    values: dict[str, Any] = {"report": report, "pictures": pictures}
    values["configuration"] = chosen
    values["verdict"] = report.get("verdict") or verdicts.verdict(report)
    # Hidden classes, guarantees and interrupted training; cards show the rest.
    values["notes"] = text.hidden_classes(report) + [
        line for line in report["headline"] if line not in text.headline(report)
    ]
    return _rendered("anonymizer.html", footer=footer, **values)


def _rendered(template, *, footer=None, **values):
    return render(template, footer=footer or origin.footer(), **values)


def write_pareto_front(folder, title: str, summary: list[dict], report: dict):
    """Writes ``pareto_front.png`` and ``sweep.html``.

    Args:
      folder: folder of the sweep.
      title: title of the page.
      summary: summary of the sweep, one row per setting.
      report: any report of the sweep.

    Returns:
      The path of the page; None if no private attribute was attacked.
    """
    panels = sweep.panels(summary, report)
    if not panels:
        return None
    pictures = {"pareto_front": sweep.draw(panels, report)}
    values = {"title": title, "summary": summary, "panels": panels}
    page = _rendered("sweep.html", pictures=pictures, **values)
    path = _written(folder, "sweep", None, pictures, page)
    writing.write(path.with_name("pareto_front.png"), pictures["pareto_front"].png)
    return path


def write_scores(folder, title: str, summary: list[dict]) -> pathlib.Path:
    """Writes ``scores.svg`` and ``sweep.html`` of a learner's sweep.

    Args:
      folder: folder of the sweep.
      title: title of the page.
      summary: summary of the sweep, one row per setting, at least one with scores.
    """
    pictures = {"scores": sweep.draw_scores(summary)}
    values = {"title": title, "summary": summary, "panels": {}}
    page = _rendered("sweep.html", pictures=pictures, **values)
    return _written(folder, "sweep", None, pictures, page)


def write_budget(folder, title: str, about: str, rows: list[dict]) -> pathlib.Path:
    """Writes ``budget.json``, ``budget.svg`` and ``budget.html``.

    Args:
      folder: output folder.
      title: title of the page and the figure.
      about: sentences about the released windows and the attacker.
      rows: result of ``evaluation.budgets.curve``.
    """
    pictures = {"budget": figures.budget(title, rows)}
    values = {"title": title, "about": about, "rows": rows, "pictures": pictures}
    page = _rendered("budget.html", **values)
    return _written(folder, "budget", rows, pictures, page)


def write_learned(folder, report: dict, footer=None) -> pathlib.Path:
    """Writes ``report.json``, ``clients.svg`` and ``report.html`` of a learner."""
    values = {"report": report, "pictures": {"clients": federated.draw(report)}}
    lines = federated.sentences(report)
    page = _rendered("learner.html", lines=lines, footer=footer, **values)
    return _written(folder, "report", report, values["pictures"], page)


def write_neighborhood(folder, report: dict, footer=None) -> pathlib.Path:
    """Writes ``report.json``, ``report.html`` and the figures of PFDRL as SVG."""
    values = {"report": report, "pictures": energy.draw(report)}
    lines = energy.sentences(report)
    page = _rendered("energy.html", lines=lines, footer=footer, **values)
    return _written(folder, "report", report, values["pictures"], page)


def write_search(folder, summary: list[dict]):
    """Writes ``sweep.png`` of a PFDRL sweep; returns None if the grid has no axis."""
    picture = energy.draw_search(summary)
    if picture is None:
        return None
    path = pathlib.Path(folder) / "sweep.png"
    writing.write(path, picture.png)
    return path


def _written(folder, name, values, pictures, page: str) -> pathlib.Path:
    """Writes figures, ``values`` as JSON unless None, and the page."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for title, picture in pictures.items():
        writing.write(folder / f"{writing.file_name(title)}.svg", picture.svg)
    if values is not None:
        content = json.dumps(values, indent=1, allow_nan=False)
        writing.write(folder / f"{name}.json", content)
    path = folder / f"{name}.html"
    writing.write(path, page)
    return path
