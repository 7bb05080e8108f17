"""``jaxanon sweep pfdrl``: a grid of a street's settings."""

import pathlib
from typing import Annotated

import tyro
from rich.table import Table

from jaxanon.cli import arguments, console, energy


def command():
    """The function behind ``jaxanon sweep pfdrl``."""
    from jaxanon.energy import PFDRLSettings

    def sweep(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        out: Annotated[pathlib.Path, tyro.conf.arg(metavar="DIR")] = pathlib.Path(
            "runs/pfdrl-sweep"
        ),
        grid: Annotated[tuple[str, ...], arguments.optional("NAME=A,B,... ...")] = (),
        seeds: int = 1,
        dataset: energy.DATASET = "tracebase",
        source: arguments.Path = None,
        chunk: arguments.Whole = None,
        resume: bool = False,
        settings: Annotated[PFDRLSettings, tyro.conf.arg(name="")],
    ) -> None:
        """Trains a street with every setting of a grid, and tests it on held-out days.

        --grid alpha=0:8:1,gamma_hours=6:24:6 are 9 times 4 runs. alpha, beta_hours,
        gamma_hours and the rates are arrays of one program; others, such as sharing,
        are compiled anew for each value.

        Args:
          method: pfdrl; comes first
          out: folder for sweep.json and sweep.png
          grid: NAME=VALUE,VALUE,... or NAME=FIRST:LAST:STEP for each setting to vary
          seeds: how many; 0, 1, ...
          dataset: as of train
          source: folder or file of the original data, where it is not found alone
          chunk: runs side by side; default: one on a CPU, else all of a program
          resume: go on with the sweep in --out
        """
        from jaxanon.energy import sweeping

        axes = arguments.parse(grid, PFDRLSettings)
        homes = energy.load(dataset, source, settings)
        energy.tell(homes, settings)
        with console.pieces() as progress:
            _, summary = sweeping.search(
                settings,
                homes,
                grid=axes,
                seeds=seeds,
                out=out,
                resume=resume,
                chunk=chunk,
                progress=progress,
            )
        console.table(table(summary))
        console.say(f"The sweep is in {out}.")

    return sweep


def table(summary: list[dict]) -> Table:
    """A row for each setting: mean and deviation over seeds."""
    found = Table(title=f"held-out days, mean over {summary[0]['seeds']} seeds")
    for name in summary[0]["settings"]:
        found.add_column(name)
    for name in ("saved %", "off in use %", "best action %", "95 % on day"):
        found.add_column(name, justify="right")
    scales = {
        "saved_share": 100,
        "switched_off_share": 100,
        "optimal_share": 100,
        "reached_day": 1,
    }
    for row in summary:
        cells = [str(value) for value in row["settings"].values()]
        for name, scale in scales.items():
            score = row["scores"][name]
            mean, std, never = score["mean"], score["std"], score.get("never")
            spread = "" if std is None else f" ± {scale * std:.2f}"
            told = "" if mean is None else f"{scale * mean:.2f}{spread}"
            if never:
                told = f"{told} ({never} of {row['seeds']} never)".strip()
            cells.append(told)
        found.add_row(*cells)
    return found
