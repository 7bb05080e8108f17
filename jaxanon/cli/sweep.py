"""``jaxanon sweep``: a grid of settings and several seeds, as one program."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, energy, energy_sweep, train
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions


def command(method: str | None):
    """The function behind ``jaxanon sweep METHOD``, with the method's settings."""
    if method == energy.METHOD:
        return energy_sweep.command()
    settings_class = train.settings_of(method)

    def sweep(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        out: arguments.Folder = None,
        grid: Annotated[tuple[str, ...], arguments.optional("NAME=A,B,... ...")] = (),
        seeds: int = 3,
        splits: int = 1,
        epochs: int = train.epochs_of(method),
        evaluate: bool = True,
        halving: Annotated[int | None, arguments.optional("N")] = None,
        resume: bool = False,
        chunk: Annotated[int | None, arguments.optional("N")] = None,
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
          out: folder for the members' runs, sweep.json, front.png, sweep.html; default:
            runs/METHOD-sweep
          grid: NAME=VALUE,VALUE,... for each setting to vary
          seeds: how many; 0, 1, ...
          splits: how many splits of the data everything is trained on; with --split
            subject, whose test subjects --split-seed and the seeds after it draw
          epochs: passes over the data
          evaluate: evaluate every member, report mean and deviation over seeds, and draw
            the settings' scores; --no-evaluate leaves that out
          halving: stop settings early that others beat: 3 keeps a third of them or more
            after 1/9 and 1/3 of the epochs
          resume: go on with the sweep in --out
          chunk: members trained at once, and saved when they are done; default: what
            the memory holds
          ray: train by Ray (pip install 'jaxanon[sweep]') on all cores of this machine,
            or on the machines of the cluster at the address, which must all see --out
        """
        from jaxanon.datasets import writing
        from jaxanon.kernels.checks import whole

        for name, value in (("splits", splits), ("seeds", seeds), ("epochs", epochs)):
            whole(name, value, least=1)
        train.settings_of(method)  # Not checked yet, if it did not come first.
        folder = out or pathlib.Path("runs") / f"{method}-sweep"
        writing.refuse_unwritable_folder(folder)  # Now, and not after all the work.

        from jaxanon.sweeps import folder as sweeps_folder
        from jaxanon.sweeps import runner, summary

        options, (loaded, *more) = cli_data.splits(data, splits)
        result = runner.sweep(
            method,
            loaded,
            grid=arguments.parse(grid, train.settings_of(method)),
            seeds=seeds,
            splits=more,
            epochs=epochs,
            out=folder,
            resume=resume,
            evaluate=evaluate,
            halving=halving,
            chunk=chunk,
            ray=_address(ray),
            **train.fields_of(settings),
        )
        for index, member in enumerate(result.members):
            if result.runs[index] is not None:  # Else it got lost, and has no folder.
                own = sweeps_folder.member_folder(folder, index)
                cli_data.remember(own, options[member.split])
        console.table(summary.table(result.summary))
        if halving and not any(row["stopped"] for row in result.summary):
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


def _address(words):
    """What ``sweep`` takes for the words behind ``--ray``."""
    if words is not None and len(words) > 1:
        raise ValueError(f"--ray takes one address, or none, got {list(words)}.")
    return False if words is None else words[0] if words else True
