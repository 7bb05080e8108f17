"""A street that has learned: what ``train`` returns, and its folder gives back."""

import dataclasses
import functools
import json
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__
from jaxanon.datasets.sources import naming
from jaxanon.energy import homes as energy_homes
from jaxanon.energy import neighbourhood
from jaxanon.energy import settings as energy_settings
from jaxanon.energy import system as energy_system
from jaxanon.energy.homes import device_names, take
from jaxanon.energy.saving import DAY
from jaxanon.training import checkpoint, metrics_log, run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class StreetRun:
    """A street that has learned. A class, as ``Run`` is, so that it has a name.

    ``history`` has a row for each day: ``round`` is its number; ``config`` is what
    ``config.json`` holds; ``folder`` is None for a run that was not saved.
    """

    settings: energy_settings.PFDRLSettings
    homes: energy_homes.Homes  # Those that learn, and those that join.
    system: energy_system.System
    state: energy_system.SystemState
    street: neighbourhood.Street  # Of those that learn.
    folder: pathlib.Path | None
    history: list[dict]
    config: dict

    @property
    def days(self) -> int:
        """Days that the street has learned from."""
        return int(self.state.slot) * self.settings.slot_min // DAY

    @property
    def unfinished(self) -> dict | None:
        """Days done and asked for, of a training that was interrupted; else None."""
        asked = self.settings.days
        return None if self.days >= asked else {"done": self.days, "asked": asked}


class Kept(NamedTuple):
    """What a checkpoint holds."""

    round: jax.Array  # int32[]; days done
    leaves: list[jax.Array]  # of the state; Orbax takes none of no size


def begin(settings, homes, seed: int):
    """The system, its street, its first state, and the run's key.

    Args:
      settings: ``PFDRLSettings``.
      homes: of ``train``, those that join included.
      seed: a Python int.

    Raises:
      ValueError: as ``train``, for homes that join too.
    """
    days = homes.power.shape[1] // DAY
    wanted = settings.days + settings.held_out
    if days != wanted:
        raise ValueError(
            f"homes must have {wanted} days, {settings.days} to learn from and "
            f"{settings.held_out} held out, got {days}."
        )
    learning = len(homes.names) - settings.joining
    if learning < 1:
        raise ValueError(
            f"joining must leave a home that learns, got {settings.joining} of "
            f"{len(homes.names)} homes."
        )
    system = energy_system.pfdrl(energy_settings.config_of(settings))
    street = energy_settings.street_of(settings, take(homes, 0, learning))
    if settings.joining:
        newcomers(settings, homes)  # Refused now, and not after days of learning.
    init_key, run_key = jax.random.split(jax.random.key(int(seed)))
    # Not traced, so that they are checked.
    hyper = energy_settings.hyper_of(settings)
    first = jax.jit(functools.partial(system.init, **hyper))
    return system, street, first(init_key, street), run_key


def newcomers(settings, homes: energy_homes.Homes) -> neighbourhood.Street:
    """The street of the homes that join, who all hear each other.

    Args:
      settings: ``PFDRLSettings``, whose ``joining`` is at least 1.
      homes: of ``train``.

    Raises:
      ValueError: as ``energy.street``, naming home and device.

    Example:
      >>> homes = energy.load_homes("simulated", homes=3, devices=2, days=1, held_out=1)
      >>> chosen = energy.PFDRLSettings(days=1, held_out=1, joining=1, graph="ring")
      >>> newcomers(chosen, homes).power.shape
      (2, 2880)
    """
    count = len(homes.names)
    new = take(homes, count - settings.joining, count)
    # There may be too few of them for the street's graph.
    return energy_settings.street_of(settings, new, everybody=True)


def open_run(folder, homes: energy_homes.Homes) -> StreetRun:
    """The run that ``folder`` holds, at its last checkpoint, with its homes.

    Args:
      folder: of ``train``.
      homes: that it was trained on.

    Raises:
      FileNotFoundError: if there is no run in ``folder``, or it has no checkpoint yet.
      ValueError: if the run is damaged or no street's, or of an architecture that this
        version of jaxanon does not build of its settings; for other homes.
    """
    folder = pathlib.Path(folder)
    settings, config = settings_in(folder)
    known = config["data"]["fingerprint"]
    if (found := fingerprint(homes)) != known:
        raise ValueError(
            f"these are not the homes that the run in {folder} was trained on: their "
            f"fingerprint is {found} and was {known}; restore the data, or say where "
            "it is now."
        )
    system, street, like, _ = begin(settings, homes, config["seed"])
    found = checkpoint.restored(folder, config, like, kept(0, like))
    return StreetRun(
        settings=settings,
        homes=homes,
        system=system,
        state=state_of(found, like),
        street=street,
        folder=folder,
        history=metrics_log.read(folder, int(found.round)),
        config=config,
    )


def settings_in(folder) -> tuple[energy_settings.PFDRLSettings, dict]:
    """The settings that ``config.json`` of a street's run tells, and all it says.

    Args:
      folder: of the run.

    Raises:
      FileNotFoundError: if there is no run in ``folder``.
      ValueError: if the file is damaged, or the run is one of something else.
    """
    config = run_folder.read_config(folder)
    if config["method"] != run_folder.STREET:
        raise ValueError(
            f"the run in {folder} is one of {config['method']}, and no street's; open "
            "it by jaxanon.open_run."
        )
    with naming(str(pathlib.Path(folder) / "config.json")):
        told = config["settings"]
        config["data"]["fingerprint"]
        settings = energy_settings.PFDRLSettings(
            **told | {"hidden": tuple(told["hidden"])}
        )
    return settings, config


def fingerprint(homes: energy_homes.Homes) -> str:
    """A digest of all minutes of all devices, to tell whether data changed.

    Args:
      homes: ``Homes``.

    Example:
      >>> homes = energy.load_homes("simulated", homes=1, days=1, held_out=1)
      >>> fingerprint(homes) == fingerprint(homes._replace(power=homes.power + 1))
      False
    """
    return checkpoint.fingerprint(
        [homes.power.astype(np.float32), homes.kinds.astype(np.int32)]
    )


def describe(settings, homes, state, seed: int) -> dict:
    """What ``config.json`` says of a run, all of which makes it this run.

    Args:
      settings, homes, seed: of ``begin``.
      state: its first state.
    """
    config = {
        "version": __version__,
        "method": run_folder.STREET,
        "settings": dataclasses.asdict(settings),
        "seed": int(seed),
        "epochs": settings.days,
        "data": {"fingerprint": fingerprint(homes)},
        "spec": {
            "homes": homes.names,
            "devices": [" + ".join(own) for own in device_names(homes)],
        },
        "architecture": checkpoint.architecture(state),
    }
    return json.loads(json.dumps(config))


def kept(day, state) -> Kept:
    """What a checkpoint holds of a state.

    Args:
      day: days done.
      state: ``SystemState``.
    """
    leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size]
    return Kept(jnp.asarray(day, jnp.int32), leaves)


def state_of(kept: Kept, like):
    """The state with what was kept, and what has no size as it is.

    Args:
      kept: ``Kept``.
      like: a state of the same run.
    """
    leaves, structure = jax.tree.flatten(like)
    found = iter(kept.leaves)
    return structure.unflatten([next(found) if x.size else x for x in leaves])
