"""``jaxanon sweep``: a grid of settings and several seeds, as one program."""

import pathlib
from typing import Annotated, Any

import tyro
from rich.table import Table

from jaxanon.cli import arguments, console, recipes, train
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions, HomesOptions


def command(method: str | None):
    """The function behind ``jaxanon sweep METHOD``, with the method's settings."""
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

        `jaxanon sweep METHOD --help` shows the method's settings, too; each can be
        varied: --grid gamma=0.1,0.2,0.5 latent=10,25. Hyper-parameters are one axis of
        one program; every other setting is compiled anew for each of its values.

        Args:
          method: what to train, such as blinder; comes first
          output_dir: folder for the members' runs, sweep.json, pareto_front.png,
            sweep.html; default: runs/METHOD-sweep
          grid: NAME=VALUE,VALUE,... for each setting to vary
          num_seeds: how many; 0, 1, ...
          num_splits: how many splits of the data everything is trained on; with --split
            subject, whose test subjects --split-seed and the seeds after it draw
          recipe: whose settings are the defaults: recommended, paper, fast, or official
            where there is one
          epochs: passes over the data
          evaluate: evaluate every member, report mean and deviation over seeds, and
            draw the settings' scores; --no-evaluate leaves that out
          halving_factor: stop settings early that others beat: 3 keeps a third of them
            or more after 1/9 and 1/3 of the epochs
          resume: go on with the sweep in --output-dir
          chunk_size: members trained at once, and saved when they are done; default:
            what the memory holds
          ray: train by Ray (pip install 'jaxanon[sweep]') on all cores of this machine,
            or on the machines of the cluster at the address, which must all see
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
        train.settings_of(method)  # Not checked yet, if it did not come first.
        folder = output_dir or pathlib.Path("runs") / f"{method}-sweep"
        writing.check_writable_folder(folder)  # Now, and not after all the work.

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
            if result.runs[index] is not None:  # Else it got lost, and has no folder.
                own = sweeps_folder.member_folder(folder, index)
                cli_data.remember(own, options[member.split])
        console.table(summary.table(result.summary))
        if halving_factor and not any(row["stopped"] for row in result.summary):
            console.say(
                "Halving stopped nobody: of the settings that were compared none kept "
                "less and leaked more than another."
            )
        console.say(f"The sweep is in {folder}.")
        if not evaluate:
            console.say(
                "Next: the same command with --resume and without --no-evaluate "
                "evaluates its members."
            )
        page = folder / "sweep.html"
        if page.is_file():
            console.say(f"The settings' scores: {page}")

    return sweep


def _of_homes(method: str):
    """The function behind ``jaxanon sweep pfdrl``."""
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
        """Trains a street with every setting of a grid, and tests it on held-out days.

        --grid alpha=0:8:1,gamma_hours=6:24:6 are 9 times 4 runs. alpha, beta_hours,
        gamma_hours and the rates are arrays of one program; others, such as sharing,
        are compiled anew for each value.

        Args:
          method: pfdrl; comes first
          output_dir: folder for sweep.json and sweep.png; default: runs/METHOD-sweep
          grid: NAME=VALUE,VALUE,... or NAME=FIRST:LAST:STEP for each setting to vary
          num_seeds: how many; 0, 1, ...
          recipe: whose settings are the defaults: recommended, paper, fast, or official
            where there is one
          chunk_size: runs side by side; default: one on a CPU, else all of a program
          resume: go on with the sweep in --output-dir
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


def _address(words):
    """What ``sweep`` takes for the words behind ``--ray``."""
    if words is not None and len(words) > 1:
        raise ValueError(f"--ray takes one address, or none, got {list(words)}.")
    return False if words is None else words[0] if words else True
