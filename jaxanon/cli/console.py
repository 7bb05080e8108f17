"""Tables, progress and sentences on the terminal."""

import contextlib
import contextvars
import json
import pathlib
import warnings

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from jaxanon.core import escaping

_JSON: contextvars.ContextVar[bool] = contextvars.ContextVar("json", default=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # The error that Rich handles; Rich itself would end with status 1.


def _console() -> Console:
    # Names from data are text: neither markup such as [red] nor :smile: codes.
    return _Console(stderr=_JSON.get(), markup=False, emoji=False)


@contextlib.contextmanager
def json_only(wanted: bool):
    """Prints everything on stderr if ``wanted``, so that stdout has only JSON."""
    token = _JSON.set(wanted)
    try:
        yield
    finally:
        _JSON.reset(token)


def print_json(value) -> None:
    """Prints JSON on stdout."""
    print(json.dumps(value, indent=2))


def json_file(path: pathlib.Path) -> None:
    """Prints the JSON of a file on stdout."""
    print_json(json.loads(path.read_text(encoding="utf-8")))


def say(text: str) -> None:
    """Prints one sentence in one line, without wrapping, because paths may occur."""
    _console().print(escaping.printable(text), highlight=False, soft_wrap=True)


def table(table: Table) -> None:
    """Prints a table at the width of the terminal."""
    _console().print(table)


def table_of(title: str, *columns: str) -> Table:
    """Returns an empty table: a column of words, then columns of numbers."""
    empty = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        empty.add_column(column, justify="right" if number else "left")
    return empty


@contextlib.contextmanager
def warnings_as_lines():
    """Prints the warnings of the body in one line each, after the body."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        say(f"Warning: {warning.message}")


@contextlib.contextmanager
def pieces():
    """Yields ``progress(done, total, what)`` for work in pieces of unequal length."""
    console = _console()
    if not console.is_terminal:
        yield lambda done, total, what: say(f"[{done + 1}/{total}] {what}")
        return
    columns = (
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, what="")
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, what=what
        )


def unfinished(run, unit: str = "epochs") -> None:
    """Prints a warning if a run was interrupted, with its progress in ``unit``."""
    from jaxanon import report

    for line in report.unfinished(run.unfinished, unit):
        say(f"Warning: {run.folder}: {line}")


def spent(run) -> None:
    """Prints the epsilon that training spent, if the run has a ledger."""
    from jaxanon.privacy import ledger

    if run.folder is None or not (run.folder / ledger.FILE).is_file():
        return
    report = ledger.read(run.folder)
    command = f"jaxanon privacy {escaping.shell_word(run.folder)}"
    if not report.get("holds", True):
        say(f"No guarantee; see {command}.")
        return
    if report.get("epsilon") is None or "rounds" not in report:
        return
    target, rounds = (
        getattr(run.method.config, n, None) for n in ("epsilon", "max_rounds")
    )
    planned = f" of {target:g} for {rounds} rounds" if target and rounds else ""
    say(
        f"Spent after {report['rounds']['done']} rounds: epsilon "
        f"{report['epsilon']:.3g}{planned}; see {command}."
    )


def homes(homes, settings) -> None:
    """Prints the numbers of homes, devices and days."""
    joining = f" ({settings.joining} join later)" if settings.joining else ""
    say(
        f"{len(homes.names)} homes{joining}, {homes.kinds.shape[1]} devices each; "
        f"{settings.days} training days and {settings.test_days} test days."
    )


def losses(run) -> None:
    """Prints the last row of a run's metrics."""
    if run.history:
        last = run.history[-1]
        parts = [f"{name} {value:.4g}" for name, value in last["losses"].items()]
        say(f"Trained. Losses of round {last['round']}: {', '.join(parts)}")


def costs(folder) -> None:
    """Prints the costs that ``--profile`` measured, and the path of the trace."""
    from jaxanon.report import text
    from jaxanon.training import profiling

    measured = profiling.read(folder)
    if measured is None:
        return
    for line in text.costs(measured):
        say(line)
    if measured["trace"] is None:
        say("No trace was written, because the program ran only once.")
    else:
        command = f"xprof {escaping.shell_word(folder)}"
        say(
            f"The trace is in {folder}: open its perfetto_trace.json.gz at "
            f"https://ui.perfetto.dev, or `pip install xprof` and `{command}`."
        )


def report(report: dict) -> None:
    """Prints an evaluation as a table, and its verdict in sentences."""
    table = Table(title=f"Balanced accuracy in % {INTERVAL}")
    table.add_column("attribute")
    for column in ("goal", "chance level", "raw", "anonymized", "strongest retrained"):
        table.add_column(column, justify="right")
    utility = report["utility"]
    table.add_row(utility["attribute"], "high", *_scores(utility), "")
    for attribute, scores in report["intrusive"].items():
        attacked = report["reidentification"].get(attribute)
        table.add_row(attribute, "low", *_scores(scores), _strongest(attacked))
    _console().print(table)
    for sentence in report["headline"]:
        say(sentence)


def _scores(scores):
    if not scores:
        return "", "", ""
    raw, safe = scores["raw"], scores["anonymized"]
    if safe.get("not_measured"):
        return "", "not measured", "not measured"
    return _percent(raw["chance"]), scored(raw), scored(safe)


def _strongest(attacked):
    from jaxanon.report.verdicts import strongest

    if not attacked:
        return ""
    name = strongest(attacked)
    scores = attacked["attackers"][name]
    if scores.get("not_measured"):
        return "not measured"
    return f"{scored(scores)} {name}"


INTERVAL = "(95 % interval over persons)"


def scored(scores: dict, measure: str = "balanced_accuracy") -> str:
    """Formats a score in percent, with its interval over persons if there is one.

    Example:
      >>> scored({"auc": 0.5, "interval": {"auc": [0.444, 0.556]}}, "auc")
      '50.0 (44 to 56)'
    """
    value, bounds = scores[measure], (scores.get("interval") or {}).get(measure)
    if scores.get("not_measured"):
        return "not measured"
    if value is None:
        return ""
    if bounds is None:
        return _percent(value)
    low, high = (f"{100 * bound:.0f}" for bound in bounds)
    return f"{_percent(value)} ({low} to {high})"


def _percent(value):
    return f"{100 * value:.1f}"


def datasets(rows: list[dict], locations: dict[str, str]) -> None:
    """Prints cards of ``jaxanon.datasets.describe``, with the folders of the files."""
    for row in rows:
        table = Table(title=row["name"], title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        attributes = [
            f"{name} ({num or 'depends on the files'})"
            for name, num in row["attributes"].items()
        ]
        table.add_row("about", f"{row['about']}, {rate(row['rate_hz'])}")
        table.add_row("attributes", ", ".join(attributes))
        if row["targets"]:
            numbers = [f"{name} ({unit})" for name, unit in row["targets"].items()]
            table.add_row("targets", ", ".join(numbers))
        table.add_row("public", row["public"])
        table.add_row("private", ", ".join(row["private"]))
        for name, about in row["presets"].items():
            table.add_row("preset", f"{name}: {about}")
        table.add_row("splits", ", ".join(row["splits"]))
        table.add_row("files", locations[row["name"]])
        _console().print(table)


def rate(rate_hz: float) -> str:
    """Returns a sampling rate in words.

    Example:
      >>> rate(50.0), rate(1 / 60)
      ('50 Hz', 'every 60 s')
    """
    return f"{rate_hz:g} Hz" if rate_hz >= 1 else f"every {1 / rate_hz:g} s"
