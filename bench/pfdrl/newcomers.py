"""New homes in a trained neighborhood: days until they save as much."""

import jax
import numpy as np

from jaxanon import energy
from pfdrl import homes as bench_homes
from pfdrl import runs

NEW = 0.3  # Fraction of new homes.
DAYS = 14  # Maximum number of days of new homes.
LAST = 3  # Number of last days that define the final saving.


def joining(place, config, hyper, seed) -> dict:
    """Returns the days until new homes save 95 % of their final saving.

    The other homes train on all training days first. The new ones then run the same
    days, starting from the layers of the neighborhood or from scratch, with the same
    random numbers. Each slot is scored before training on it.
    """
    new = max(1, round(NEW * place.homes))
    old_homes = bench_homes.some(place, slice(new, None))
    old = bench_homes.neighborhood(old_homes)
    later = bench_homes.neighborhood(bench_homes.some(place, slice(new)))
    system = energy.pfdrl(config)
    begin_key, life_key, fresh_key, new_key = jax.random.split(jax.random.key(seed), 4)
    state = system.init(begin_key, old, **hyper)
    slots = runs.SLOTS * place.train_days
    state, _ = energy.simulate(system, life_key, state, old, slots)
    joined = energy.add_home(system, fresh_key, state, old, later)
    alone = system.init(jax.random.clone(fresh_key), later, **hyper)
    days, found = min(DAYS, place.train_days), {}
    for name, begin in (("joined", joined), ("alone", alone)):
        own_key = jax.random.clone(new_key)
        _, info = energy.simulate(system, own_key, begin, later, runs.SLOTS * days)
        found[name] = told(info, days, new)
    return {"newcomers": new, **found}


def told(info, days, homes) -> dict:
    """Returns the days of each new home, from the ``info`` of ``simulate``."""
    each = {
        name: np.asarray(x).reshape(days, runs.SLOTS, homes, -1).sum(axis=(1, 3))
        for name, x in info.items()
    }
    last = min(LAST, days)
    saved, standby = each["saved_wh"], each["standby_wh"]
    reached = energy.days_to_reach(saved, standby, 1, last=last)
    share = saved.sum(axis=1) / np.maximum(standby.sum(axis=1), 1e-9)
    of = lambda which, home: runs.shares({n: x[which, home] for n, x in each.items()})
    marks = [
        [{"day": day + 1, **of(day, home)} for day in range(days)]
        for home in range(homes)
    ]
    for home, own in enumerate(marks):
        for mark, some in zip(own, standby[:, home], strict=True):
            mark["saved"] = mark["saved"] if some else None
    return {
        "days": [int(day) for day in reached.days],
        "final": [float(each) for each in reached.final],
        "by_day": [round(float(each), 5) for each in share],
        "curves": marks,
        "last": [of(slice(-last, None), home) for home in range(homes)],
    }
