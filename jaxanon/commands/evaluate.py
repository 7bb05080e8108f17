"""``jaxanon evaluate``: a run attacked, and reported on."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.commands import files, show, sources


def evaluate(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    attackers: Annotated[str, tyro.conf.arg(metavar="A,B,...")] = "mlp,forest",
    seed: int = 0,
    dataset: sources.Path = None,
    source: sources.Path = None,
    overwrite: bool = False,
) -> None:
    """Attacks a trained run and writes report.json and report.html into its folder.

    The data is loaded again from where the run had it, and refused if it changed.

    Args:
      folder: the run, as `jaxanon train --out` wrote it
      attackers: who is retrained on anonymized windows, comma-separated
      seed: of everything that the evaluation draws
      dataset: where the run's data is now, if it moved
      source: where the original files are now, if they moved
      overwrite: replace the report that is there
    """
    from jaxanon import evaluation, training

    files.refuse_existing(folder / "report.json", overwrite)
    names = sources.names(attackers, "attackers")
    run = training.open_run(folder)
    data = sources.recall(run, dataset=dataset, source=source)
    with show.pieces() as tell:
        report = evaluation.evaluate(
            run, data, attackers=names, seed=seed, progress=tell
        )
    show.report(report)
    show.say(f"The report: {(folder / 'report.html').absolute()}")
