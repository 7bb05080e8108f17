"""New homes join a street that has learned: how many days until they save as much."""

import _pfdrl_runs as runs
import _pfdrl_streets as streets
import jax
import numpy as np

from jaxanon import energy

NEW = 0.3  # Of the homes.
DAYS = 14  # That newcomers are watched, or as many as teach.


def joining(place, config, hyper, seed) -> dict:
    """Days of new homes until they save 95 % of what they save in the end.

    The others learn all days that teach first; then new ones live the same days, with
    what the street gives them. Online: every slot counts before it has taught anything.
    """
    new = max(1, round(NEW * place.homes))
    old_homes, new_homes = _some(place, slice(new, None)), _some(place, slice(new))
    old, later = streets.street(old_homes), streets.street(new_homes)
    system = energy.pfdrl(config)
    key = jax.random.key(seed)
    state = system.init(key, old, **hyper)
    state, _ = energy.live(system, key, state, old, runs.SLOTS * place.train_days)
    joined = energy.join(system, key, state, old, later)
    alone = system.init(key, later, **hyper)
    days, found = min(DAYS, place.train_days), {}
    for name, begin in (("joined", joined), ("alone", alone)):
        _, info = energy.live(system, key, begin, later, runs.SLOTS * days)
        saved, standby = (
            np.asarray(info[each]).reshape(runs.SLOTS * days, new, -1).sum(axis=2)
            for each in ("saved_wh", "standby_wh")
        )
        last = min(3, days)
        reached = energy.days_to_reach(saved, standby, runs.SLOTS, last=last)
        daily = lambda x: x.reshape(days, runs.SLOTS, -1).sum(axis=(1, 2))
        share = daily(saved) / np.maximum(daily(standby), 1e-9)
        found[name] = {
            "days": [int(day) for day in reached.days],
            "final": [float(each) for each in reached.final],
            "by_day": [round(float(each), 5) for each in share],
        }
    return {"newcomers": new, **found}


def _some(place, which):
    kinds = None if place.kinds is None else place.kinds[which]
    return place._replace(power=place.power[which], kinds=kinds)
