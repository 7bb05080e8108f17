"""What a person sees of a long training."""

import contextlib

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

SHOWN = 3  # Losses beside the bar.


@contextlib.contextmanager
def rounds(total: int, done: int, *, show: bool, epochs: int):
    """Yields ``tell(row)`` for a row of the metrics.

    On a terminal a bar with round, losses, client updates per second and time left;
    elsewhere one line for each of ``epochs``; with ``show=False`` nothing.
    """
    console = Console()
    if not show:
        yield lambda row: None
    elif console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("", total=total, completed=done, told="compiling ...")
            yield lambda row: bar.update(
                task, completed=row["round"], told=_in_words(row)
            )
    else:
        yield _by_epoch(console, total, epochs)


def _bar(console):
    return Progress(
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
        console=console,
    )


def _by_epoch(console, total, epochs):
    told = set()

    def tell(row):
        whole = row["round"] * epochs // total
        if whole not in told and whole:
            told.add(whole)
            line = f"round {row['round']}/{total}  {_in_words(row)}"
            console.print(line, highlight=False, soft_wrap=True)

    return tell


def _in_words(row):
    losses = list(row["losses"].items())[:SHOWN]
    parts = [f"{name} {value:.3g}" for name, value in losses]
    parts.append(f"{row['client_updates_per_second']:,.0f} client updates/s")
    return "  ".join(parts)
