"""``jaxanon sweep``: a grid of settings times several seeds, as one program."""

import pathlib
from typing import Annotated, Any

import tyro
from rich.table import Table

from jaxanon.cli import arguments, console, recipes, train
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions, HomesOptions


def command(method: str | None):
    """Returns the function of ``jaxanon sweep METHOD``, with the method's settings."""
    if method is not None and train.is_controller(method):
        return _of_homes(method)
    settings_class = train.settings_of(method)

    def sweep(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        grid: Annotated[tuple[str, ...], arguments.optional("NAME=A,B,... ...")] = (),
        num_seeds: int = 3,
        num_splits: int = 1,
        recipe: recipes.Recipe = recipes.DEFAULT,
        epochs: int = recipes.epochs(method),
        evaluate: bool = True,
        halving_factor: Annotated[int | None, arguments.optional("N")] = None,
        resume: bool = False,
        chunk_size: Annotated[int | None, arguments.optional("N")] = None,
        ray: Annotated[tuple[str, ...] | None, arguments.optional("[ADDRESS]")] = None,
        data: Annotated[DataOptions, tyro.conf.arg(name="")] = DataOptions(),  # noqa: B008
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Trains a grid of settings times several seeds, as one compiled program.

        `jaxanon sweep METHOD --help` adds the method's description and settings. --grid
        varies settings: --grid gamma=0.1,0.2,0.5 latent_dim=10,25. Hyper-parameters
        are an axis of one program; other settings recompile for each value.

        Args:
          method: name of a method or learner, such as blinder; comes first
          output_dir: folder for the members' runs, sweep.json, pareto_front.png,
            sweep.html; default: runs/METHOD-sweep
          grid: NAME=VALUE,VALUE,... for each setting to vary
          num_seeds: number of seeds, from 0
          num_splits: number of splits of the data; with --split subject, --split-seed
            and the following seeds select the test subjects
          recipe: named settings to start from: recommended, paper, fast, or official
            where available
          epochs: passes over the data
          evaluate: evaluate every member, and report the mean and the standard
            deviation over seeds
          halving_factor: successive halving: 3 keeps at least a third of the settings
            after 1/9 and after 1/3 of the epochs
          resume: continue the sweep in --output-dir
          chunk_size: members to train together, saved at the end of the chunk; default:
            as many as fit into memory
          ray: train with Ray (pip install 'jaxanon[sweep]') on all cores of this
            machine, or on the cluster at the address, where every machine can access
            --output-dir
        """
        from jaxanon.datasets import writing
        from jaxanon.kernels.checks import whole

        for name, value in (
            ("num_splits", num_splits),
            ("num_seeds", num_seeds),
            ("epochs", epochs),
        ):
            whole(name, value, least=1)
        train.settings_of(method)  # Unchecked so far if the name did not come first.
        folder = output_dir or pathlib.Path("runs") / f"{method}-sweep"
        writing.check_writable_folder(folder)  # Before the work.

        from jaxanon.sweeps import folder as sweeps_folder
        from jaxanon.sweeps import runner, summary

        options, (loaded, *more) = cli_data.splits(data, num_splits)
        result = runner.sweep(
            method,
            loaded,
            grid=arguments.parse(grid, train.settings_of(method)),
            num_seeds=num_seeds,
            splits=more,
            epochs=epochs,
            output_dir=folder,
            resume=resume,
            evaluate=evaluate,
            halving_factor=halving_factor,
            chunk_size=chunk_size,
            ray=_address(ray),
            recipe=recipe,
            **train.fields_of(settings),
        )
        for index, member in enumerate(result.members):
            if (
                result.runs[index] is not None
            ):  # None for a lost member without a folder.
                member_folder = sweeps_folder.member_folder(folder, index)
                cli_data.remember(member_folder, options[member.split])
        console.table(summary.table(result.summary))
        if halving_factor and not any(row["stopped"] for row in result.summary):
            console.say(
                "Halving stopped no setting: none had both less utility and more "
                "leakage than another."
            )
        console.say(f"The sweep is in {folder}.")
        if not evaluate:
            console.say(
                "Next: run the same command with --resume and without --no-evaluate to "
                "evaluate the members."
            )
        page = folder / "sweep.html"
        if page.is_file():
            console.say(f"Scores of the settings: {page}")

    return sweep


def _of_homes(method: str):
    """Returns the function of ``jaxanon sweep pfdrl``."""
    from jaxanon.core import registry

    settings_class: Any = recipes.settings_class(registry.entry(method))

    def sweep(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        grid: Annotated[tuple[str, ...], arguments.optional("NAME=A,B,... ...")] = (),
        num_seeds: int = 1,
        data: Annotated[HomesOptions, tyro.conf.arg(name="")] = HomesOptions(),  # noqa: B008
        recipe: recipes.Recipe = recipes.DEFAULT,
        chunk_size: arguments.Whole = None,
        resume: bool = False,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Trains homes with every setting of a grid, and tests them on held-out days.

        --grid alpha=0:8:1 gamma_hours=6:24:6 gives 9 times 4 runs. alpha, beta_hours,
        gamma_hours and the rates are arrays of one program; other settings, such as
        sharing, recompile for each value.

        Args:
          method: pfdrl; comes first
          output_dir: folder for sweep.json and sweep.png; default: runs/METHOD-sweep
          grid: NAME=VALUE,VALUE,... or NAME=FIRST:LAST:STEP for each setting to vary
          num_seeds: number of seeds, from 0
          recipe: named settings to start from: recommended, paper, fast, or official
            where available
          chunk_size: runs to train together; default: one on a CPU, otherwise all runs
            of a program
          resume: continue the sweep in --output-dir
        """
        from jaxanon.sweeps import homes as sweeps_homes

        folder = output_dir or pathlib.Path("runs") / f"{method}-sweep"
        axes = arguments.parse(grid, settings_class)
        homes = cli_data.load_homes(data, settings)
        console.homes(homes, settings)
        with console.pieces() as progress:
            _, summary = sweeps_homes.search(
                settings,
                homes,
                grid=axes,
                num_seeds=num_seeds,
                output_dir=folder,
                resume=resume,
                chunk_size=chunk_size,
                progress=progress,
            )
        console.table(homes_table(summary))
        console.say(f"The sweep is in {folder}.")

    return sweep


def homes_table(summary: list[dict]) -> Table:
    """Returns a table of mean and standard deviation over seeds, a row per setting."""
    scores = Table(title=f"held-out days, mean over {summary[0]['seeds']} seeds")
    for name in summary[0]["settings"]:
        scores.add_column(name)
    for name in ("saved %", "off in use %", "best action %", "95 % on day"):
        scores.add_column(name, justify="right")
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
            deviation = "" if std is None else f" ± {scale * std:.2f}"
            cell = "" if mean is None else f"{scale * mean:.2f}{deviation}"
            if never:
                cell = f"{cell} ({never} of {row['seeds']} never)".strip()
            cells.append(cell)
        scores.add_row(*cells)
    return scores


def _address(words):
    """Returns the argument of ``sweep`` for the words after ``--ray``."""
    if words is not None and len(words) > 1:
        raise ValueError(f"--ray must have at most one address, got {list(words)}.")
    return False if words is None else words[0] if words else True
