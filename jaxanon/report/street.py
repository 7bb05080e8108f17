"""The page of a street: what it saved, whom it disturbed, how well it forecast."""

import json
from html import escape

from jaxanon.report import page, words
from jaxanon.report.figures import Picture
from jaxanon.report.learned import guaranteed
from jaxanon.report.tables import table

_HEADINGS = {
    "saved": "Energy saved",
    "day": "A day of one home",
    "training": "Learning",
    "newcomers": "New homes",
}

_HEAD = (
    *("standby kWh", "saved kWh", "saved %", "cents, fixed", "cents, variable"),
    *("in use, min", "switched off in use %", "put to standby %", "best action %"),
)

AHEAD = 60  # Minutes of a forecast.

_NAMED = 3  # Devices that a sentence names.


def sentences(report: dict) -> list[str]:
    """What the report comes to, in words.

    Args:
      report: of ``jaxanon.evaluation.evaluate``.
    """
    total, data = report["overall"], report["dataset"]
    late = words.unfinished(report["method"].get("unfinished"), "days")
    days = f"{len(report['per_day'])} held-out day{'s' * (len(report['per_day']) > 1)}"
    told = [f"On {days} no device of {data['homes']} homes stood by."]
    if total["saved_share"] is not None:
        told = [
            f"On {days} {data['homes']} homes saved "
            f"{100 * total['saved_share']:.1f} % of what {data['devices']} devices "
            f"took in standby: {total['saved_kwh']:.2f} of {total['standby_kwh']:.2f} "
            f"kWh, {total['cents_fixed']:.1f} cents at "
            f"{report['method']['settings']['cents']:g} cents a kWh, "
            f"{total['cents_variable']:.1f} at the variable tariff."
        ]
    if total["in_use_minutes"]:
        told.append(
            f"Of minutes in use {100 * total['switched_off_share']:.2f} % were "
            f"switched off and {100 * total['dimmed_share']:.2f} % put to standby; "
            f"{100 * total['optimal_share']:.2f} % of all actions were the best that "
            "there are."
        )
    told += [*_forecast(report), *_untold(report), *_hearing(report)]
    told += _newcomers(report)
    return late + told + _private(report)


def _forecast(report):
    if report["forecast"] is None:
        return []
    model, held = report["forecast"]["model"], report["forecast"]["persistence"]
    mase = "no" if model["mase"] is None else f"{model['mase']:.3f}"
    settings = report["method"]["settings"]
    kind, minutes = settings["forecaster"], ahead(settings)
    return [
        f"Forecasts of the next {minutes} minutes ({kind}) are "
        f"{100 * model['accuracy']:.1f} % accurate and miss by {model['mae']:.2f} W "
        f"(RMSE {model['rmse']:.1f} W); persistence is {100 * held['accuracy']:.1f} % "
        f"accurate and misses by {held['mae']:.2f} W ({held['rmse']:.1f} W): MASE "
        f"{mase}."
    ]


def ahead(settings: dict) -> int:
    """Minutes that are forecast at a time: a slot's, an hour's at most.

    Args:
      settings: of ``PFDRLSettings``, as a dict.

    Example:
      >>> ahead({"slot_min": 20}), ahead({"slot_min": 720})
      (20, 60)
    """
    return min(settings["slot_min"], AHEAD)


def _untold(report):
    names = report["untold"]
    if not names:
        return []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [
        f"Standby cannot be told from off of {len(names)} devices, which count as on "
        f"whenever they take something: {', '.join(names[:_NAMED])}{more}."
    ]


def _newcomers(report):
    found = report["newcomers"]
    if found is None:
        return []

    def told(name):
        days, final = found[name]["days"], found[name]["final"]
        if not any(final):
            return "never, for nothing was saved"
        reached = [day for day in days if day]
        never = len(days) - len(reached)
        most = f"by day {max(reached)}" if reached else "never"
        return most + (f" ({never} of {len(days)} never)" if never and reached else "")

    count = len(found["homes"])
    said = [
        f"{count} home{'s' * (count > 1)} joined. 95 % of the final saving, with 95 % "
        f"as many of the best actions, is reached for good {told('joined')} with the "
        f"street's layers, and {told('alone')} with nothing. Their levels and scales "
        "were found with all their days to learn from."
    ]
    if found["known"]:
        said.append(
            f"{found['known']} of the {found['devices']} devices that joined are known "
            "to the street: composed homes share devices, and a day of theirs is one "
            "that a device of the street had as well."
        )
    return said


def _hearing(report):
    found = report["hearing"]
    if found is None or report["method"]["settings"]["graph"] == "full":
        return []
    return [
        f"A device hears {found['mean']:.1f} others of its kind on average; "
        f"{found['nobody']} hear nobody."
    ]


def _private(report):
    found, sharing = report["privacy"], report["method"]["settings"]["sharing"]
    if found is not None:
        return guaranteed(found)
    if sharing == "local":
        return ["Nothing leaves a home."]
    what = "whole load" if sharing == "cloud" else "models, without noise"
    return [f"Homes show others their {what}: no guarantee."]


def render(report: dict, pictures: dict[str, Picture]) -> str:
    """The page: sentences, figures, tables.

    Args:
      report: of ``jaxanon.evaluation.evaluate``.
      pictures: of ``jaxanon.report.street_figures.draw``.
    """
    first, *rest = sentences(report)
    lines = [f"<strong>{escape(first)}</strong>", *map(escape, rest)]
    parts = [
        '<section class="headline">'
        + "".join(f"<p>{line}</p>" for line in lines)
        + "</section>"
    ]
    for name, heading in _HEADINGS.items():
        if name in pictures:
            parts.append(page.section(heading, page.figure(name, pictures[name])))
    for key, name, heading in (
        ("per_day", "day", "By day"),
        ("per_month", "month", "By month"),
        ("per_home", "home", "By home"),
        ("per_kind", "kind", "By kind of device"),
    ):
        parts.append(page.section(heading, _table(report[key], name)))
    chosen = escape(json.dumps(report["method"]["settings"], indent=1))
    inside = f"<details><summary>as JSON</summary><pre>{chosen}</pre></details>"
    parts.append(page.section("Settings", inside))
    data = report["dataset"]
    sharing = report["method"]["settings"]["sharing"]
    title = f"{sharing}: standby switched off in {data['homes']} homes"
    kicker = (
        f"jaxanon evaluation · {len(report['training'])} days learned from · "
        f"{len(report['per_day'])} held out · seed {report['seed']}"
    )
    return page.document(title, kicker, "\n".join(parts))


def _table(rows, name):
    with_mase = rows and "mase" in rows[0]
    head = (name, *_HEAD, *(["MASE"] if with_mase else []))
    return table(head, [_row(row, name, with_mase) for row in rows])


def _row(row, name, with_mase):
    share = lambda key: "" if row[key] is None else f"{100 * row[key]:.2f}"
    cells = [
        str(row[name]),
        f"{row['standby_kwh']:.3f}",
        f"{row['saved_kwh']:.3f}",
        (share("saved_share"), "key"),
        f"{row['cents_fixed']:.2f}",
        f"{row['cents_variable']:.2f}",
        f"{row['in_use_minutes']:,}",
        share("switched_off_share"),
        share("dimmed_share"),
        share("optimal_share"),
    ]
    if with_mase:
        cells.append("" if row["mase"] is None else f"{row['mase']:.3f}")
    return cells
