"""``jaxanon train``: one run in a new folder."""

import dataclasses
import pathlib
import re
import shlex
from typing import Annotated, Any

import tyro

from jaxanon.cli import arguments, cards, commands, console, files, recipes
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions, HomesOptions
from jaxanon.core import command_line


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoSettings:
    """Settings without a method."""


def settings_of(method: str | None) -> type:
    """Returns the settings class of a method; ValueError for an unknown method."""
    if method is None:
        return NoSettings
    return recipes.settings_class(registered(method)) or NoSettings


def deferred(command, method: str | None):
    """Returns ``command(method)`` for the parser, described by the method's card."""
    function = command(method)
    if method is None:
        return commands.deferred(function)
    from jaxanon.core import registry

    entry = registry.entry(method)
    varied = frozenset(
        name for each in entry.recipes.values() for name in each.settings
    )
    usage, _ = commands.documented(function)
    # Sentences about this help belong to the help without a method.
    usage = re.sub(r"`jaxanon \w+ METHOD --help`[^.]*\.\s+", "", usage)
    about = f"{cards.about(entry)}\n\n{usage}"
    return commands.deferred(function, about, frozenset(varied))


def registered(name: str):
    """Returns the registry's entry of a method or learner.

    Raises:
      ValueError: if the name is unknown.
    """
    from jaxanon.core import registry
    from jaxanon.kernels.checks import did_you_mean

    controllers = registry.names("controller")
    if name in controllers:
        raise ValueError(
            f"{name} learns from homes; use `jaxanon train {name}` or `jaxanon sweep "
            f"{name}`, with the name right after the command."
        )
    anonymizers, learners = map(registry.names, ("anonymizer", "learner"))
    known = (*learners, *anonymizers, *controllers)
    if name not in known:
        raise ValueError(
            f"METHOD must be a registered name, got {name!r}."
            f"{did_you_mean(name, known)} Anonymizers: "
            f"{', '.join(sorted(anonymizers))}. Learners: "
            f"{', '.join(sorted(learners))}. Controllers: {', '.join(controllers)}."
        )
    return registry.entry(name, "anonymizer", "learner")


def fields_of(settings) -> dict:
    """Returns a config's fields by name, for the builder of its method."""
    fields = dataclasses.fields(settings)
    return {field.name: getattr(settings, field.name) for field in fields}


def is_controller(method: str) -> bool:
    """Returns whether a method learns from homes instead of windows."""
    from jaxanon.core import registry

    return method in registry.names("controller")


