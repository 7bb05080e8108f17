"""``jaxanon evaluate``: a run attacked, and reported on."""

import pathlib
from typing import Annotated

import tyro
from rich.table import Table

from jaxanon.commands import files, show, sources


def evaluate(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    attacks: Annotated[str, tyro.conf.arg(metavar="A,B,...")] = "mlp,forest",
    seed: int = 0,
    dataset: sources.Path = None,
    source: sources.Path = None,
    overwrite: bool = False,
) -> None:
    """Attacks a trained run and writes report.json and report.html into its folder.

    The data is loaded again from where the run had it, and refused if it changed.

    Args:
      folder: the run, as `jaxanon train --out` wrote it
      attacks: who is retrained on anonymized windows (mlp, cnn, lstm, forest, boosting,
        logistic, tree, svm) and what is tried besides (intrusive, released, per-class,
        stream, pairs, self-training, inversion, fingerprint), comma-separated
      seed: of everything that the evaluation draws
      dataset: where the run's data is now, if it moved
      source: where the original files are now, if they moved
      overwrite: replace the report that is there
    """
    from jaxanon import evaluation, training, trial_names

    files.refuse_existing(folder / "report.json", overwrite)
    names = sources.names(attacks, "attacks")
    trial_names.choose(names)
    run = training.open_run(folder)
    data = sources.recall(run, dataset=dataset, source=source)
    with show.pieces() as tell:
        report = evaluation.evaluate(run, data, attacks=names, seed=seed, progress=tell)
    show.report(report)
    _show_further(report["attacks"])
    show.say(f"The report: {(folder / 'report.html').absolute()}")


def _show_further(attacks: dict) -> None:
    """A table for each further attack."""
    for name, rows in attacks.items():
        table = Table(title=f"{name}, in %")
        for column in ("attribute", "by whom", "how"):
            table.add_column(column)
        for column in ("balanced accuracy", "AUC", "guessing"):
            table.add_column(column, justify="right")
        for row in rows:
            what = (row["attribute"], row["attacker"], row["variant"])
            table.add_row(*what, *_figures(row))
        show.table(table)


def _figures(row):
    scores = row["scores"]
    if scores is None:
        told = (f"{name} {value:.3f}" for name, value in row["figures"].items())
        return (", ".join(told) or "too few windows", "", "")
    figures = (scores["balanced_accuracy"], scores["auc"], scores["chance"])
    return tuple("" if x is None else f"{100 * x:.1f}" for x in figures)
