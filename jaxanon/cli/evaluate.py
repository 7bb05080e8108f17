"""``jaxanon evaluate``, ``budget-curve`` and ``personalize``: tests of a run."""

import pathlib
from typing import Annotated

import tyro
from rich.table import Table

from jaxanon.cli import arguments, console
from jaxanon.cli import data as cli_data

Run = Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")]


def evaluate(
    folder: Run,
    /,
    *,
    attacks: arguments.Names = None,
    leave_one_out: bool = False,
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Attacks a trained run and writes report.json and report.html into its folder.

    For a learner or pfdrl, tests the clients or homes instead. The data is loaded again
    and must be unchanged. For a sweep of dysan, attacks its online selection: each five
    windows of a wearer use the model that did best on the previous five.

    Args:
      folder: run folder of `jaxanon train --output-dir`, or a sweep of dysan
      attacks: attackers retrained on anonymized windows (mlp, cnn, lstm, forest,
        boosting, logistic, tree, svm) and further attacks (intrusive, released,
        per_class, stream, pairs, self-training, inversion, fingerprint, membership);
        default: mlp forest stream
      leave_one_out: train the method once without each person, as one program, test it
        on that person, and write leave_one_out.json; --attacks names attackers only
      seed: random seed of the evaluation
      dataset: current path of the run's data, if it moved
      source: path of the original files; required if training had --source
      split_seed: split_seed of jaxanon.load, for a run trained in Python
      overwrite: replace an existing report
      json: print the report as JSON on stdout, and messages on stderr
    """
    from jaxanon.datasets import writing

    output = "leave_one_out.json" if leave_one_out else "report.json"
    with console.json_only(json):
        if cli_data.of_homes(folder):
            if attacks is not None:
                raise ValueError(
                    "--attacks applies to windows, and pfdrl has none; omit it."
                )
            if split_seed is not None:
                raise ValueError(
                    "--split-seed applies to windows, and pfdrl has none; omit it."
                )
            if leave_one_out:
                raise ValueError(
                    "--leave-one-out applies to people, and pfdrl learns from homes; "
                    "omit it."
                )
            writing.check_writable(folder / "report.json", overwrite)
            _homes(folder, seed, dataset=dataset, source=source)
        else:
            writing.check_writable(folder / output, overwrite)
            where = {"dataset": dataset, "source": source, "split_seed": split_seed}
            command = _left_out if leave_one_out else _windows
            command(folder, attacks, seed, where)
    if json:
        console.json_file(folder / output)


def _left_out(folder, attacks, seed, where):
    """Trains and tests with one person left out at a time."""
    from jaxanon.cli import leave_one_out as tables
    from jaxanon.evaluation import left_out

    names = None if attacks is None else cli_data.names(attacks, "attacks")
    run = _one_run(folder)
    console.unfinished(run)
    data = cli_data.recall(run, **where)
    with console.pieces() as progress:
        report = left_out.leave_one_out(
            run, data, attackers=names, seed=seed, progress=progress
        )
    tables.show(report)
    console.say(f"The scores: {(folder / left_out.FILE).absolute()}")


def _windows(folder, attacks, seed, where):
    """Attacks a run on windows, or tests the clients of a learner."""
    from jaxanon.evaluation import anonymizers, attackers
    from jaxanon.report.federated import sentences
    from jaxanon.sweeps import folder as sweeps_folder
    from jaxanon.training import run_folder

    names = None if attacks is None else cli_data.names(attacks, "attacks")
    attackers.choose(names)
    if (folder / sweeps_folder.FILE).is_file():
        run, data = _online(folder, seed, where)
    else:
        run = run_folder.open_run(folder)
        console.unfinished(run)
        data = cli_data.recall(run, **where)
    with console.pieces() as progress:
        report = anonymizers.evaluate(
            run, data, attacks=names, seed=seed, progress=progress
        )
    if "clients" in report:
        for sentence in sentences(report):
            console.say(sentence)
    else:
        if names is not None:  # The verdict comes last, on one screen.
            _show_further(report["attacks"])
        console.report(report)
    console.say(f"The report: {(folder / 'report.html').absolute()}")


def budget_curve(
    folder: Run,
    /,
    *,
    epsilons: Annotated[tuple[str, ...], tyro.conf.arg(metavar="E ...")],
    attacker: str = "forest",
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Attacks windows of a deeprotect run that are released at each epsilon.

    Writes budget.json, budget.png and budget.html into the run folder.

    Args:
      folder: run folder of `jaxanon train deeprotect`
      epsilons: privacy budgets per window, such as 0.5 1 2 5 10 20
      attacker: attacker retrained on released windows: mlp, cnn, lstm, forest,
        boosting, logistic, tree or svm
      seed: random seed of the evaluation
      dataset: current path of the run's data, if it moved
      source: path of the original files; required if training had --source
      split_seed: split_seed of jaxanon.load, for a run trained in Python
      overwrite: replace existing files
    """
    from jaxanon.datasets import writing
    from jaxanon.evaluation import attackers

    writing.check_writable(folder / "budget.json", overwrite)
    budgets = [_number(text) for text in cli_data.names(epsilons, "epsilons")]
    chosen = attackers.choose((attacker,))
    if chosen.attacks:
        raise ValueError(
            f"--attacker must be a model, got {attacker!r}, an attack of `jaxanon "
            "evaluate`."
        )
    run = _one_run(folder)
    where = {"dataset": dataset, "source": source, "split_seed": split_seed}
    _over_budgets(run, cli_data.recall(run, **where), budgets, attacker, seed)


def personalize(
    folder: Run,
    /,
    *,
    new_client_fraction: float = 0.5,
    num_rounds: int = 1,
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Tests a learner on new clients: test subjects without training windows.

    Each new client fine-tunes the personal layers on a part of its test windows. The
    other windows test it. Writes DIR/newcomers/report.html.

    Args:
      folder: run folder of a learner
      new_client_fraction: fraction of a new client's test windows to fine-tune on
      num_rounds: local rounds of each new client
      seed: random seed of the evaluation
      dataset: current path of the run's data, if it moved
      source: path of the original files; required if training had --source
      split_seed: split_seed of jaxanon.load, for a run trained in Python
      overwrite: replace an existing report
    """
    from jaxanon.datasets import writing

    writing.check_writable(folder / "newcomers" / "report.json", overwrite)
    run = _one_run(folder)
    where = {"dataset": dataset, "source": source, "split_seed": split_seed}
    data = cli_data.recall(run, **where)
    _new_clients(run, data, new_client_fraction, num_rounds, seed)


def _one_run(folder):
    """Opens a run on windows; a sweep has many runs."""
    from jaxanon.sweeps import folder as sweeps_folder

    if (folder / sweeps_folder.FILE).is_file():
        raise ValueError(f"{folder} holds a sweep; name the folder of one member.")
    return cli_data.open_run(folder)


def _homes(folder, seed, **where):
    """Tests the homes of a run on held-out days, and the homes that join later."""
    from jaxanon.evaluation import energy
    from jaxanon.report.energy import sentences
    from jaxanon.training import run_folder

    run = run_folder.open_run(folder)
    console.unfinished(run, "days")
    homes = cli_data.recall_homes(run, **where)
    with console.pieces() as progress:
        report = energy.evaluate(run, homes, seed=seed, progress=progress)
    for sentence in sentences(report):
        console.say(sentence)
    console.say(f"The report: {(folder / 'report.html').absolute()}")


def _online(folder, seed, where):
    """Returns ``(run, data)`` of the online selection among a sweep's members."""
    import jax

    from jaxanon.evaluation import protocol
    from jaxanon.sweeps import online_selection

    runs, others = online_selection.members(folder)
    data = cli_data.recall(runs[0], **where)
    key = jax.random.fold_in(protocol.root(seed), online_selection.ROOT)
    with console.pieces() as progress:
        run = online_selection.choose_online(
            key, runs, data, folder=folder, progress=progress
        )
    omitted = f"; {others} members are not used" if others else ""
    console.say(f"One of {len(runs)} models rewrites each five windows{omitted}.")
    return run, data


def _number(text):
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(
            f"--epsilons must be numbers with spaces between them, got {text!r}."
        ) from error


def _new_clients(run, data, fraction, num_rounds, seed):
    """Prints the scores of new clients, and writes their report."""
    from jaxanon.evaluation import federated, newcomers
    from jaxanon.report.federated import sentences

    if newcomers.algorithm_of(run) is None:
        raise ValueError(
            f"the run must be of a learner, got {run.method.name}, which anonymizes; "
            "use `jaxanon evaluate`."
        )
    fresh = newcomers.parted(data, fraction)
    joined = newcomers.join(run, fresh, num_rounds=num_rounds)
    output_dir = run.folder / "newcomers"
    with console.pieces() as progress:
        report = federated.evaluate(
            joined, fresh, seed=seed, output_dir=output_dir, progress=progress
        )
    count = len(fresh.train.windows)
    console.say(f"New clients fine-tune on {count} windows, {num_rounds} rounds.")
    for sentence in sentences(report):
        console.say(sentence)
    console.say(f"The report: {(output_dir / 'report.html').absolute()}")


def _over_budgets(run, data, epsilons, attacker, seed):
    """Evaluates releases at every epsilon, and prints the scores."""
    from jaxanon.evaluation import budgets

    options = {"attacker": attacker, "seed": seed, "output_dir": run.folder}
    with console.pieces() as progress:
        rows = budgets.curve(run, data, epsilons, progress=progress, **options)
    table = Table(title=f"Balanced accuracy of {attacker} in % {console.INTERVAL}")
    table.add_column("epsilon of a window", justify="right")
    for name in rows[0]["scores"]:
        role = "useful" if name in rows[0]["useful"] else "sensitive"
        table.add_column(f"{name} ({role})", justify="right")
    for row in rows:
        epsilon = "raw windows" if row["epsilon"] is None else f"{row['epsilon']:g}"
        scores = row["scores"].values()
        table.add_row(epsilon, *map(console.scored, scores))
    console.table(table)
    console.say(f"The curve: {(run.folder / 'budget.html').absolute()}")


def _show_further(attacks: dict) -> None:
    """Prints a table for each further attack."""
    for name, rows in attacks.items():
        table = Table(title=f"{name}, in % {console.INTERVAL}")
        for column in ("attribute", "attacker", "variant"):
            table.add_column(column)
        for column in ("balanced accuracy", "AUC", "chance level"):
            table.add_column(column, justify="right")
        for row in rows:
            labels = (row["attribute"], row["attacker"], row["variant"])
            table.add_row(*labels, *_figures(row))
        console.table(table)


def _figures(row):
    scores = row["scores"]
    if scores is None:
        figures = (f"{name} {value:.3f}" for name, value in row["figures"].items())
        return (", ".join(figures) or "not measured", "", "")
    if scores.get("not_measured"):
        return ("not measured", "", "")
    cells = (console.scored(scores, name) for name in ("balanced_accuracy", "auc"))
    return (*cells, f"{100 * scores['chance']:.1f}")
