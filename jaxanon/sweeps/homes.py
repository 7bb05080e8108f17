"""A grid of settings of a street times seeds: α, β and γ are arrays of one program."""

import dataclasses
import os
import pathlib
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import report
from jaxanon.core import registry
from jaxanon.core.method import Method
from jaxanon.core.programs import single
from jaxanon.datasets.sources import naming
from jaxanon.energy import homes as energy_homes
from jaxanon.energy import method as energy_method
from jaxanon.energy import newcomers, saving
from jaxanon.energy import settings as of_settings
from jaxanon.energy import system as energy_system
from jaxanon.energy.newcomers import LAST_DAYS
from jaxanon.energy.saving import DAY
from jaxanon.evaluation.summary import aggregate
from jaxanon.kernels.checks import did_you_mean, whole
from jaxanon.sweeps import folder, space
from jaxanon.training import checkpoint, run_folder, trainer

_ARRAYS = frozenset(of_settings.HYPER)

_OF_DATA = ("homes", "devices", "kinds", "days", "held_out", "joining", "homes_seed")


class Member(NamedTuple):
    """One of a search's runs."""

    settings: dict  # its values of the grid
    seed: int
    scores: dict[str, float | None]  # on held-out days, and the day that reached them


@single
def search(
    settings: of_settings.PFDRLSettings,
    homes: energy_homes.Homes,
    *,
    grid: dict[str, list],
    seeds: int = 1,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    chunk: int | None = None,
    progress=None,
) -> tuple[list[Member], list[dict]]:
    """Trains a street with every combination of ``grid`` and every seed, and tests it.

    ``alpha``, ``beta_hours``, ``gamma_hours`` and the rates are arrays of one program;
    for every value of other settings there is one more.

    Args:
      settings: ``PFDRLSettings``, where the grid has nothing else.
      homes: as ``train`` takes them.
      grid: name of a setting -> its values; not of those that choose the homes.
      seeds: how many; 0, 1, ...
      out: folder for ``sweep.json``, written after every call of the program, and
        ``sweep.png``; None keeps nothing.
      resume: go on with the search in ``out``.
      chunk: members of a call, side by side; None is one on a CPU, else all of a
        program.
      progress: called as ``progress(done, total, what)``.

    Returns:
      ``Member`` each, seeds running fastest; and a row for each setting of the grid:
      ``settings``, ``seeds`` and ``scores``, with ``{"mean", "std"}`` of each:
      ``saved_share``, ``switched_off_share`` and ``optimal_share`` of held-out days,
      and ``reached_day``, what ``energy.days_to_reach`` finds of all homes together:
      None of a member that never does, means being over the others, and ``"never"``
      how many do not. Of a member whose networks are no longer finite all are None, and
      a warning names its settings.

    Raises:
      ValueError: for a name that is no setting or chooses the homes, an axis without
        values, seeds or a chunk below 1, a value that the settings refuse; for another
        search in ``out``.
      TypeError: for seeds or a chunk that is no whole number.
      FileExistsError: if ``out`` holds a search and ``resume`` is False.

    Example:
      >>> from jaxanon import energy
      >>> homes = energy.load_homes("simulated", homes=2, devices=1, days=1, held_out=1)
      >>> small = energy.PFDRLSettings(
      ...     days=1, held_out=1, forecaster="lr", hidden=(4,), alpha=1, slot_min=720)
      >>> members, rows = search(small, homes, grid={"alpha": [0, 2]})
      >>> [row["settings"] for row in rows]
      [{'alpha': 0}, {'alpha': 2}]
    """
    whole("seeds", seeds, least=1)
    if chunk is not None:
        whole("chunk", chunk, least=1)
    cells = _cells(settings, grid)
    built = _built(settings, homes)
    members = [(cell, seed) for cell in cells for seed in range(seeds)]
    described = {
        "method": "pfdrl",
        "settings": dataclasses.asdict(settings),
        "grid": {name: list(values) for name, values in grid.items()},
        "seeds": int(seeds),
        "fingerprint": run_folder.fingerprint(homes, built),
    }
    with checkpoint.lock_folder(out):
        found: dict[int, dict] = {}
        if out is not None:
            folder.claim(out, described, resume=resume)
            rows = folder.read(out).get("members", [])
            with naming(f"{pathlib.Path(out) / folder.FILE}, its members"):
                found = {row["index"]: row["scores"] for row in rows}
        tell = progress or (lambda done, total, what: None)
        for static, indices in space.alike(members, _ARRAYS):
            left = [index for index in indices if index not in found]
            if not left:
                continue
            own = dataclasses.replace(settings, **static)
            street = _built(own, homes).prepare(homes)
            system = energy_system.pfdrl(of_settings.config_of(own))
            at_once = _at_once(chunk, len(left))
            for first in range(0, len(left), at_once):
                some = left[first : first + at_once]
                tell(len(found), len(members), _words(members[some[0]]))
                told = _scores(own, system, street, [members[i] for i in some], at_once)
                found |= dict(zip(some, told, strict=True))
                if out is not None:
                    _write(out, described, members, found, ())
        done = [Member(*member, found[i]) for i, member in enumerate(members)]
        _warn(done)
        summary = [
            {
                "settings": cell,
                "seeds": int(seeds),
                "scores": _over([one.scores for one in done if one.settings == cell]),
            }
            for cell in cells
        ]
        if out is not None:
            _write(out, described, members, found, summary)
            report.write_search(out, summary)
        return done, summary


