"""Savings, forecast errors and disturbances by day, hour, month, home and kind."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxanon import metrics
from jaxanon.energy.agent import AgentRecord
from jaxanon.energy.homes import Homes
from jaxanon.energy.mdp import optimal_actions
from jaxanon.energy.modes import ON
from jaxanon.energy.neighborhood import Neighborhood
from jaxanon.energy.saving import (
    DAY,
    FIXED_CENTS,
    safe_divide,
    saving_per_day,
    saving_per_hour,
    savings,
    variable_price,
)
from jaxanon.energy.saving import cents as worth

_MONTH = 30  # Days per month without a calendar.


def scores(
    did: AgentRecord,
    neighborhood: Neighborhood,
    homes: Homes,
    *,
    first_day: int = 0,
    cents: float = FIXED_CENTS,
) -> dict:
    """Summarizes the actions of agents on whole days.

    Args:
      did: records of all agents of ``homes``, ``[agents, days * 1440]``, from midnight.
      neighborhood: neighborhood of these homes.
      homes: homes of the neighborhood; their dates define months. Without dates a month
        has 30 days.
      first_day: index of the first day of ``did``.
      cents: price per kWh at the fixed tariff; the other tariff is ``variable_price``.

    Returns:
      A dict for strict JSON. ``overall``, ``per_day``, ``per_hour`` (of the day),
      ``per_month``, ``per_home`` and ``per_kind`` have sums and fractions; a fraction
      with denominator 0 is None. ``forecast`` has the errors of ``"model"`` and
      ``"persistence"``.

    Raises:
      ValueError: if ``did`` does not consist of whole days.

    Example:
      On each of two days, one of two standby minutes at 60 W is switched off.

      >>> from jaxanon.energy import Homes, build_neighborhood
      >>> watts = np.tile(np.r_[[60.0] * 2, [0.0] * 1438], 2).astype(np.float32)[None]
      >>> kinds = np.zeros((1, 1), np.int32)
      >>> homes = Homes(watts[..., None], kinds, ("tv",), ("home 1",), None)
      >>> mode, action = (watts > 0).astype(int), np.tile(np.arange(1440) % 2, 2)[None]
      >>> did = AgentRecord(watts, watts, watts, mode, action)
      >>> report = scores(did, build_neighborhood(homes.power), homes, cents=10.0)
      >>> report["overall"]["saved_share"], report["per_day"][1]["saved_kwh"]
      (0.5, 0.001)
    """
    did = AgentRecord(*map(jnp.asarray, did))
    each = savings(did.load, did.mode, did.action)._asdict()
    each["optimal"] = (did.action == optimal_actions(did.mode)).astype(jnp.float32)
    each["minutes"] = jnp.ones_like(did.load)
    price = variable_price(did.load.shape[-1])[None]
    each["cents_variable"] = worth(each["saved_wh"], price)
    present = np.asarray(neighborhood.present)
    # Sums over a day or hour have few terms, so float32 suffices; others use float64.
    hosts = lambda x: np.where(present[:, None], np.asarray(x, np.float64), 0)
    days = {name: hosts(saving_per_day(x)) for name, x in each.items()}
    hours = {name: hosts(saving_per_hour(x)) for name, x in each.items()}
    row = lambda sums, pick: _row({n: float(pick(x)) for n, x in sums.items()}, cents)
    every = lambda sums, axis_size: [
        row(sums, lambda x, place=place: x[:, place].sum())
        for place in range(axis_size)
    ]
    num_days = next(iter(days.values())).shape[1]
    home = np.repeat(np.arange(len(homes.names)), homes.kinds.shape[1])
    kind = homes.kinds.reshape(-1)
    months = _months(homes, first_day, num_days)
    named = lambda key, name, chosen: {key: name} | row(days, lambda x: x[chosen].sum())
    return {
        "overall": row(days, np.sum),
        "per_day": [
            {"day": first_day + 1 + number} | one
            for number, one in enumerate(every(days, num_days))
        ],
        "per_hour": [{"hour": h} | one for h, one in enumerate(every(hours, 24))],
        "per_month": [
            named("month", month, months[home] == month) for month in np.unique(months)
        ],
        "per_home": [
            named("home", name, home == number)
            for number, name in enumerate(homes.names)
        ],
        "per_kind": [
            {"devices": int((present & (kind == number)).sum())}
            | named("kind", homes.kind_names[number], kind == number)
            | {"mase": _mase(did, present & (kind == number))}
            for number in np.unique(kind[present]).tolist()
        ],
        "forecast": _forecast(did, present),
    }


def find_unknown_standby(neighborhood: Neighborhood, names: Sequence[str]) -> list[str]:
    """Returns the devices whose standby cannot be distinguished from off.

    Such a device counts as on whenever it draws power.

    Args:
      neighborhood: ``Neighborhood``.
      names: names of all agents.

    Example:
      >>> from jaxanon.energy import build_neighborhood as build
      >>> find_unknown_standby(build(np.full((1, 60, 1), 9.0)), ["router of home 1"])
      ['router of home 1']
    """
    unknown = neighborhood.present & (neighborhood.levels.standby == 0)
    return [name for name, one in zip(names, np.asarray(unknown), strict=True) if one]


def example(
    did: AgentRecord, neighborhood: Neighborhood, homes: Homes, first_day: int = 0
) -> dict:
    """Returns one day of one home by minute, for a figure.

    It selects the home with the median saving among homes with a device, and the day on
    which its devices are in use for the most minutes.

    Args:
      did, neighborhood, homes, first_day: the arguments of ``scores``.

    Returns:
      A dict for JSON: ``home``, ``day``, ``date`` (or None) and ``devices``, each with
      name, levels, and lists of 1440 values of ``load``, ``forecast`` (W), ``mode`` and
      ``action``.

    Example:
      >>> from jaxanon.energy import Homes, build_neighborhood
      >>> watts = np.ones((1, 1440), np.float32)
      >>> homes = Homes(watts[..., None], np.zeros((1, 1)), ("tv",), ("home 1",), None)
      >>> mode = np.ones((1, 1440), int)
      >>> day = example(
      ...     AgentRecord(watts, watts, watts, mode, mode),
      ...     build_neighborhood(homes.power),
      ...     homes._replace(kinds=homes.kinds.astype(int)),
      ... )
      >>> day["home"], day["devices"][0]["name"], len(day["devices"][0]["load"])
      ('home 1', 'tv', 1440)
    """
    saving = savings(*map(jnp.asarray, (did.load, did.mode, did.action)))
    present = np.asarray(neighborhood.present)
    count = len(homes.names)
    of_home = lambda x: np.where(present, np.asarray(x).sum(axis=1), 0).reshape(
        count, -1
    )
    saved, standby = (
        of_home(x).sum(axis=1) for x in (saving.saved_wh, saving.standby_wh)
    )
    order = np.argsort(safe_divide(saved, standby), kind="stable")
    with_device = np.any(present.reshape(count, -1), axis=1)
    order = order[with_device[order]]
    if not len(order):
        raise ValueError("homes must have at least one device, got none.")
    chosen = int(order[(len(order) - 1) // 2])
    agents = chosen * homes.kinds.shape[1] + np.arange(homes.kinds.shape[1])
    agents = agents[present[agents]]
    in_use = (np.asarray(did.mode)[agents] == ON).reshape(len(agents), -1, DAY)
    day = int(in_use.sum(axis=(0, 2)).argmax())
    minutes = slice(day * DAY, (day + 1) * DAY)
    date = None if homes.dates is None else str(homes.dates[chosen, first_day + day])
    watts = lambda x, agent: [round(float(v), 2) for v in np.asarray(x)[agent, minutes]]
    whole = lambda x, agent: np.asarray(x)[agent, minutes].astype(int).tolist()
    return {
        "home": homes.names[chosen],
        "day": first_day + day + 1,
        "date": date,
        "devices": [
            {
                "name": homes.kind_names[homes.kinds.reshape(-1)[agent]],
                "standby_w": round(float(neighborhood.levels.standby[agent]), 3),
                "on_w": round(float(neighborhood.levels.on[agent]), 3),
                "load": watts(did.load, agent),
                "forecast": watts(did.forecast, agent),
                "mode": whole(did.mode, agent),
                "action": whole(did.action, agent),
            }
            for agent in agents
        ],
    }


def _row(total, cents):
    def share(part, whole):
        return float(safe_divide(total[part], total[whole])) if total[whole] else None

    kilo = {name: total[f"{name}_wh"] / 1000 for name in ("standby", "saved")}
    return {
        "standby_kwh": round(kilo["standby"], 9),
        "saved_kwh": round(kilo["saved"], 9),
        "saved_share": share("saved_wh", "standby_wh"),
        "cents_fixed": kilo["saved"] * cents,
        "cents_variable": total["cents_variable"],
        "in_use_minutes": int(total["in_use"]),
        "switched_off_minutes": int(total["switched_off"]),
        "switched_off_share": share("switched_off", "in_use"),
        "dimmed_share": share("dimmed", "in_use"),
        "optimal_share": share("optimal", "minutes"),
    }


def _months(homes, first_day, num_days):
    """Returns the month of each day, ``str[homes, days]``."""
    days = slice(first_day, first_day + num_days)
    if homes.dates is not None:
        return homes.dates[:, days].astype("datetime64[M]").astype(str)
    number = 1 + np.arange(first_day, first_day + num_days) // _MONTH
    names = np.array([f"month {one}" for one in number])
    return np.broadcast_to(names, (len(homes.names), num_days))


def _forecast(did, present):
    if not present.any():
        return None
    truth, model, held = (np.asarray(x)[present] for x in did[:3])
    errors = {
        "model": metrics.forecast_errors(truth, model, held),
        "persistence": metrics.forecast_errors(truth, held, held),
    }
    return {
        name: {k: v if math.isfinite(v) else None for k, v in one.items()}
        for name, one in errors.items()
    }


def _mase(did, agents):
    truth, model, held = (np.asarray(x)[agents] for x in did[:3])
    mase = metrics.mase(truth, model, held)
    return mase if math.isfinite(mase) else None
