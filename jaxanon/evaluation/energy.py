"""Evaluation of PFDRL: homes on held-out days, and homes that join."""

import functools
import json
import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__, energy, report
from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.core.run import Run
from jaxanon.energy import method, neighborhood, scores, settings
from jaxanon.energy.homes import Homes, device_names, take
from jaxanon.energy.newcomers import LAST_DAYS
from jaxanon.energy.saving import DAY
from jaxanon.evaluation import protocol
from jaxanon.privacy import ledger
from jaxanon.training import run_folder

_JOIN, _ALONE, _LIFE = range(3)  # Numbers that the evaluation's key is folded with.


@single
def evaluate(
    run: Run,
    homes: Homes,
    *,
    seed: int = 0,
    output_dir: str | os.PathLike | None = None,
    progress: Callable | None = None,
) -> dict:
    """Evaluates the agents of all homes on held-out days, without further training.

    Args:
      run: run of ``pfdrl``, from ``train`` or ``open_run``.
      homes: homes of the run. They include those that join.
      seed: random seed of homes that join.
      output_dir: folder for ``report.json``, figures and ``report.html``; None is
        ``run.folder``, and without a folder nothing is written.
      progress: callback ``progress(done, total, what)``.

    Returns:
      A dict for strict JSON with the results of ``energy.scores``. ``training`` has
      rows of the run's days and ``example`` a day of one home. ``untold`` lists devices
      with indistinguishable standby and off. Unless homes join, ``newcomers`` is None.
      Without broadcasts, ``hearing`` (senders per device) is None. Without broadcasts
      or noise, ``privacy`` (ε of the broadcasts) is None.

    Raises:
      ValueError: if ``homes`` are not those of the run.

    Example:
      >>> import jaxanon as ja
      >>> homes = energy.load_homes(
      ...     "simulated", homes=2, devices=1, days=1, test_days=1)
      >>> method = energy.pfdrl_method(
      ...     homes.spec, days=1, test_days=1, forecaster="lr",
      ...     hidden_sizes=(4,), alpha=1,
      ...     slot_min=720)
      >>> run = ja.train(method, homes, progress=False)
      >>> sorted(evaluate(run, homes)["overall"])[:2]
      ['cents_fixed', 'cents_variable']
    """
    began = time.monotonic()
    checks.seed(seed)
    check_homes(run, homes)
    chosen, street = run.method.config, run.method.prepare(homes)
    learning = take(homes, 0, len(homes.names) - chosen.joining)
    step = progress or (lambda done, total, what: None)
    total = chosen.test_days + (1 if chosen.joining else 0)
    days = []
    for day in range(chosen.test_days):
        step(day, total, f"held-out day {day + 1}")
        days.append(_acted(run, street, chosen.days + day))
    did = energy.AgentRecord._make(
        np.concatenate(x, axis=1) for x in zip(*days, strict=True)
    )
    newcomers = None
    if chosen.joining:
        step(chosen.test_days, total, f"{chosen.joining} homes that join")
        newcomers = joined(run, homes, seed=seed)
    names = [
        f"{device} of {home}"
        for home, own in zip(learning.names, device_names(learning), strict=True)
        for device in own
    ]
    since = {"first_day": chosen.days}
    result = {
        "method": {
            "name": run.method.name,
            "settings": run.config["settings"],
            "unfinished": run.unfinished,
        },
        "version": __version__,
        "dataset": run.config["data"]
        | {"homes": len(learning.names), "devices": int(street.present.sum())},
        "seed": seed,
        **scores.scores(did, street, learning, cents=chosen.cents, **since),
        "training": [row["losses"] | {"day": row["round"]} for row in run.history],
        "untold": scores.find_unknown_standby(street, names),
        "newcomers": newcomers,
        "hearing": neighborhood.count_neighbors(street)
        if chosen.sharing == "pfdrl"
        else None,
        # From the state, because rows of metrics may be lost.
        "privacy": _privacy(run),
        "example": scores.example(did, street, learning, **since),
    }
    result = json.loads(json.dumps(result, allow_nan=False))
    folder = run.folder if output_dir is None else output_dir
    if folder is not None:
        footer = report.footer(time.monotonic() - began)
        report.write_neighborhood(folder, result, footer)
    return result


