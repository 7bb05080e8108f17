"""``jaxanon train``: one run, in a folder of its own."""

import dataclasses
import pathlib
from typing import Annotated, Any

import tyro

from jaxanon.cli import arguments, console, files, recipes
from jaxanon.cli import data as cli_data
from jaxanon.cli.data import DataOptions, HomesOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The settings of no method: which there are depends on METHOD."""


def settings_of(method: str | None) -> type:
    """The dataclass of a method's settings; ValueError for an unknown method."""
    if method is None:
        return NoSettings
    return recipes.settings_class(registered(method)) or NoSettings


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
            f"{name} trains a street of homes, by `jaxanon train {name}` or `jaxanon "
            f"sweep {name}`, its name right behind the verb; nothing else takes it."
        )
    anonymizers, learners = map(registry.names, ("anonymizer", "learner"))
    known = (*learners, *anonymizers, *controllers)
    if name not in known:
        raise ValueError(
            f"there is no method {name!r}.{did_you_mean(name, known)} Methods that "
            f"anonymize are {', '.join(sorted(anonymizers))}; those that predict "
            f"{', '.join(sorted(learners))}; {', '.join(controllers)} switches "
            "standby off."
        )
    return registry.entry(name, "anonymizer", "learner")


def fields_of(settings) -> dict:
    """A config's fields by name, as a method's builder takes them."""
    fields = dataclasses.fields(settings)
    return {field.name: getattr(settings, field.name) for field in fields}


def is_controller(method: str) -> bool:
    """Whether a method learns from homes in place of windows."""
    from jaxanon.core import registry

    return method in registry.names("controller")


def _of_homes(method: str):
    """The function behind ``jaxanon train pfdrl``."""
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
        """Homes learn to switch standby off, sharing what they learn without a server.

        Every device of every home forecasts what it will take, and chooses minute by
        minute between off, standby and on. A run that was interrupted, or killed, goes
        on by the same command with --resume and ends in the same bits.

        Args:
          method: pfdrl; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          recipe: whose settings are the defaults: recommended, paper, fast, or official
            where there is one
          seed: of everything random but the homes
          resume: go on with the run in --output-dir; where there is none, begin it
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
            # Before the first day: a run may be killed at any moment.
            on_claim=lambda: cli_data.remember(folder, data),
        )
        if run.history:  # Else its file was lost.
            last = run.history[-1]["losses"]
            console.say(
                f"On the last of {settings.days} days homes saved "
                f"{100 * last['saved_share']:.1f} % of standby energy; "
                f"{100 * last['switched_off_share']:.1f} % of minutes in use were "
                "switched off."
            )
        console.spent(run)
        console.say(f"The run is in {folder}. Next: jaxanon evaluate {folder}")

    return train


def command(method: str | None):
    """The function behind ``jaxanon train METHOD``, with the method's settings."""
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
        """Trains a method on a data set: over clients, one a subject, or in one place.

        `jaxanon train METHOD --help` shows the method's settings, too. A run that was
        interrupted, or killed, goes on by the same command with --resume and ends in
        the same bits.

        Args:
          method: what to train, such as blinder; comes first
          output_dir: folder for settings, checkpoints and metrics; default: runs/METHOD
          recipe: whose settings are the defaults: recommended, paper, fast, or official
            where there is one
          epochs: passes over the data; a finished run may be resumed with more
          seed: of everything random
          resume: go on with the run in --output-dir; where there is none, begin it
          profile: folder for JAX's trace of one call of the training program, and what
            compiling, rounds and memory cost; the report tells it
          num_devices: how many share a round's clients; of a CPU, cores; default: one,
            or all that the processes have
          num_processes: that train one run together; without --process-id all are
            started here, on this machine
          process_id: which of them this is, from 0; each is started by a command of its
            own, that of process 0 keeps the run's folder
          coordinator_address: where process 0 can be reached by the others
        """
        if (
            num_processes != 1
            or process_id is not None
            or coordinator_address is not None
        ):
            joined(num_processes, process_id, coordinator_address, num_devices)
        folder = output_dir or pathlib.Path("runs") / method
        more = {"profile": profile, "num_devices": num_devices, "recipe": recipe}
        train_run(method, data, settings, epochs, seed, folder, resume, **more)
        if (process_id or 0) == 0:
            console.say(f"Next: jaxanon evaluate {folder}")

    return train


def joined(num_processes, process_id, coordinator_address, num_devices):
    """Makes this process one of several, or starts them all and ends with them."""
    from jaxanon.training import processes

    if process_id is None and coordinator_address is None:
        raise SystemExit(
            processes.launch(arguments.words.get(), num_processes, num_devices)
        )
    if process_id is None or coordinator_address is None:
        raise ValueError(
            "--process-id and --coordinator-address go together; give both, or "
            "neither to "
            "start all processes on this machine."
        )
    processes.check_numbers(num_processes, process_id)
    console.say(
        f"Process {process_id} of {num_processes} waits at {coordinator_address} "
        "for the "
        f"others, {processes.JOINING_S} s at most."
    )
    processes.join(coordinator_address, num_processes, process_id)


def train_run(
    method,
    options,
    settings,
    epochs,
    seed,
    output_dir,
    resume,
    profile=None,
    num_devices=None,
    recipe=recipes.DEFAULT,
):
    """Remembers where the data came from, and trains."""
    from jaxanon.training import processes

    with processes.exit_on_error():
        run, data = _trained(
            method,
            options,
            settings,
            epochs,
            seed,
            output_dir,
            resume,
            profile,
            num_devices,
            recipe,
        )
    if not processes.first():
        return run, data
    console.losses(run)
    console.spent(run)
    if profile is not None:
        console.costs(profile)
    console.say(f"The run is in {output_dir}.")
    return run, data


def _trained(
    method,
    options,
    settings,
    epochs,
    seed,
    output_dir,
    resume,
    profile,
    num_devices,
    recipe,
):
    from jaxanon.core import registry
    from jaxanon.training import trainer

    registered(method)  # Not checked yet, if it did not come first.
    files.refuse_folder(output_dir, resume)
    if resume and not (pathlib.Path(output_dir) / "config.json").is_file():
        console.say(f"There is no run in {output_dir} yet; this is its beginning.")
    data = cli_data.load(options)
    built = registry.build(method, data.spec, recipe=recipe, **fields_of(settings))
    run = trainer.train(
        built,
        data,
        epochs=epochs,
        seed=seed,
        output_dir=output_dir,
        resume=resume,
        profile=profile,
        num_devices=num_devices,
        # Before the first round: a run may be killed at any moment.
        on_claim=lambda: cli_data.remember(output_dir, options),
    )
    return run, data
