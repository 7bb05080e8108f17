"""A run of a method on a neighborhood, by training day and on held-out days."""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import energy, metrics
from jaxanon.energy.saving import DAY
from pfdrl import homes

SLOTS = 24  # A day.
HOUR = DAY // SLOTS
ENOUGH = 0.95  # Fraction of the final saving and of the final optimal minutes.
MORE_OFF = 0.01  # Additional fraction of in-use minutes that may be off.
CHOOSING = 5  # The last 1/5 of the training days selects the learning rate.
STEPS = 20  # Number of steps of the accuracy distribution.
_system = functools.lru_cache(maxsize=2)(energy.pfdrl)  # Runs share programs.


class Run:
    """A training run, with one mutable state per shard of the neighborhood."""

    def __init__(self, config, neighborhood, seed, hyper, states=None):
        self.system = _system(config)
        start, self.key = jax.random.split(jax.random.key(seed))
        self.places, self.shards = energy.shard_neighborhood(
            neighborhood, os.cpu_count() or 1
        )
        begin = lambda own: self.system.init(jax.random.clone(start), own, **hyper)
        self.states = states or [begin(own) for own in self.shards]

    def train(self, days) -> dict:
        """Trains for some days; returns ``{name: float[slots, agents]}``."""
        lived = []
        for _ in range(days):  # One program for all numbers of days.
            self.states, infos = energy.simulate_sharded(
                self.system, self.key, self.states, self.shards, SLOTS
            )
            lived.append(self._joined(infos))
        return {name: np.concatenate([day[name] for day in lived]) for name in lived[0]}

    def test_days(self, first_day, days) -> dict:
        """Returns the same for test days, with loads and forecasts by minute."""
        tested = [
            _held_out(self.system, state, own, SLOTS * first_day, SLOTS * days)
            for state, own in zip(self.states, self.shards, strict=True)
        ]
        return self._joined(tested)

    def _joined(self, parts):
        total = sum(map(len, self.places))
        found = {}
        for name in parts[0]:
            slots, _, *minutes = parts[0][name].shape
            found[name] = np.zeros((slots, total, *minutes))
            for own, part in zip(self.places, parts, strict=True):
                found[name][:, own] = part[name]
        return found


@functools.partial(jax.jit, static_argnames=("system", "slots"))
def _held_out(system, state, neighborhood, first, slots):
    price = energy.variable_price(DAY)

    def one(slot):
        did = system.act(state, neighborhood, slot)
        found = energy.summarize_slot(did, neighborhood.present)
        each = energy.savings(did.load, did.mode, did.action)
        now = jax.lax.dynamic_slice(price, (HOUR * (slot % SLOTS),), (HOUR,))
        total = lambda x: jnp.where(neighborhood.present, jnp.sum(x, axis=1), 0)
        return found | {
            "load": did.load,
            "forecast": did.forecast,
            "held": did.persistence,
            "fixed_cents": total(energy.cents(each.saved_wh, energy.FIXED_CENTS)),
            "variable_cents": total(energy.cents(each.saved_wh, now[None])),
        }

    return jax.lax.map(one, first + jnp.arange(slots))


def follow(place, neighborhood, config, hyper, seed, marks) -> dict:
    """Returns the results of a run, with tests after each of ``marks``."""
    run, curve, lived, done = Run(config, neighborhood, seed, hyper), [], [], 0
    for mark in marks:
        lived.append(run.train(mark - done))
        tested = run.test_days(place.train_days, place.test_days)
        curve.append({"day": mark, **shares(tested), **forecasts(tested)})
        done = mark
    lived = {name: np.concatenate([part[name] for part in lived]) for name in lived[0]}
    by_home = lambda x: x.reshape(len(x), place.homes, -1).sum(axis=2)
    saved, standby = (by_home(tested[name]) for name in ("saved_wh", "standby_wh"))
    month = 30 / place.test_days / place.homes
    hours = lambda x: (
        x.reshape(-1, SLOTS, place.homes).sum(axis=(0, 2))
        / (place.test_days * place.homes)
    )
    days = lambda x: by_home(x).reshape(-1, SLOTS, place.homes).sum(axis=1)
    lived_saved, lived_standby = days(lived["saved_wh"]), days(lived["standby_wh"])
    return {
        **curve[-1],
        "held": forecasts(tested, "held"),
        **accuracies(tested),
        "curve": curve,
        "days": settled(curve),
        "by_day": _told(lived_saved.mean(axis=1)),
        "standby_by_day": _told(lived_standby.mean(axis=1)),
        "by_hour": _told(hours(saved)),
        "standby_by_hour": _told(hours(standby)),
        "by_home": shares_of_homes(saved, standby),
        "fixed_cents": float(tested["fixed_cents"].sum() * month),
        "variable_cents": float(tested["variable_cents"].sum() * month),
    }