def check_homes(run: Run, homes: Homes) -> None:
    """Raises ValueError unless a run was trained on these homes."""
    known = run.config["data"]["fingerprint"]
    found = run_folder.fingerprint(homes, run.method)
    if found != known:
        raise ValueError(
            f"homes must be those that the run in {run.folder} was trained on "
            f"(fingerprint {known}), got fingerprint {found}; restore the data or name "
            "its new location."
        )


def _privacy(run):
    days = int(run.state.round)
    guarantee = ledger.privacy_report(run.method, run.state, days)
    if guarantee is None:
        return None
    return guarantee | {"rounds": {"done": days, "asked": run.method.config.days}}


def joined(run: Run, homes: Homes, *, seed: int = 0) -> dict:
    """Measures how soon homes that join reach their final saving.

    New homes go through the training days and exchange models with each other. The
    comparison is with homes that start without the shared layers. Levels and scales
    come from all of those days and are known from the first.

    Args:
      run: run whose setting ``joining`` is at least 1.
      homes: homes that the run was trained on, including those that join.
      seed: random seed of the new homes.

    Returns:
      A dict for JSON: ``homes``; ``devices``, and how many of them are ``known`` from
      other homes; ``joined`` and ``alone`` (without the shared layers). Each of these
      has the fractions ``saved`` and ``optimal`` of each day. For each home, they have
      ``days`` (0: never) and ``final`` (last three days) of ``energy.days_to_reach``.

    Raises:
      ValueError: if no home joins in the run's settings.
    """
    chosen = run.method.config
    if not chosen.joining:
        raise ValueError(
            "joining must be >= 1 in the run's settings, got 0; train with --joining 1."
        )
    count = len(homes.names) - chosen.joining
    new = method.build_new_neighborhood(chosen, homes)
    system = energy.pfdrl(settings.build_config(chosen))
    state, street = run.state.system, run.method.prepare(homes)
    # The evaluation's root: training used the keys of the plain seed.
    keys = [jax.random.fold_in(protocol.root(seed), stream) for stream in range(3)]
    hyper = settings.build_hyper(chosen)
    states = {
        "joined": energy.add_home(system, keys[_JOIN], state, street, new),
        "alone": system.init(keys[_ALONE], new, **hyper),
    }
    slots = DAY // chosen.slot_min
    result: dict = {"homes": list(homes.names[count:])}
    result["known"] = neighborhood.count_known_devices(street, new)
    result["devices"] = int(new.present.sum())
    for name, state in states.items():
        _, info = energy.simulate(system, keys[_LIFE], state, new, slots * chosen.days)
        of_home = lambda x: np.asarray(x, np.float64).reshape(
            len(x), chosen.joining, -1
        )
        sums = {key: of_home(x).sum(axis=2) for key, x in info.items()}
        result[name] = _time_to_reach(sums, slots)
    return result


def _time_to_reach(homes, slots):
    """Results of ``joined`` from sums ``float[slots, homes]`` by name."""
    days = len(homes["minutes"]) // slots
    saved = homes["saved_wh"], homes["standby_wh"]
    optimal = homes["optimal"], homes["minutes"]
    reached = energy.days_to_reach(
        *saved,
        slots,
        optimal=optimal[0],
        minutes=optimal[1],
        last=min(LAST_DAYS, days),
    )
    daily = lambda x: x.sum(axis=1).reshape(days, slots).sum(axis=1)
    share = lambda pair: energy.safe_divide(*map(daily, pair)).tolist()
    return {
        "saved": share(saved),
        "optimal": share(optimal),
        "days": reached.days.tolist(),
        "final": reached.final.tolist(),
    }


def _acted(run, street, day):
    """Actions of all agents on a day, ``[agents, 1440]`` each."""
    slots = run.state.slots
    system = energy.pfdrl(settings.build_config(run.method.config))
    did = _of_slots(system, run.state.system, street, day * slots, slots)
    one = lambda x: np.moveaxis(np.asarray(x), 0, 1).reshape(x.shape[1], -1)
    return energy.AgentRecord._make(map(one, did))


@functools.partial(jax.jit, static_argnames=("system", "num_slots"))
def _of_slots(system, state, street, first, num_slots):
    act = lambda slot: system.act(state, street, slot)
    return jax.lax.map(act, first + jnp.arange(num_slots))
