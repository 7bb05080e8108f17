"""Progress bars and progress lines of training."""

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

SHOWN = 3  # Number of losses in a line.

LEGEND = (
    "Losses are means over the rounds since the previous line, and 0 until their "
    "component starts to train. Lower is better for the total loss; losses of opposing "
    "networks balance each other and need not fall."
)

RATE = "_per_second"  # Suffix of a row's speed.


def rate_of(method) -> str:
    """Returns the name of a method's speed, such as ``client_updates_per_second``."""
    return method.schedule.unit.replace(" ", "_") + RATE


def row(
    method, done: int, per_epoch: int, losses: dict, duration_s: float, work
) -> dict:
    """Returns a row of metrics for a call that ended after round ``done``.

    Args:
      method: ``Method``.
      done: completed rounds.
      per_epoch: rounds per epoch.
      losses: means over the call's rounds.
      duration_s: duration of the call in seconds.
      work: work of the call, in the method's unit.
    """
    return {
        "round": done,
        "epoch": done / per_epoch,
        "losses": losses,
        "seconds": duration_s,
        rate_of(method): work / duration_s,
    }


def note(text: str, *, show: bool) -> None:
    """Prints a line about work without a progress bar, if ``show``."""
    if show:
        Console(markup=False, emoji=False).print(text, style="dim", highlight=False)


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
    """Yields ``report(row)``, which shows a row of metrics.

    On a terminal, shows a bar with epoch, round, losses, speed and time left. Elsewhere
    prints one line per epoch; the first line has no time left, because the first call
    includes compilation. Prints the ``legend`` first if rounds remain.

    Args:
      total: total number of rounds.
      done: rounds completed before this training.
      show: whether to show anything.
      epochs: total number of epochs.
      unit: name of a round.
      legend: explanation of the losses.
    """
    console = Console(markup=False, emoji=False)
    if not show:
        yield lambda row: None
        return
    if legend:
        note(legend, show=done < total)
    if console.is_terminal:
        with _bar(console, unit) as bar:
            epoch = f"{done * epochs // total if total else 0}/{epochs}"
            fields = {"epoch": epoch, "metrics": "compiling ..."}
            task = bar.add_task("", total=total, completed=done, **fields)
            yield lambda row: bar.update(
                task,
                completed=row["round"],
                epoch=f"{row['round'] * epochs // total}/{epochs}",
                metrics=_format_metrics(row),
            )
    else:
        yield _by_epoch(console, total, done, epochs, unit)


def _bar(console, unit):
    return Progress(
        TextColumn("epoch {task.fields[epoch]}"),
        TextColumn(unit, markup=False),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[metrics]}", markup=False),
        TimeRemainingColumn(),
        console=console,
    )


def _by_epoch(console, total, done, epochs, unit):
    printed = set()  # Epochs with a line.
    first = None  # Round and time at the end of the first row.

    def prefix(done):
        return f"epoch {done * epochs // total}/{epochs}  {unit} {done}/{total}"

    if done < total:
        console.print(f"{prefix(done)}  compiling ...", highlight=False)

    def report(row):
        nonlocal first
        done, now = row["round"], time.monotonic()
        first = first or (done, now)
        epoch = done * epochs // total
        if epoch not in printed and epoch:
            printed.add(epoch)
            line = f"{prefix(done)}  {_format_metrics(row)}"
            if done == first[0]:
                line += " including compilation"
            if first[0] < done < total:
                pace = (now - first[1]) / (done - first[0])
                left = datetime.timedelta(seconds=round(pace * (total - done)))
                line += f"  {left} left"
            console.print(line, highlight=False, soft_wrap=True)

    return report


def _format_metrics(row):
    # The total loss first; the other names come in the order of the method's info.
    losses = sorted(row["losses"].items(), key=lambda item: item[0] != "loss")[:SHOWN]
    parts = [f"{name} {value:.3g}" for name, value in losses]
    rate = next(name for name in row if name.endswith(RATE))
    unit = rate.removesuffix(RATE).replace("_", " ")
    speed = f"{row[rate]:,.0f}" if row[rate] >= 10 else f"{row[rate]:.2g}"
    parts.append(f"{speed} {unit}/s")
    return "  ".join(parts)
