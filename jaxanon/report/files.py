"""Writes a report's files; each appears whole or not at all."""

import json
import pathlib

from jaxanon.datasets import writing
from jaxanon.report import (
    budgets,
    figures,
    front,
    learned,
    street,
    street_figures,
    street_search,
)
from jaxanon.report import page as report_page


def write(folder, report: dict, examples, history: list[dict]) -> pathlib.Path:
    """Writes ``report.json``, the figures as PNG and ``report.html``.

    Older files of these names are replaced; the page carries its figures with it.

    Args:
      folder: made if it does not exist.
      report: of ``evaluate``, without NaN.
      examples: ``Examples``, the windows to show.
      history: metrics by round, dicts with ``"round"``; may be empty.

    Returns:
      The path of ``report.html``.
    """
    drawn = figures.draw(report, examples, history)
    return _written(folder, "report", report, drawn, report_page.render(report, drawn))


def write_front(folder, title: str, summary: list[dict], report: dict):
    """Writes ``front.png`` and ``sweep.html``, where a sweep was evaluated.

    Args:
      folder: of the sweep; it exists.
      title: of the page.
      summary: of the sweep, one row per setting.
      report: any of its reports.

    Returns:
      The path of ``sweep.html``; None if no private attribute was tried.
    """
    drawn = front.draw(summary, report)
    if drawn is None:
        return None
    folder = pathlib.Path(folder)
    writing.write(folder / "front.png", drawn.png)
    html = folder / "sweep.html"
    writing.write(html, front.render(title, summary, report, drawn))
    return html


def write_budget(folder, title: str, about: str, rows: list[dict]) -> pathlib.Path:
    """Writes ``budget.json``, ``budget.png`` and ``budget.html``.

    Args:
      folder: made if it does not exist.
      title: of the page and the figure.
      about: what was released, and who read it.
      rows: of ``evaluation.budgets.curve``.

    Returns:
      The path of ``budget.html``.
    """
    drawn = budgets.draw(title, rows)
    page = budgets.render(title, about, rows, drawn)
    return _written(folder, "budget", rows, {"budget": drawn}, page)


def write_learned(folder, report: dict) -> pathlib.Path:
    """Writes ``report.json``, ``clients.png`` and ``report.html`` of a learner.

    Args:
      folder: made if it does not exist.
      report: of ``jaxanon.evaluation.evaluate``.

    Returns:
      The path of ``report.html``.
    """
    drawn = learned.draw(report)
    page = learned.render(report, drawn)
    return _written(folder, "report", report, {"clients": drawn}, page)


def write_street(folder, report: dict) -> pathlib.Path:
    """Writes ``report.json``, the figures as PNG and ``report.html`` of a street.

    Args:
      folder: made if it does not exist.
      report: of ``jaxanon.evaluation.evaluate``.

    Returns:
      The path of ``report.html``.
    """
    drawn = street_figures.draw(report)
    return _written(folder, "report", report, drawn, street.render(report, drawn))


def write_search(folder, summary: list[dict]):
    """Writes ``sweep.png`` of a street's sweep.

    Args:
      folder: of the sweep; it exists.
      summary: of ``jaxanon.energy.sweeping.search``.

    Returns:
      Its path; None of a grid without an axis.
    """
    drawn = street_search.draw(summary)
    if drawn is None:
        return None
    path = pathlib.Path(folder) / "sweep.png"
    writing.write(path, drawn.png)
    return path


def _written(folder, name, values, drawn, html: str) -> pathlib.Path:
    """Figures by their names, ``values`` as JSON, and the page, whose path it gives."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for title, figure in drawn.items():
        writing.write(folder / f"{title}.png", figure.png)
    text = json.dumps(values, indent=1, allow_nan=False)
    writing.write(folder / f"{name}.json", text)
    path = folder / f"{name}.html"
    writing.write(path, html)
    return path
