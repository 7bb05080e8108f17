"""What a street's homes do on days that they have not seen, and homes that join."""

import functools
import json
import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__, energy, report
from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.core.run import Run
from jaxanon.energy import method, neighbourhood, scores, settings
from jaxanon.energy.homes import Homes, device_names, take
from jaxanon.energy.newcomers import LAST_DAYS
from jaxanon.energy.saving import DAY
from jaxanon.evaluation import protocol
from jaxanon.privacy import ledger
from jaxanon.training import run_folder

_JOIN, _ALONE, _LIFE = range(3)  # Streams of the evaluation's key.


@single
def evaluate(
    run: Run,
    homes: Homes,
    *,
    seed: int = 0,
    output_dir: str | os.PathLike | None = None,
    progress: Callable | None = None,
) -> dict:
    """Lets a street's homes act on their held-out days, with models as they are.

    Args:
      run: of ``pfdrl``, as ``train`` and ``open_run`` return it.
      homes: that it was trained on, those that join included.
      seed: of what homes that join draw.
      output_dir: folder for ``report.json``, figures and ``report.html``; None is
        ``run.folder``, and nothing is written if that is None.
      progress: called as ``progress(done, total, what)``.

    Returns:
      A dict fit for strict JSON: what ``energy.scores`` counts, ``training`` (rows of
      the run's days), ``untold`` (devices whose standby cannot be told from off),
      ``newcomers`` (None where nobody joins), ``example`` (a day of one home),
      ``hearing`` (how many others a device hears; None where nothing is broadcast),
      ``privacy`` (ε of what was broadcast, None without broadcasts or noise),
      ``method``, ``dataset``, ``seed``.

    Raises:
      ValueError: for other homes than those of the run.

    Example:
      >>> import jaxanon as ja
      >>> homes = energy.load_homes("simulated", homes=2, devices=1, days=1, held_out=1)
      >>> method = energy.pfdrl_method(
      ...     homes.spec, days=1, held_out=1, forecaster="lr", hidden=(4,), alpha=1,
      ...     slot_min=720)
      >>> run = ja.train(method, homes, progress=False)
      >>> sorted(evaluate(run, homes)["overall"])[:2]
      ['cents_fixed', 'cents_variable']
    """
    checks.seed(seed)
    check_homes(run, homes)
    chosen, street = run.method.config, run.method.prepare(homes)
    learning = take(homes, 0, len(homes.names) - chosen.joining)
    tell = progress or (lambda done, total, what: None)
    total = chosen.test_days + (1 if chosen.joining else 0)
    days = []
    for day in range(chosen.test_days):
        tell(day, total, f"held-out day {day + 1}")
        days.append(_acted(run, street, chosen.days + day))
    did = energy.AgentRecord._make(
        np.concatenate(x, axis=1) for x in zip(*days, strict=True)
    )
    newcomers = None
    if chosen.joining:
        tell(chosen.test_days, total, f"{chosen.joining} homes that join")
        newcomers = joined(run, homes, seed=seed)
    names = [
        f"{device} of {home}"
        for home, own in zip(learning.names, device_names(learning), strict=True)
        for device in own
    ]
    since = {"first_day": chosen.days}
    made = {
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
        "hearing": neighbourhood.count_neighbors(street)
        if chosen.sharing == "pfdrl"
        else None,
        # By the state, for rows of metrics may be lost.
        "privacy": _privacy(run),
        "example": scores.example(did, street, learning, **since),
    }
    made = json.loads(json.dumps(made, allow_nan=False))
    folder = run.folder if output_dir is None else output_dir
    if folder is not None:
        report.write_neighborhood(folder, made)
    return made


def check_homes(run: Run, homes: Homes) -> None:
    """ValueError unless a run was trained on these homes."""
    known = run.config["data"]["fingerprint"]
    found = run_folder.fingerprint(homes, run.method)
    if found != known:
        raise ValueError(
            f"these are not the homes that the run in {run.folder} was trained on: "
            f"their fingerprint is {found} and was {known}; restore the data, or say "
            "where it is now."
        )


def _privacy(run):
    days = int(run.state.round)
    told = ledger.privacy_report(run.method, run.state, days)
    if told is None:
        return None
    return told | {"rounds": {"done": days, "asked": run.method.config.days}}


def joined(run: Run, homes: Homes, *, seed: int = 0) -> dict:
    """How soon homes that join save as much as in the end, beside ones that are alone.

    They live through the days to learn from, as the others did before, and all of them
    hear each other. Their levels and scales are found with all those days, and known to
    them from the first one on.

    Args:
      run: whose setting ``joining`` is at least 1.
      homes: that it was trained on, those that join included.
      seed: of all that they draw.

    Returns:
      A dict fit for JSON: ``homes``; ``known``, how many of their ``devices`` had a day
      that a device of the street had as well, as those do that composed homes share;
      under ``"joined"`` and ``"alone"`` (who begin with nothing, and exchange
      with each other all the same) the shares ``saved`` and ``optimal`` of each day,
      and for each home what ``energy.days_to_reach`` finds of both: ``days`` (0:
      never) and ``final``, the saving of the last three days.

    Raises:
      ValueError: for a run whose settings have nobody join.
    """
    chosen = run.method.config
    if not chosen.joining:
        raise ValueError("joining must be >= 1 in the run's settings, got 0.")
    count = len(homes.names) - chosen.joining
    new = method.build_new_neighborhood(chosen, homes)
    system = energy.pfdrl(settings.build_config(chosen))
    state, street = run.state.system, run.method.prepare(homes)
    # Of a root of their own: of the same seed the street drew what it began with.
    keys = [jax.random.fold_in(protocol.root(seed), stream) for stream in range(3)]
    hyper = settings.build_hyper(chosen)
    begun = {
        "joined": energy.add_home(system, keys[_JOIN], state, street, new),
        "alone": system.init(keys[_ALONE], new, **hyper),
    }
    slots = DAY // chosen.slot_min
    found: dict = {"homes": list(homes.names[count:])}
    found["known"] = neighbourhood.count_known_devices(street, new)
    found["devices"] = int(new.present.sum())
    for name, state in begun.items():
        _, info = energy.simulate(system, keys[_LIFE], state, new, slots * chosen.days)
        of_home = lambda x: np.asarray(x, np.float64).reshape(
            len(x), chosen.joining, -1
        )
        sums = {key: of_home(x).sum(axis=2) for key, x in info.items()}
        found[name] = _sooner_or_later(sums, slots)
    return found


def _sooner_or_later(homes, slots):
    """What ``joined`` tells, of sums ``float[slots, homes]`` by name."""
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
    """What all agents do on a day, ``[agents, 1440]`` each."""
    slots = run.state.slots
    system = energy.pfdrl(settings.build_config(run.method.config))
    did = _of_slots(system, run.state.system, street, day * slots, slots)
    one = lambda x: np.moveaxis(np.asarray(x), 0, 1).reshape(x.shape[1], -1)
    return energy.AgentRecord._make(map(one, did))


@functools.partial(jax.jit, static_argnames=("system", "num_slots"))
def _of_slots(system, state, street, first, num_slots):
    act = lambda slot: system.act(state, street, slot)
    return jax.lax.map(act, first + jnp.arange(num_slots))
