"""Sweeps of PFDRL over settings and seeds, with hyper-parameters as traced arrays."""

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

_OF_DATA = ("homes", "devices", "kinds", "days", "test_days", "joining", "homes_seed")


class Member(NamedTuple):
    """Settings and scores of one run of a sweep."""

    settings: dict  # values of the grid
    seed: int
    scores: dict[str, float | None]  # on held-out days; see ``search``


@single
def search(
    settings: of_settings.PFDRLSettings,
    homes: energy_homes.Homes,
    *,
    grid: dict[str, list],
    num_seeds: int = 1,
    output_dir: str | os.PathLike | None = None,
    resume: bool = False,
    chunk_size: int | None = None,
    progress=None,
) -> tuple[list[Member], list[dict]]:
    """Trains and tests homes with every combination of ``grid`` and every seed.

    ``alpha``, ``beta_hours``, ``gamma_hours`` and the rates are arrays of one program.
    Each value of another setting has a separate program.

    Args:
      settings: settings outside the grid.
      homes: homes, as for ``train``.
      grid: dict from names of settings to lists of values; settings that select homes
        are not allowed.
      num_seeds: number of seeds; they are 0, 1, ...
      output_dir: folder for ``sweep.json``, written after every call of the program,
        and ``sweep.png``; None writes no files.
      resume: whether to continue the sweep in ``output_dir``.
      chunk_size: number of members trained side by side; None is one on a CPU, else all
        members of a program.
      progress: function called as ``progress(done, total, what)``.

    Returns:
      A list of ``Member``, where seeds vary fastest, and a list with a row per setting
      of the grid. A row has ``settings``, ``num_seeds`` and ``scores``, with ``{"mean",
      "std"}`` for each score:

      - ``saved_share``, ``switched_off_share`` and ``optimal_share`` on held-out days;
      - ``reached_day``, the result of ``energy.days_to_reach`` for all homes together;
        None for a member that never reaches it. Its mean is over the other members, and
        ``"never"`` counts these members.

      All scores are None for a member whose networks are not finite, with a warning.

    Raises:
      ValueError: for an unknown setting, a setting that selects homes, an empty axis,
        ``num_seeds`` or ``chunk_size`` below 1, an invalid value, or another sweep in
        ``output_dir``.
      TypeError: if ``num_seeds`` or ``chunk_size`` is not an integer.
      FileExistsError: if ``output_dir`` holds a sweep and ``resume`` is False.

    Example:
      >>> from jaxanon import energy
      >>> days = {"days": 1, "test_days": 1}
      >>> homes = energy.load_homes("simulated", homes=2, devices=1, **days)
      >>> small = energy.PFDRLSettings(
      ...     **days, forecaster="lr", hidden_sizes=(4,), alpha=1, slot_min=720)
      >>> members, rows = search(small, homes, grid={"alpha": [0, 2]})
      >>> [row["settings"] for row in rows]
      [{'alpha': 0}, {'alpha': 2}]
    """
    whole("num_seeds", num_seeds, least=1)
    if chunk_size is not None:
        whole("chunk_size", chunk_size, least=1)
    cells = _cells(settings, grid)
    built = _build(settings, homes)
    members = [(cell, seed) for cell in cells for seed in range(num_seeds)]
    described = {
        "method": "pfdrl",
        "settings": dataclasses.asdict(settings),
        "grid": {name: list(values) for name, values in grid.items()},
        "seeds": int(num_seeds),
        "fingerprint": run_folder.fingerprint(homes, built),
    }
    with checkpoint.lock_folder(output_dir):
        scores: dict[int, dict] = {}
        if output_dir is not None:
            folder.claim(output_dir, described, resume=resume)
            rows = folder.read(output_dir).get("members", [])
            with naming(f"{pathlib.Path(output_dir) / folder.FILE}, its members"):
                scores = {row["index"]: row["scores"] for row in rows}
        show = progress or (lambda done, total, what: None)
        for static, indices in space.group_by_static(members, _ARRAYS):
            left = [index for index in indices if index not in scores]
            if not left:
                continue
            group_settings = dataclasses.replace(settings, **static)
            prepared = _build(group_settings, homes).prepare(homes)
            system = energy_system.pfdrl(of_settings.build_config(group_settings))
            size = _chunk_size(chunk_size, len(left))
            for first in range(0, len(left), size):
                some = left[first : first + size]
                chunk_members = [members[i] for i in some]
                show(len(scores), len(members), _label(chunk_members[0]))
                rows = _scores(group_settings, system, prepared, chunk_members, size)
                scores |= dict(zip(some, rows, strict=True))
                if output_dir is not None:
                    _write(output_dir, described, members, scores, ())
        done = [Member(*member, scores[i]) for i, member in enumerate(members)]
        _warn(done)
        summary = [
            {
                "settings": cell,
                "seeds": int(num_seeds),
                "scores": _mean([one.scores for one in done if one.settings == cell]),
            }
            for cell in cells
        ]
        if output_dir is not None:
            _write(output_dir, described, members, scores, summary)
            report.write_search(output_dir, summary)
        return done, summary


