"""Writes a report's files; each appears whole or not at all.

Folders are made, older files of the same names are replaced, pages carry their figures
with them. Each function returns the path of its page.
"""

import dataclasses
import json
import pathlib
from typing import NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.report import energy, federated, figures, sweep
from jaxanon.report.page import render


class Examples(NamedTuple):
    """One test window per public class, before and after, in physical units."""

    names: tuple[str, ...]  # of the classes, as many as there are windows
    raw: np.ndarray  # float[classes, time, channels]
    safe: np.ndarray  # float[classes, time, channels]


def choose_examples(data, safe) -> Examples:
    """The middle test window of every public class that occurs.

    Args:
      data: ``Data``.
      safe: ``float[M, time, channels]``, anonymized test windows, standardised.
    """
    spec, _, test = data
    labels = np.asarray(test.labels[spec.public])
    rows = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    middle = np.array([own[len(own) // 2] for own in rows])
    names = tuple(spec.classes[spec.public][label] for label in np.unique(labels))
    physical = safe[middle] * np.float32(spec.std) + np.float32(spec.mean)
    return Examples(names, np.asarray(test.windows)[middle], physical)


def describe_data(data) -> dict:
    """The data's spec and sizes, ready for JSON."""
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
    """Name, configuration and rounds of the run's method, ready for JSON.

    None without a method; ``"rounds"`` is None without a state.
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


def write(folder, report: dict, examples, history: list[dict]) -> pathlib.Path:
    """Writes ``report.json``, the figures as PNG and ``report.html``.

    Args:
      folder: where to.
      report: of ``evaluate``, without NaN.
      examples: ``Examples``, the windows to show.
      history: metrics by round, dicts with ``"round"``; may be empty.
    """
    pictures = figures.draw(report, examples, history)
    page = render_anonymizer(report, pictures)
    return _written(folder, "report", report, pictures, page)


def render_anonymizer(report: dict, pictures: dict) -> str:
    """The page of an anonymizer; ``pictures`` are those of ``figures.draw``."""
    data = {k: v for k, v in report["dataset"].items() if k not in ("mean", "std")}
    chosen = {"method": report["method"], "dataset": data}
    chosen |= {"attackers": report["attackers"], "attacks": list(report["attacks"])}
    chosen |= {"share": report["share"], "seed": report["seed"]}
    values = {"report": report, "pictures": pictures, "configuration": chosen}
    return render("anonymizer.html", **values)


def write_pareto_front(folder, title: str, summary: list[dict], report: dict):
    """Writes ``front.png`` and ``sweep.html``; None if no private attribute was tried.

    Args:
      folder: of the sweep.
      title: of the page.
      summary: of the sweep, one row per setting.
      report: any of its reports.
    """
    panels = sweep.panels(summary, report)
    if not panels:
        return None
    pictures = {"front": sweep.draw(panels, report)}
    values = {"title": title, "summary": summary, "panels": panels}
    page = render("sweep.html", pictures=pictures, **values)
    return _written(folder, "sweep", None, pictures, page)


def write_scores(folder, title: str, summary: list[dict]) -> pathlib.Path:
    """Writes ``scores.png`` and ``sweep.html`` of a learner's sweep.

    Args:
      folder: of the sweep.
      title: of the page.
      summary: of the sweep, one row per setting, at least one with scores.
    """
    pictures = {"scores": sweep.draw_scores(summary)}
    values = {"title": title, "summary": summary, "panels": {}}
    page = render("sweep.html", pictures=pictures, **values)
    return _written(folder, "sweep", None, pictures, page)


def write_budget(folder, title: str, about: str, rows: list[dict]) -> pathlib.Path:
    """Writes ``budget.json``, ``budget.png`` and ``budget.html``.

    Args:
      folder: where to.
      title: of the page and the figure.
      about: what was released, and who read it.
      rows: of ``budget_curve.curve``.
    """
    pictures = {"budget": figures.budget(title, rows)}
    values = {"title": title, "about": about, "rows": rows, "pictures": pictures}
    return _written(folder, "budget", rows, pictures, render("budget.html", **values))


def write_learned(folder, report: dict) -> pathlib.Path:
    """Writes ``report.json``, ``clients.png`` and ``report.html`` of a learner."""
    values = {"report": report, "pictures": {"clients": federated.draw(report)}}
    page = render("learner.html", lines=federated.sentences(report), **values)
    return _written(folder, "report", report, values["pictures"], page)


def write_neighborhood(folder, report: dict) -> pathlib.Path:
    """Writes ``report.json``, the figures as PNG and ``report.html`` of PFDRL."""
    values = {"report": report, "pictures": energy.draw(report)}
    page = render("energy.html", lines=energy.sentences(report), **values)
    return _written(folder, "report", report, values["pictures"], page)


def write_search(folder, summary: list[dict]):
    """Writes ``sweep.png`` of PFDRL's settings; None if the grid has no axis."""
    picture = energy.draw_search(summary)
    if picture is None:
        return None
    path = pathlib.Path(folder) / "sweep.png"
    writing.write(path, picture.png)
    return path


def _written(folder, name, values, pictures, page: str) -> pathlib.Path:
    """Writes the figures, ``values`` as JSON unless None, and the page; its path."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for title, picture in pictures.items():
        writing.write(folder / f"{writing.file_name(title)}.png", picture.png)
    if values is not None:
        text = json.dumps(values, indent=1, allow_nan=False)
        writing.write(folder / f"{name}.json", text)
    path = folder / f"{name}.html"
    writing.write(path, page)
    return path
