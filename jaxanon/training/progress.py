"""What a person sees of a long training."""

import contextlib
import datetime
import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

SHOWN = 3  # Losses beside the bar.

LEGEND = "Losses are means since the line before; of parts that do not learn yet, 0."

RATE = "_per_second"  # How the name of a row's speed ends.


def rate_of(method) -> str:
    """The name of a method's speed in a row, such as ``client_updates_per_second``."""
    return method.schedule.unit.replace(" ", "_") + RATE


def row(method, done: int, per_epoch: int, losses: dict, seconds: float, work) -> dict:
    """A row of the metrics, of a call that ended after round ``done``.

    Args:
      method: ``Method``.
      done: rounds so far.
      per_epoch: rounds of an epoch.
      losses: means over the call's rounds.
      seconds: that it took.
      work: that it did, in the method's unit.
    """
    return {
        "round": done,
        "epoch": done / per_epoch,
        "losses": losses,
        "seconds": seconds,
        rate_of(method): work / seconds,
    }


def note(text: str, *, show: bool) -> None:
    """A line about work that has no bar, where ``show``."""
    if show:
        Console().print(text, style="dim", highlight=False)


@contextlib.contextmanager
def rounds(
    total: int,
    done: int,
    *,
    show: bool,
    epochs: int,
    unit: str = "round",
    legend: str | None = None,
):
    """Yields ``tell(row)`` for a row of the metrics.

    On a terminal a bar with the ``unit``, losses, speed and time left; elsewhere one
    line of the same for each of ``epochs``, the first row's without the time, for that
    row's may be of compiling; before either, if there is something to do, the
    ``legend``; with ``show=False`` nothing.
    """
    console = Console()
    if not show:
        yield lambda row: None
        return
    if legend:
        note(legend, show=done < total)
    if console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task("", total=total, completed=done, told="compiling ...")
            yield lambda row: bar.update(
                task, completed=row["round"], told=_in_words(row)
            )
    else:
        yield _by_epoch(console, total, done, epochs, unit)


def _bar(console, unit):
    return Progress(
        TextColumn(unit),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
        console=console,
    )


def _by_epoch(console, total, done, epochs, unit):
    told, begun = set(), None  # Where and when the first row ended.
    if done < total:  # It may take a minute.
        console.print(f"{unit} {done}/{total}  compiling ...", highlight=False)

    def tell(row):
        nonlocal begun
        done, now = row["round"], time.monotonic()
        begun = begun or (done, now)
        whole = done * epochs // total
        if whole not in told and whole:
            told.add(whole)
            line = f"{unit} {done}/{total}  {_in_words(row)}"
            if done == begun[0]:
                line += " with compiling"
            if begun[0] < done < total:
                pace = (now - begun[1]) / (done - begun[0])
                left = datetime.timedelta(seconds=round(pace * (total - done)))
                line += f"  {left} left"
            console.print(line, highlight=False, soft_wrap=True)

    return tell


def _in_words(row):
    # By name they come as they like, and bytes before the loss.
    losses = sorted(row["losses"].items(), key=lambda item: item[0] != "loss")[:SHOWN]
    parts = [f"{name} {value:.3g}" for name, value in losses]
    rate = next(name for name in row if name.endswith(RATE))
    what = rate.removesuffix(RATE).replace("_", " ")
    told = f"{row[rate]:,.0f}" if row[rate] >= 10 else f"{row[rate]:.2g}"
    parts.append(f"{told} {what}/s")
    return "  ".join(parts)
