"""Trains a street of homes: a day per call, resumable, watched."""

import contextlib
import math
import os
import pathlib
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.energy import guarantee, method, neighbourhood, placement, saving
from jaxanon.energy import homes as energy_homes
from jaxanon.energy import settings as energy_settings
from jaxanon.energy import system as energy_system
from jaxanon.energy.method import StreetRun
from jaxanon.energy.saving import DAY
from jaxanon.energy.searching import finite
from jaxanon.training import checkpoint, metrics_log, run_folder
from jaxanon.training import progress as training_progress
from jaxanon.training.trainer import CHECKPOINT_S

RATE = "device_minutes" + training_progress.RATE


@single
def train(
    settings: energy_settings.PFDRLSettings,
    homes: energy_homes.Homes,
    *,
    seed: int = 0,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    progress: bool = True,
    checkpoint_s: float = CHECKPOINT_S,
    on_claim: Callable[[], None] | None = None,
) -> StreetRun:
    """Lets a street's homes learn through their days, a slot at a time.

    On a CPU kinds of device, which never hear of each other, are dealt out to its
    cores. A run that was killed at any moment and resumed ends in the same bits as one
    that was not, on as many cores.

    Args:
      settings: ``PFDRLSettings``.
      homes: of ``energy.load_homes``, with ``settings.days + settings.held_out`` days;
        the last ``settings.joining`` of them do not learn.
      seed: of everything random, a Python int.
      out, resume, progress, checkpoint_s, on_claim: as ``jaxanon.train`` takes them.

    Returns:
      ``StreetRun``.

    Raises:
      FileExistsError: if ``out`` holds a run and ``resume`` is False, or if another
        process writes it.
      ValueError: for homes that are too few or of another number of days; naming home
        and device, for what meters cannot have said; if the run in ``out`` is another
        one, or its checkpoints are damaged.
      TypeError: for a seed that is no whole number.
      FloatingPointError: if a network is no longer finite; the last checkpoint before
        it stays.

    Example:
      >>> homes = energy.load_homes("simulated", homes=2, devices=1, days=1, held_out=1)
      >>> settings = energy.PFDRLSettings(
      ...     days=1, held_out=1, forecaster="lr", hidden=(4,), alpha=1, slot_min=720)
      >>> run = train(settings, homes, progress=False)
      >>> sorted(run.history[0]["losses"])[:3]
      ['forecast_error_w', 'held_error_w', 'optimal_share']
    """
    checks.seed(seed)
    system, street, state, run_key = method.begin(settings, homes, seed)
    config = method.describe(settings, homes, state, seed)
    history, saved = [], None
    with contextlib.ExitStack() as held:
        held.enter_context(checkpoint.alone(out))
        if out is not None:
            run_folder.claim(out, config, resume=resume)
            if on_claim is not None:
                on_claim()
            saved = held.enter_context(contextlib.closing(checkpoint.Checkpoints(out)))
            found = saved.restore(method.kept(0, state))
            done = 0
            if found is not None:
                done, state = int(found.round), method.state_of(found, state)
            history = saved.go_on(done)
        devices = homes.kinds.shape[1]
        loop = _Loop(
            settings, devices, system, street, run_key, out, checkpoint_s, saved
        )
        state = _days(loop, state, history, progress)
    return StreetRun(
        settings=settings,
        homes=homes,
        system=system,
        state=state,
        street=street,
        folder=None if out is None else pathlib.Path(out),
        history=history,
        config=config,
    )


class _Loop(NamedTuple):
    """What stays the same from day to day."""

    settings: energy_settings.PFDRLSettings
    devices: int  # Of a home.
    system: energy_system.System
    street: neighbourhood.Street
    key: jax.Array
    out: str | os.PathLike | None
    checkpoint_s: float
    saved: checkpoint.Checkpoints | None


def _days(loop, state, history, show):
    slots = DAY // loop.settings.slot_min
    total, done = loop.settings.days, int(state.slot) // slots
    work, last_save = len(loop.street.power) * DAY, time.monotonic()
    places, streets = placement.apart(loop.street, _cores())
    states = placement.deal_state(loop.system, state, places, streets)
    whole = lambda: placement.collect_state(state, states, places)
    options = {"show": show, "epochs": total, "unit": "day"}
    with training_progress.rounds(total, done, **options) as tell:
        while done < total:
            start = time.monotonic()
            states, infos = placement.live_apart(
                loop.system, loop.key, states, streets, slots
            )
            losses = _told(infos, loop.settings.slot_min)
            seconds = time.monotonic() - start
            done += 1
            _refuse_broken(losses, states, done)
            row = {"round": done, "epoch": float(done), "losses": losses}
            row |= {"seconds": seconds, RATE: work / seconds}
            history.append(row)
            if loop.saved is not None:
                metrics_log.append(loop.out, row)
                late = time.monotonic() - last_save >= loop.checkpoint_s
                if done == total or late:
                    # First, so that no checkpoint has spent more than it says.
                    ledger = loop.out, loop.settings, loop.devices
                    guarantee.write(*ledger, days=done)
                    loop.saved.save(method.kept(done, whole()))
                    last_save = time.monotonic()
            tell(row)
    return whole()


def _cores():
    """Streets to deal kinds of device out to: small products keep one core busy."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = getattr(os, "sched_getaffinity", None)  # Not on every system.
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _told(infos, slot_min) -> dict[str, float]:
    """A day of all devices, as agents did before each slot taught them."""
    sums = lambda name: (np.asarray(i[name]).sum(dtype=np.float64) for i in infos)
    total = {name: float(sum(sums(name))) for name in infos[0]}
    share = lambda part, whole: float(saving.share_of(total[part], total[whole]))
    return {
        "saved_share": share("saved_wh", "standby_wh"),
        "switched_off_share": share("switched_off", "in_use"),
        "optimal_share": share("optimal", "minutes"),
        "forecast_error_w": share("forecast_error", "minutes"),
        "held_error_w": share("held_error", "minutes"),
        "reward": slot_min * share("reward", "minutes"),
        "standby_kwh": total["standby_wh"] / 1000,
        "saved_kwh": total["saved_wh"] / 1000,
    }


_finite = jax.jit(finite)


def _refuse_broken(losses, states, day):
    fine = all(map(math.isfinite, losses.values()))
    if not (fine and all(bool(_finite(state)) for state in states)):
        raise FloatingPointError(
            f"a network is no longer finite on day {day}; lower fit_rate or "
            "learning_rate. The last checkpoint before that day stays."
        )