def shares_of_homes(saved, standby) -> list[float | None]:
    """Returns the fraction that each home saves; None without standby.

    Example:
      >>> shares_of_homes(np.array([[1.0, 0.0]]), np.array([[4.0, 0.0]]))
      [0.25, None]
    """
    total = standby.sum(axis=0)
    told = _told(energy.safe_divide(saved.sum(axis=0), total))
    return [share if whole else None for share, whole in zip(told, total, strict=True)]


def shares(tested) -> dict:
    """Returns fractions of standby saved, use disturbed, and optimal minutes."""
    total = {name: one.sum() for name, one in tested.items()}
    part = lambda a, b: float(energy.safe_divide(total[a], total[b]))
    return {
        "saved": part("saved_wh", "standby_wh"),
        "switched_off": part("switched_off", "in_use"),
        "dimmed": part("dimmed", "in_use"),
        "optimal": part("optimal", "minutes"),
    }


def forecasts(tested, name="forecast") -> dict:
    """Returns accuracy, MAE, RMSE and MASE of forecasts or of persistence."""
    there = tested["minutes"].any(axis=0)
    loads, told, held = (tested[which][:, there] for which in ("load", name, "held"))
    errors, scales = (np.abs(x - loads).sum(axis=(0, 2)) for x in (told, held))
    some = scales > 0
    each = errors[some] / scales[some] if some.any() else np.ones(1)
    return {
        **metrics.forecast_errors(loads, told, held),
        "mase_median": float(np.median(each)),  # Median of the MASE per device.
    }


def accuracies(tested) -> dict:
    """Returns the distribution of hourly accuracies, and accuracies by hour."""
    there = tested["minutes"].any(axis=0)
    pairs = [tested[name][:, there] for name in ("load", "forecast")]
    each = [
        metrics.load_accuracy(*minutes)
        for slot in zip(*pairs, strict=True)
        for minutes in zip(*slot, strict=True)
    ]
    hours = [
        metrics.load_accuracy(*(x[hour::SLOTS] for x in pairs)) for hour in range(SLOTS)
    ]
    at_most = [np.mean(np.array(each) <= k / STEPS + 1e-9) for k in range(STEPS + 1)]
    return {"accuracy_cdf": _told(at_most), "accuracy_by_hour": _told(hours)}


def marks(train_days) -> list[int]:
    """Returns the days after which a run is tested: daily at first, then fewer."""
    early = [day for day in (1, 2, 3, 4, 5, 6, 8, 10) if day < train_days]
    return [*early, *range(12, train_days, 4), train_days]


def _told(values):
    return [round(float(value), 5) for value in values]


def settled(curve, careful=False, last=None):
    """Returns the first day after which a run stays near its final saving; 0 if never.

    Switching off everything also maximizes the saving. With ``careful``, the fraction
    of optimal minutes must be near its final value too. In addition, the fraction of
    in-use minutes switched off may exceed its final value by at most one hundredth.

    Args:
      curve: marks by day, ``{"day", "saved"}`` and, for ``careful``, ``"optimal"`` and
        ``"switched_off"``. ``saved`` is None on a day without standby.
      careful: whether to apply these conditions.
      last: mark with the final values; default: the last mark.

    Example:
      >>> mark = lambda d, s, off: {
      ...     "day": d, "saved": s, "switched_off": off, "optimal": 1 - off}
      >>> curve = [mark(1, 0.99, 0.4), mark(2, 0.5, 0.0), mark(4, 0.97, 0.0)]
      >>> settled(curve[::2]), settled(curve[::2], careful=True), settled(curve)
      (1, 4, 4)
    """
    last = last or curve[-1]
    low = [i for i, mark in enumerate(curve) if not _enough(mark, last, careful)]
    after = low[-1] + 1 if low else 0
    return curve[after]["day"] if after < len(curve) else 0


def _enough(mark, last, careful):
    reached = lambda name: mark[name] >= ENOUGH * last[name]
    if mark["saved"] is not None and not reached("saved"):
        return False
    if not careful:
        return True
    return reached("optimal") and mark["switched_off"] <= (
        last["switched_off"] + MORE_OFF
    )


def chosen(place, config, hyper, seed, rates) -> dict:
    """Selects the learning rate by MASE on the last fifth of the training days.

    Half of the homes train on the days before, with each learning rate. Held-out days
    are not used. The run then trains on all days with the best learning rate.
    """
    half = homes.some(place, slice(-(-place.homes // 2)))
    last = max(1, round(place.train_days / CHOOSING))
    neighborhood, found = homes.neighborhood(half), {}
    for rate in rates:
        run = Run(
            config, neighborhood, seed, hyper | {"forecaster_learning_rate": rate}
        )
        run.train(place.train_days - last)
        tested = run.test_days(place.train_days - last, last)
        found[rate] = forecasts(tested)["mase"]
    best = min(found, key=found.get)
    return {
        "forecaster_learning_rate": best,
        "mase_by_rate": {f"{r:g}": x for r, x in found.items()},
    }