def settings_of(method, homes, given: dict):
    """The settings that ``sweep`` is to begin with.

    Args:
      method: a name, a builder, or a ``Method`` that is built already.
      homes: ``Homes``.
      given: settings, of a method that is not built.

    Raises:
      ValueError: for another method than one of homes; for settings of a ``Method``.
    """
    if isinstance(method, str):
        method, given = registry.build(method, homes.spec, **given), {}
    elif not isinstance(method, Method):
        method, given = method(homes.spec, **given), {}
    if given or method.own_data is None:
        raise ValueError(
            f"homes are learned from by pfdrl, with settings that stand in a built "
            f"method; got {method.name} and {sorted(given)}."
        )
    return method.config


def _built(settings, homes):
    """The method of settings, for homes that it can learn from."""
    method = registry.rebuild(energy_method.NAME, homes.spec, settings)
    trainer.check_data(method, homes)
    return method


def _cells(settings, grid):
    """The points of the grid, all of which the settings allow."""
    names = {field.name for field in dataclasses.fields(settings)}
    for name, values in grid.items():
        if name not in names:
            raise ValueError(
                f"grid names {name!r}, which is no setting; there are {sorted(names)}."
                f"{did_you_mean(name, names)}"
            )
        if name in _OF_DATA:
            raise ValueError(
                f"grid names {name!r}, which chooses the homes; sweep each by itself."
            )
        space.check_values(name, values)
    cells = space.points(grid)
    for cell in cells:
        dataclasses.replace(settings, **cell)  # Checks itself.
    return cells


def _at_once(chunk, count):
    on_cpu = jax.default_backend() == "cpu"
    return min(count, chunk or (1 if on_cpu else count))


def _scores(settings, system, street, members, at_once):
    """What becomes of some members; fewer than at once are filled up with the last."""
    filled = members + [members[-1]] * (at_once - len(members))
    each = [of_settings.hyper_of(settings) | _arrays(cell) for cell, _ in filled]
    hyper = {name: jnp.array([float(one[name]) for one in each]) for name in each[0]}
    learned, tested, finite = energy_system.lives(
        system,
        jnp.array([seed for _, seed in filled], jnp.int32),
        hyper,
        street,
        slots_a_day=DAY // settings.slot_min,
        days=settings.days,
        held_out=settings.held_out,
        side_by_side=at_once > 1,
    )
    names = "saved_wh", "standby_wh", "optimal", "minutes"
    saved, standby, optimal, minutes = (
        np.asarray(learned[name], np.float64).T for name in names
    )
    reached = newcomers.days_to_reach(
        *(saved, standby, 1),
        optimal=optimal,
        minutes=minutes,
        last=min(LAST_DAYS, settings.days),
    )
    total = {name: np.asarray(x, np.float64).sum(axis=1) for name, x in tested.items()}
    share = lambda part, whole: saving.share_of(total[part], total[whole]).tolist()
    columns = {
        "saved_share": share("saved_wh", "standby_wh"),
        "switched_off_share": share("switched_off", "in_use"),
        "optimal_share": share("optimal", "minutes"),
        "reached_day": [int(day) or None for day in reached.days],
    }
    # A network that is no longer finite switches off whatever there is.
    return [
        {
            name: column[place] if finite[place] else None
            for name, column in columns.items()
        }
        for place in range(len(members))
    ]


def _warn(members):
    broken = [one for one in members if set(one.scores.values()) == {None}]
    if broken:
        first = f"{broken[0].settings}, seed {broken[0].seed}"
        warnings.warn(
            f"{len(broken)} of {len(members)} members have no scores, for a network is "
            f"no longer finite ({first}); lower fit_rate or learning_rate.",
            UserWarning,
            stacklevel=4,
        )


def _over(scores):
    """Means over seeds; of the day that was reached over those that reached it."""
    days = [one["reached_day"] for one in scores]
    nothing = {"mean": None, "std": None}
    found = aggregate(scores)
    found = {name: nothing if x is None else x for name, x in found.items()}
    return found | {"reached_day": found["reached_day"] | {"never": days.count(None)}}


def _arrays(cell):
    return {name: value for name, value in cell.items() if name in _ARRAYS}


def _words(member):
    cell, seed = member
    return ", ".join([*(f"{k}={v}" for k, v in cell.items()), f"seed {seed}"])


def _write(out, described, members, found, summary):
    rows = [
        {
            "index": i,
            "settings": members[i][0],
            "seed": members[i][1],
            "scores": found[i],
        }
        for i in sorted(found)
    ]
    folder.write(out, described | {"members": rows, "summary": list(summary)})
