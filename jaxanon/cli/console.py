"""Tables, bars and sentences on the terminal."""

import contextlib
import warnings

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


def say(text: str) -> None:
    """One sentence on a line of its own, not wrapped: it may hold a path."""
    Console().print(text, highlight=False, markup=False, soft_wrap=True)


def table(table: Table) -> None:
    """A table, as wide as the terminal allows."""
    Console().print(table)


def table_of(title: str, *columns: str) -> Table:
    """An empty table, the first column of words, the others of numbers."""
    made = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left")
    return made


@contextlib.contextmanager
def working(text: str):
    """Says what is done within, where that shows nothing of itself for a while."""
    console = Console()
    if console.is_terminal:
        with console.status(escape(text)):
            yield
    else:
        say(text)
        yield


@contextlib.contextmanager
def warnings_as_lines():
    """Says what is warned of within, when that is done, in place of Python's words."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    for warning in told:
        say(f"Warning: {warning.message}")


@contextlib.contextmanager
def pieces():
    """Yields ``tell(done, total, what)`` for work in pieces of unequal length."""
    console = Console()
    if not console.is_terminal:
        yield lambda done, total, what: say(f"[{done + 1}/{total}] {what}")
        return
    columns = (
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, what="")
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, what=what
        )


def unfinished(run) -> None:
    """A warning of a run that was interrupted; nothing of others."""
    from jaxanon import report

    for line in report.unfinished(run.unfinished):
        say(f"Warning: {run.folder}: {line}")


def spent(run) -> None:
    """What training spent of the epsilon that its noise is for; nothing without."""
    from jaxanon.privacy import ledger

    if run.folder is None or not (run.folder / ledger.FILE).is_file():
        return
    told = ledger.read(run.folder)
    if not told.get("holds", True):
        say(f"No guarantee; jaxanon privacy {run.folder} says why.")
        return
    if told.get("epsilon") is None or "rounds" not in told:
        return
    asked, rounds = (
        getattr(run.method.config, n, None) for n in ("epsilon", "max_rounds")
    )
    bought = (
        "" if not asked or not rounds else f" of {asked:g}, bought for {rounds} rounds"
    )
    say(
        f"Spent after {told['rounds']['done']} rounds: epsilon {told['epsilon']:.3g}"
        f"{bought}; jaxanon privacy {run.folder} says for whom."
    )


def homes(homes, settings) -> None:
    """How many homes there are, and of what."""
    joining = f", {settings.joining} of which join later" if settings.joining else ""
    say(
        f"{len(homes.names)} homes{joining}, {homes.kinds.shape[1]} devices each; "
        f"{settings.days} days to learn from, {settings.test_days} held out."
    )


def losses(run) -> None:
    """The last row of a run's metrics."""
    if run.history:
        last = run.history[-1]
        parts = [f"{name} {value:.4g}" for name, value in last["losses"].items()]
        say(f"Trained. Losses of round {last['round']}: {', '.join(parts)}")


def costs(folder) -> None:
    """What ``--profile`` found, and how to look at the trace."""
    from jaxanon.report import text
    from jaxanon.training import profiling

    told = profiling.read(folder)
    if told is None:
        return
    for line in text.costs(told):
        say(line)
    if told["trace"] is None:
        say("No trace was written: only a second call would have been traced.")
    else:
        say(
            f"The trace is in {folder}: open its perfetto_trace.json.gz at "
            f"https://ui.perfetto.dev, or `pip install xprof` and `xprof {folder}`."
        )


def report(report: dict) -> None:
    """Prints an evaluation as a table, and its verdict in sentences."""
    table = Table(title="Balanced accuracy in %")
    table.add_column("attribute")
    for column in ("goal", "chance level", "raw", "anonymized", "strongest retrained"):
        table.add_column(column, justify="right")
    utility = report["utility"]
    table.add_row(utility["attribute"], "high", *_scores(utility), "")
    for attribute, found in report["intrusive"].items():
        section = report["reidentification"].get(attribute)
        table.add_row(attribute, "low", *_scores(found), _strongest(section))
    Console().print(table)
    for sentence in report["headline"]:
        say(sentence)


def _scores(found):
    if not found:
        return "", "", ""
    raw, safe = found["raw"], found["anonymized"]
    if safe.get("not_measured"):
        return "", "not measured", "not measured"
    shown = (raw["chance"], raw["balanced_accuracy"], safe["balanced_accuracy"])
    return tuple(_percent(value) for value in shown)


def _strongest(section):
    from jaxanon.report.verdicts import strongest

    if not section:
        return ""
    name = strongest(section)
    scores = section["attackers"][name]
    if scores.get("not_measured"):
        return "not measured"
    return f"{_percent(scores['balanced_accuracy'])} ({name})"


def _percent(value):
    return f"{100 * value:.1f}"


def datasets(rows: list[dict], whereabouts: dict[str, str]) -> None:
    """The listing of ``jaxanon.datasets.describe``, and where each one's files are."""
    for row in rows:
        table = Table(title=row["name"], title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        attributes = [
            f"{name} ({num or 'as many as found'})"
            for name, num in row["attributes"].items()
        ]
        rate = row["rate_hz"]
        often = f"{rate:g} Hz" if rate >= 1 else f"every {1 / rate:g} s"
        table.add_row("about", f"{row['about']}, {often}")
        table.add_row("attributes", ", ".join(attributes))
        if row["targets"]:
            numbers = [f"{name} ({unit})" for name, unit in row["targets"].items()]
            table.add_row("numbers", ", ".join(numbers))
        table.add_row("public", row["public"])
        table.add_row("private", ", ".join(row["private"]))
        for name, about in row["presets"].items():
            table.add_row("preset", f"{name}: {about}")
        table.add_row("splits", ", ".join(row["splits"]))
        table.add_row("files", escape(whereabouts[row["name"]]))
        Console().print(table)
