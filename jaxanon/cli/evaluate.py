"""``jaxanon evaluate``: a run attacked, and reported on."""

import pathlib
from typing import Annotated

import tyro
from rich.table import Table

from jaxanon.cli import arguments, console
from jaxanon.cli import data as cli_data


def evaluate(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    attacks: arguments.Names = None,
    epsilons: Annotated[str | None, arguments.optional("E,E,...")] = None,
    join: Annotated[float | None, arguments.optional("SHARE")] = None,
    join_rounds: arguments.Whole = None,
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Attacks a trained run and writes report.json and report.html into its folder.

    A learner's clients, or a street's homes, are tested instead. The data is loaded
    again from where the run had it, and refused if it changed. Of a sweep of dysan its
    online choice is attacked: for each five windows of a wearer the model that did best
    on the five before.

    Args:
      folder: the run, as `jaxanon train --output-dir` wrote it, or a sweep of dysan
      attacks: who is retrained on anonymized windows (mlp, cnn, lstm, forest, boosting,
        logistic, tree, svm) and what is tried besides (intrusive, released, per-class,
        stream, pairs, self-training, inversion, fingerprint, membership),
        comma-separated; default: mlp,forest,stream
      epsilons: instead, what is read of windows that are released at each of these,
        such as 0.5,1,2,5,10,20, by the forest, or if --attacks has none by its first
        attacker; deeprotect alone. Writes budget.json, budget.svg and budget.html
      join: instead, how well people predict who join a learner when it has been
        trained: test subjects without training windows, who fit a model of their own to
        this share of their test windows, and are tested on the others. Writes into the
        folder newcomers of the run
      join_rounds: that they go through alone; default: 1
      seed: of everything that the evaluation draws
      dataset: where the run's data is now, if it moved
      source: where the original files are; needed where training had --source
      split_seed: that Python's jaxanon.load was given, of a run that was trained there
      overwrite: replace the report that is there
    """
    from jaxanon.datasets import writing
    from jaxanon.evaluation import anonymizers, attackers
    from jaxanon.report import origin
    from jaxanon.report.federated import sentences
    from jaxanon.sweeps import folder as sweeps_folder
    from jaxanon.training import run_folder

    origin.words.set(arguments.words.get(None))
    if join is None and join_rounds is not None:
        raise ValueError("--join-rounds are of those who join; give --join, too.")
    if join is not None and attacks is not None:
        raise ValueError("nobody attacks who joins; give --join or --attacks.")
    if cli_data.of_homes(folder):
        if join is not None or epsilons is not None:
            raise ValueError(
                "--join and --epsilons are not of pfdrl, whose homes that join are "
                "those of --joining when it is trained."
            )
        if attacks is not None:
            raise ValueError("nobody attacks a street of homes; leave --attacks out.")
        if split_seed is not None:
            raise ValueError("--split-seed is of windows, and a street has none.")
        writing.check_writable(folder / "report.json", overwrite)
        _homes(folder, seed, dataset=dataset, source=source)
        return
    written = "report.json" if epsilons is None else "budget.json"
    if join is not None:
        if epsilons is not None:
            raise ValueError(
                "--join is of learners, --epsilons of deeprotect; give one."
            )
        written = "newcomers/report.json"
    writing.check_writable(folder / written, overwrite)
    names = None if attacks is None else cli_data.names(attacks, "attacks")
    chosen = attackers.choose(names)
    if epsilons is not None and chosen.attacks:
        raise ValueError(
            f"{chosen.attacks[0]} is not tried at each of --epsilons; leave it out of "
            "--attacks."
        )
    where = {"dataset": dataset, "source": source, "split_seed": split_seed}
    if (folder / sweeps_folder.FILE).is_file():
        if join is not None or epsilons is not None:
            raise ValueError(
                "--join and --epsilons are of one run; give a member's folder."
            )
        run, data = _online(folder, seed, where)
    else:
        run = run_folder.open_run(folder)
        data = cli_data.recall(run, **where)
    if epsilons is not None:
        tried = [_number(text) for text in cli_data.names(epsilons, "epsilons")]
        who = chosen.attackers
        who = "forest" if "forest" in who else who[0]
        _over_budgets(run, data, tried, who, seed)
        return
    if join is not None:
        _joined(run, data, join, 1 if join_rounds is None else join_rounds, seed)
        return
    with console.pieces() as tell:
        report = anonymizers.evaluate(
            run, data, attacks=names, seed=seed, progress=tell
        )
    if "clients" in report:
        for sentence in sentences(report):
            console.say(sentence)
    else:
        if names is not None:  # The verdict comes last, on one screen.
            _show_further(report["attacks"])
        console.report(report)
    console.say(f"The report: {(folder / 'report.html').absolute()}")


def _homes(folder, seed, **where):
    """Tests the homes of a run on held-out days, and those that join."""
    from jaxanon.evaluation import energy
    from jaxanon.report.energy import sentences
    from jaxanon.training import run_folder

    run = run_folder.open_run(folder)
    homes = cli_data.recall_homes(run, **where)
    with console.pieces() as tell:
        report = energy.evaluate(run, homes, seed=seed, progress=tell)
    for sentence in sentences(report):
        console.say(sentence)
    console.say(f"The report: {(folder / 'report.html').absolute()}")


def _online(folder, seed, where):
    """``(run, data)`` of the choice among a sweep's members while windows come in."""
    import jax

    from jaxanon.evaluation import protocol
    from jaxanon.sweeps import online_selection

    runs, others = online_selection.members(folder)
    data = cli_data.recall(runs[0], **where)
    key = jax.random.fold_in(protocol.root(seed), online_selection.ROOT)
    with console.pieces() as tell:
        run = online_selection.choose_online(
            key, runs, data, folder=folder, progress=tell
        )
    said = f"Each five windows of a wearer go through one of {len(runs)} models"
    console.say(said + (f"; {others} members are left out." if others else "."))
    return run, data


def _number(text):
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(
            f"--epsilons must be numbers with commas between them, got {text!r}."
        ) from error


def _joined(run, data, share, num_rounds, seed):
    """Prints how well newcomers predict, and writes the report of it."""
    from jaxanon.evaluation import federated, newcomers
    from jaxanon.report.federated import sentences

    if newcomers.algorithm_of(run) is None:
        name = run.method.name
        raise ValueError(
            f"--join is of learners, and {name} anonymizes; leave --join out."
        )
    fresh = newcomers.parted(data, share)
    joined = newcomers.join(run, fresh, num_rounds=num_rounds)
    output_dir = run.folder / "newcomers"
    with console.pieces() as tell:
        report = federated.evaluate(
            joined, fresh, seed=seed, output_dir=output_dir, progress=tell
        )
    count = len(fresh.train.windows)
    console.say(f"Who joins fits to {count} windows in {num_rounds} rounds alone.")
    for sentence in sentences(report):
        console.say(sentence)
    console.say(f"The report: {(output_dir / 'report.html').absolute()}")


def _over_budgets(run, data, epsilons, attacker, seed):
    """Tries releases at every ε, and prints what is read of them."""
    from jaxanon.evaluation import budgets

    options = {"attacker": attacker, "seed": seed, "output_dir": run.folder}
    with console.pieces() as tell:
        rows = budgets.curve(run, data, epsilons, progress=tell, **options)
    table = Table(title=f"Balanced accuracy in %, read by {attacker}")
    table.add_column("epsilon of a window", justify="right")
    for name in rows[0]["scores"]:
        role = "useful" if name in rows[0]["useful"] else "sensitive"
        table.add_column(f"{name} ({role})", justify="right")
    for row in rows:
        epsilon = "raw windows" if row["epsilon"] is None else f"{row['epsilon']:g}"
        told = (score["balanced_accuracy"] for score in row["scores"].values())
        table.add_row(epsilon, *(f"{100 * value:.1f}" for value in told))
    console.table(table)
    console.say(f"The curve: {(run.folder / 'budget.html').absolute()}")


def _show_further(attacks: dict) -> None:
    """Prints a table for each further attack."""
    for name, rows in attacks.items():
        table = Table(title=f"{name}, in %")
        for column in ("attribute", "by whom", "how"):
            table.add_column(column)
        for column in ("balanced accuracy", "AUC", "chance level"):
            table.add_column(column, justify="right")
        for row in rows:
            what = (row["attribute"], row["attacker"], row["variant"])
            table.add_row(*what, *_figures(row))
        console.table(table)


def _figures(row):
    scores = row["scores"]
    if scores is None:
        figures = (f"{name} {value:.3f}" for name, value in row["figures"].items())
        return (", ".join(figures) or "not measured", "", "")
    if scores.get("not_measured"):
        return ("not measured", "", "")
    figures = (scores["balanced_accuracy"], scores["auc"], scores["chance"])
    return tuple("" if x is None else f"{100 * x:.1f}" for x in figures)