def settings_of(method, homes, settings: dict):
    """Returns the base settings of a sweep of homes.

    Args:
      method: a name, a builder, or a built ``Method``.
      homes: homes to train on.
      settings: settings of the builder; must be empty for a built ``Method``.

    Raises:
      ValueError: if the method does not train on homes, or for settings of a built
        ``Method``.
    """
    if isinstance(method, str):
        method, settings = registry.build(method, homes.spec, **settings), {}
    elif not isinstance(method, Method):
        method, settings = method(homes.spec, **settings), {}
    if settings or method.own_data is None:
        raise ValueError(
            "method must be pfdrl for homes, without further settings if it is built, "
            f"got {method.name} and settings {sorted(settings)}."
        )
    return method.config


def _build(settings, homes):
    """Returns the method of settings and checks that homes fit it."""
    method = registry.rebuild(energy_method.NAME, homes.spec, settings)
    trainer.check_data(method, homes)
    return method


def _cells(settings, grid):
    """Returns the checked points of the grid."""
    names = {field.name for field in dataclasses.fields(settings)}
    for name, values in grid.items():
        if name not in names:
            raise ValueError(
                f"grid must name settings among {sorted(names)}, got {name!r}."
                f"{did_you_mean(name, names)}"
            )
        if name in _OF_DATA:
            raise ValueError(
                f"grid must not name settings that select homes, got {name!r}; run a "
                "separate sweep for each value."
            )
        space.check_values(name, values)
    cells = space.grid_points(grid)
    for cell in cells:
        dataclasses.replace(settings, **cell)  # Raises for invalid values.
    return cells


def _chunk_size(chunk_size, count):
    on_cpu = jax.default_backend() == "cpu"
    return min(count, chunk_size or (1 if on_cpu else count))


def _scores(settings, system, prepared, members, size):
    """Scores of members, which are padded to ``size`` with the last one."""
    filled = members + [members[-1]] * (size - len(members))
    each = [of_settings.build_hyper(settings) | _arrays(cell) for cell, _ in filled]
    hyper = {name: jnp.array([float(one[name]) for one in each]) for name in each[0]}
    learned, tested, finite = energy_system.simulate_batch(
        system,
        jnp.array([seed for _, seed in filled], jnp.int32),
        hyper,
        prepared,
        slots_a_day=DAY // settings.slot_min,
        days=settings.days,
        test_days=settings.test_days,
        vectorize=size > 1,
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
    fraction = lambda part, of: saving.safe_divide(total[part], total[of]).tolist()
    columns = {
        "saved_share": fraction("saved_wh", "standby_wh"),
        "switched_off_share": fraction("switched_off", "in_use"),
        "optimal_share": fraction("optimal", "minutes"),
        "reached_day": [int(day) or None for day in reached.days],
    }
    # A network that is not finite switches off all devices, so its scores are invalid.
    return [
        {name: column[i] if finite[i] else None for name, column in columns.items()}
        for i in range(len(members))
    ]


def _warn(members):
    broken = [one for one in members if set(one.scores.values()) == {None}]
    if broken:
        first = f"{broken[0].settings}, seed {broken[0].seed}"
        warnings.warn(
            f"{len(broken)} of {len(members)} members have no scores, because a "
            f"network is not finite ({first}); reduce the learning rates.",
            UserWarning,
            stacklevel=4,
        )


def _mean(scores):
    """Mean scores over seeds; ``reached_day`` is over the members that reached it."""
    days = [one["reached_day"] for one in scores]
    missing = {"mean": None, "std": None}
    result = aggregate(scores)
    result = {name: missing if x is None else x for name, x in result.items()}
    return result | {"reached_day": result["reached_day"] | {"never": days.count(None)}}


def _arrays(cell):
    return {name: value for name, value in cell.items() if name in _ARRAYS}


def _label(member):
    cell, seed = member
    return ", ".join([*(f"{k}={v}" for k, v in cell.items()), f"seed {seed}"])


def _write(output_dir, described, members, scores, summary):
    rows = [
        {
            "index": i,
            "settings": members[i][0],
            "seed": members[i][1],
            "scores": scores[i],
        }
        for i in sorted(scores)
    ]
    folder.write(output_dir, described | {"members": rows, "summary": list(summary)})
