"""``jaxanon train pfdrl`` and what is done with its runs: homes in place of windows."""

import json
import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, data, files

METHOD = "pfdrl"

DATASET = Annotated[str, tyro.conf.arg(metavar="NAME_OR_NPZ")]


def command():
    """The function behind ``jaxanon train pfdrl``."""
    from jaxanon.energy import PFDRLSettings

    def train(
        method: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD")],
        /,
        *,
        out: Annotated[pathlib.Path, tyro.conf.arg(metavar="DIR")] = pathlib.Path(
            "runs/pfdrl"
        ),
        dataset: DATASET = "tracebase",
        source: arguments.Path = None,
        seed: int = 0,
        resume: bool = False,
        settings: Annotated[PFDRLSettings, tyro.conf.arg(name="")],
    ) -> None:
        """Homes learn to switch standby off, sharing what they learn without a server.

        Every device of every home forecasts what it will take, and chooses minute by
        minute between off, standby and on. A run that was interrupted, or killed, goes
        on by the same command with --resume and ends in the same bits.

        Args:
          method: pfdrl; comes first
          out: folder for settings, checkpoints and metrics
          dataset: tracebase (homes composed of metered devices), households,
            pecan_street, simulated, or an .npz file of readings: arrays home, device,
            minute (since 1970) and power (W)
          source: folder or file of the original data, where it is not found alone
          seed: of everything random but the homes
          resume: go on with the run in --out
        """
        from jaxanon.energy import training

        files.refuse_folder(out, resume)
        homes = load(dataset, source, settings)
        tell(homes, settings)
        run = training.train(
            settings,
            homes,
            seed=seed,
            out=out,
            resume=resume,
            # Before the first day: a run may be killed at any moment.
            on_claim=lambda: remember(out, dataset, source),
        )
        if run.history:  # Else its file was lost.
            last = run.history[-1]["losses"]
            console.say(
                f"On the last of {settings.days} days homes saved "
                f"{100 * last['saved_share']:.1f} % of standby energy; "
                f"{100 * last['switched_off_share']:.1f} % of minutes in use were "
                "switched off."
            )
        console.say(f"The run is in {out}. Next: jaxanon evaluate {out}")

    return train


def load(dataset, source, settings):
    """The homes of a run: those that learn, and after them those that join."""
    from jaxanon import energy
    from jaxanon.energy.loading import COMPOSED, HOMES

    count = settings.homes
    if count is None and dataset in COMPOSED:
        count = HOMES
    kinds = settings.kinds
    return energy.load_homes(
        dataset,
        homes=None if count is None else count + settings.joining,
        devices=settings.devices,
        days=settings.days,
        held_out=settings.held_out,
        kinds=None if kinds is None else data.names(kinds, "kinds"),
        seed=settings.homes_seed,
        source=source,
    )


def tell(homes, settings) -> None:
    """How many homes there are, and of what."""
    joining = f", {settings.joining} of which join later" if settings.joining else ""
    console.say(
        f"{len(homes.names)} homes{joining}, {homes.kinds.shape[1]} devices each; "
        f"{settings.days} days to learn from, {settings.held_out} held out."
    )


def remember(folder: pathlib.Path, dataset: str, source: str | None) -> None:
    """Writes into a run's folder where its homes came from."""
    from jaxanon.datasets import writing

    absolute = lambda path: str(pathlib.Path(path).absolute())
    values = {
        "dataset": absolute(dataset) if dataset.endswith(".npz") else dataset,
        "source": None if source is None else absolute(source),
    }
    writing.write(folder / data.RECORD, json.dumps(values, indent=2) + "\n")


def is_street(folder: pathlib.Path) -> bool:
    """Whether a folder holds a run of ``pfdrl``, damaged or not."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return config["method"] == METHOD
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return False


def evaluate(folder, *, seed, dataset, source, overwrite) -> None:
    """``jaxanon evaluate`` of a street: its held-out days, and homes that join."""
    from jaxanon.datasets import writing
    from jaxanon.energy import method as energy_method
    from jaxanon.evaluation import energy as evaluation_energy
    from jaxanon.report.energy import sentences

    writing.refuse_unwritable(folder / "report.json", overwrite)
    settings, _ = energy_method.settings_in(folder)
    known = {"dataset": "tracebase", "source": None}
    record = folder / data.RECORD
    if record.exists():
        known |= data.recorded(record)
    known = data.with_given(known, record, dataset=dataset, source=source)
    run = energy_method.open_run(
        folder, load(known["dataset"], known["source"], settings)
    )
    with console.pieces() as progress:
        report = evaluation_energy.evaluate(run, seed=seed, progress=progress)
    for sentence in sentences(report):
        console.say(sentence)
    console.say(f"The report: {(folder / 'report.html').absolute()}")