def _of_homes(method: str):
    """Returns the function of ``jaxanon train pfdrl``."""
    from jaxanon.core import registry

    settings_class: Any = recipes.settings_class(registry.entry(method))

    def train(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        data: Annotated[HomesOptions, tyro.conf.arg(name="")] = HomesOptions(),  # noqa: B008
        recipe: recipes.Recipe = recipes.DEFAULT,
        seed: int = 0,
        resume: bool = False,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Trains homes to switch standby off, without a server.

        The same command with --resume continues an interrupted run and gives the same
        result.

        Args:
          method: pfdrl; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          recipe: named settings to start from: recommended, paper, fast, or official
            where available
          seed: random seed of training; --homes-seed selects the homes
          resume: continue the run in --output-dir, or start one if it is empty
        """
        from jaxanon.core import registry
        from jaxanon.training import trainer

        folder = output_dir or pathlib.Path("runs") / method
        files.refuse_folder(folder, resume)
        homes = cli_data.load_homes(data, settings)
        console.homes(homes, settings)
        run = trainer.train(
            registry.build(method, homes.spec, recipe=recipe, **fields_of(settings)),
            homes,
            seed=seed,
            output_dir=folder,
            resume=resume,
            # Before the first day, because a run may be killed at any time.
            on_claim=lambda: cli_data.remember(folder, data),
        )
        if run.history:  # Empty if the file of metrics was lost.
            last = run.history[-1]["losses"]
            console.say(
                f"On the last of {settings.days} days homes saved "
                f"{100 * last['saved_share']:.1f} % of standby energy and switched off "
                f"{100 * last['switched_off_share']:.1f} % of the minutes in use."
            )
        console.spent(run)
        console.say(f"The run is in {folder}. Next: {evaluation(folder, data.source)}")

    return train


def evaluation(folder, source) -> str:
    """Returns the command that evaluates the run in ``folder``.

    Args:
      folder: folder of the run.
      source: ``--source`` of the run's data, or None.
    """
    from jaxanon.core import registry

    words = ["jaxanon", "evaluate", str(folder)]
    for module in registry.plugins():
        words += ["--plugin", module]
    return shlex.join(words if source is None else [*words, "--source", str(source)])


def command(method: str | None):
    """Returns the function of ``jaxanon train METHOD``, with the method's settings."""
    if method is not None and is_controller(method):
        return _of_homes(method)
    settings_class = settings_of(method)

    def train(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        output_dir: arguments.Folder = None,
        data: Annotated[DataOptions, tyro.conf.arg(name="")] = DataOptions(),  # noqa: B008
        recipe: recipes.Recipe = recipes.DEFAULT,
        epochs: int = recipes.epochs(method),
        seed: int = 0,
        resume: bool = False,
        profile: arguments.Folder = None,
        num_devices: arguments.Whole = None,
        num_processes: int = 1,
        process_id: arguments.Whole = None,
        coordinator_address: Annotated[
            str | None, arguments.optional("HOST:PORT")
        ] = None,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Trains a method on a data set.

        `jaxanon train METHOD --help` adds the method's description and settings. The
        same command with --resume continues an interrupted run and gives the same
        result.

        Args:
          method: name of a method or learner, such as blinder; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          recipe: named settings to start from: recommended, paper, fast, or official
            where available
          epochs: passes over the data; a finished run may be resumed with more
          seed: random seed
          resume: continue the run in --output-dir, or start one if it is empty
          profile: folder for JAX's trace of one call of the training program, and for
            the costs of compilation, rounds and memory, which the report shows
          num_devices: devices that share a round's clients (cores of a CPU); default:
            one, or all devices of the processes
          num_processes: processes that train one run together; without --process-id
            all start on this machine
          process_id: index of this process, from 0, if a separate command starts each;
            process 0 writes the run folder
          coordinator_address: address at which the other processes reach process 0
        """
        if (
            num_processes != 1
            or process_id is not None
            or coordinator_address is not None
        ):
            joined(num_processes, process_id, coordinator_address, num_devices)
        folder = output_dir or pathlib.Path("runs") / method
        more = {"epochs": epochs, "seed": seed, "recipe": recipe}
        more |= {"profile": profile, "num_devices": num_devices}
        train_run(method, data, settings, output_dir=folder, resume=resume, **more)
        if (process_id or 0) == 0:
            console.say(f"Next: {evaluation(folder, data.source)}")

    return train


def joined(num_processes, process_id, coordinator_address, num_devices):
    """Joins several processes, or starts them all and exits with their status."""
    from jaxanon.training import processes

    if process_id is None and coordinator_address is None:
        words = list(command_line.words.get() or ())
        raise SystemExit(processes.launch(words, num_processes, num_devices))
    if process_id is None or coordinator_address is None:
        raise ValueError(
            "--process-id requires --coordinator-address and vice versa; omit both to "
            "start all processes on this machine."
        )
    processes.check_numbers(num_processes, process_id)
    console.say(
        f"Process {process_id} of {num_processes} waits up to {processes.JOINING_S} s "
        f"for the others at {coordinator_address}."
    )
    processes.join(coordinator_address, num_processes, process_id)


def train_run(
    method, options, settings, *, output_dir, resume, recipe=recipes.DEFAULT, **training
):
    """Trains, and records the source of the data in the run folder.

    Args:
      method: name of a method or learner.
      options: ``DataOptions``.
      settings: the method's settings.
      output_dir, resume: as for ``jaxanon.train``.
      recipe: name of the recipe that ``settings`` began from.
      **training: further arguments of ``jaxanon.train``.
    """
    from jaxanon.core import registry
    from jaxanon.training import processes, trainer

    with processes.exit_on_error():
        registered(method)  # Unchecked so far if the name did not come first.
        files.refuse_folder(output_dir, resume)
        if resume and not (pathlib.Path(output_dir) / "config.json").is_file():
            console.say(f"{output_dir} has no run yet; starting one.")
        data = cli_data.load(options)
        built = registry.build(method, data.spec, recipe=recipe, **fields_of(settings))
        run = trainer.train(
            built,
            data,
            output_dir=output_dir,
            resume=resume,
            # Before the first round, because a run may be killed at any time.
            on_claim=lambda: cli_data.remember(output_dir, options),
            **training,
        )
    if not processes.first():
        return run, data
    console.losses(run)
    console.spent(run)
    if training.get("profile") is not None:
        console.costs(training["profile"])
    console.say(f"The run is in {output_dir}.")
    return run, data
