"""The comparison with PrivateHub as tables, the chapter's figures beside."""

import statistics

import _hub_jobs as work
import _hub_published as published
from _hub_words import PAPER, TITLES
from _markdown import table
from _pfdrl_tables import deviation, kept, mean, speed_table

__all__ = ["PAPER", "TITLES"]  # A page finds its words beside its tables.


def every(rows) -> dict[str, str]:
    """Tables in Markdown by question; none where there are no rows."""
    makers = {
        "methods": methods_table,
        "switched": switched_table,
        "forecasts": forecast_table,
        "missing": missing_table,
        "new_home": new_home_table,
        "quality": quality_table,
        "steps": steps_table,
        "motionsense": motionsense_table,
        "speed": speed_table,
    }
    found = {}
    asked = [row for row in rows if row["question"] == "methods" and row["at"] == 0]
    if asked:
        found["table 4.2"] = chapter_table(asked)
    for question, maker in makers.items():
        own = [row for row in rows if row["question"] == question]
        if own:
            found[question] = maker(own)
    return found


def grouped(rows) -> list[list[dict]]:
    """Rows of each place, choice and name: its seeds; methods in the table's order."""
    found = {}
    for row in sorted(rows, key=order):
        at = row["place"], row["choice"], row["name"]
        found.setdefault(at, []).append(row)
    return list(found.values())


def secret(row):
    """What a row hides, in words: of a choice of several classes some places lack some.

    Example:
      >>> secret({"choice": "bath and leaving", "hidden": ["leave"]})
      'leave'
      >>> secret({"choice": "two or three", "hidden": ["2", "3"]})
      '2, 3 people'
    """
    hidden = row.get("hidden") or [row["choice"]]
    people = " people" if all(name.isdigit() for name in hidden) else ""
    return ", ".join(hidden) + people


def order(row):
    """Where a row stands: as places and choices came, then by method or number."""
    names = [*work.names(), *work.OF_FORECASTS, work.ALONE, work.BEFORE]
    at = names.index(row["name"]) if row["name"] in names else 0
    number = row["x"] if isinstance(row["x"], int) else 0
    return row["place"], row["at"], number, at, row["name"]


def percent(own, name, digits=1):
    """Mean over seeds, ± their deviation where there are more."""
    values = [100 * row[name] for row in own if row.get(name) is not None]
    if not values:
        return ""
    more = f" ± {deviation(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{more}"


def of_private(own, measure):
    """Of every class to hide, in percent."""
    told = []
    for name in own[0]["private"]:
        each = [{measure: row["private"][name][measure]} for row in own]
        told.append(percent(each, measure))
    return ", ".join(told)


def chapter_table(rows):
    """Table 4.2: a line for what is to be shown in a place, and each class to hide.

    Methods are columns in the chapter's order, and what it has not comes last. Of a
    class to hide it is the share of its windows that are recognised. Majority: the
    share of the largest of the classes to show.
    """
    names = [*published.METHODS, *(n for n in work.names() if n in work.WAYS)]
    groups = {}
    for own in grouped(rows):
        groups.setdefault(own[0]["place"], {})[own[0]["name"]] = own
    lines = []
    for place, found in groups.items():
        first = next(iter(found.values()))[0]
        told = [("", lambda own: percent(own, "shown"))]
        for hidden in first["hidden"]:
            recall = lambda own, hidden=hidden: recognised(own, hidden)
            told.append((hidden, recall))
        for what, of in told:
            theirs = published.figures(first["beside"], what)
            cells = []
            for column, name in enumerate(names):
                mine = of(found[name]) if name in found else ""
                beside = theirs[column] if column < len(theirs) else None
                cells.append(f"{mine} ({beside:.1f})" if beside is not None else mine)
            beside = f"{place} ({first['beside']})" if theirs else place
            kind = f"private: {what}" if what else "non-private"
            most = "" if what else percent([first], "shown_majority")
            lines.append([beside, kind, *cells, most])
    return table(["place (the chapter's)", "accuracy", *names, "majority"], lines)


def recognised(own, hidden):
    """The share of a hidden class's windows that are told, in percent."""
    return percent([row["private"][hidden] for row in own], "recall")


def methods_table(rows):
    """Table 4.2: a row a place, choice and method."""
    head = [
        *("place", "hidden", "", "seeds", "shown [%]", "chance", "majority", "chapter"),
        *("hidden: recall [%]", "chapter", "balanced [%]", "AUC", "accuracy [%]"),
        *("majority", "retrained, balanced [%]", "trained"),
    ]
    lines = []
    for own in grouped(rows):
        first = own[0]
        beside = published.beside(
            first["beside"] if first["at"] == 0 else "", first["name"]
        )
        worst = [{"worst": max(row["retrained"].values())} for row in own]
        lines.append(
            [
                *(first["place"], ", ".join(first["hidden"]), first["name"], len(own)),
                *(percent(own, n) for n in ("shown", "shown_chance", "shown_majority")),
                *(beside[0], of_private(own, "recall"), beside[1]),
                *(of_private(own, n) for n in ("balanced", "auc", "accuracy")),
                *(of_private(own, "majority"), percent(worst, "worst")),
                learned(first),
            ]
        )
    return table(head, lines)


def learned(row):
    """What was trained, in words."""
    if "rounds" not in row:
        return ""
    given = row["settings"]
    widths = given.get("widths") or given["features"]
    told = (
        f"{row['rounds']:,} rounds of {given['batch']}, widths "
        f"{'-'.join(map(str, widths))}, {row['training_s']:.0f} s"
    )
    way = (f"{n.replace('_', ' ')} {v:g}" for n, v in row.get("way", {}).items())
    return "; ".join([told, *way])


def switched_table(rows):
    """What the judge says of windows from nothing."""
    columns = {
        "shown classes: asked for, told [%]": "asked_shown",
        "raw windows of them [%]": "raw_shown",
        "classes to hide: asked for, told [%]": "asked_hidden",
        "another class asked for: that is told [%]": "other_told",
        "the real one is told [%]": "real_told",
    }
    return simple(
        rows, {h: lambda own, n=n: percent(own, n) for h, n in columns.items()}
    )


def forecast_table(rows):
    """Errors of forecasts, and each over that of raw windows."""
    head = ["place", "", "seeds", "what", "held", "raw"]
    head += ["of what was made", "over raw", "of what really came", "over raw"]
    head += ["taught by what was made", "over raw"]
    lines = []
    for own in grouped(rows):
        for what in own[0]["errors"]:
            errors = [row["errors"][what] for row in own]
            line = [own[0]["place"], own[0]["name"], len(own), what]
            line += [f"{mean(errors, kind):.3g}" for kind in ("held", "raw")]
            for kind in ("of_made", "of_real", "taught"):
                line += [f"{mean(errors, kind):.3g}", f"{over_raw(errors, kind):.2f}"]
            lines.append(line)
    return table(head, lines)


def over_raw(errors, kind):
    """An error over that of raw windows, the mean over seeds."""
    return statistics.fmean(e[kind] / max(e["raw"], 1e-9) for e in errors)


def missing_table(rows):
    """Two classes each: recognised with and without their labels."""
    columns = {
        "raw [%]": lambda own: percent(own, "raw"),
        "all labels [%]": lambda own: percent(own, "with"),
        "without theirs [%]": lambda own: percent(own, "without"),
        "points lost": lambda own: f"{lost(own):.1f}",
        "all shown [%]": lambda own: percent(own, "shown"),
        "hidden, worst balanced [%]": lambda own: percent(own, "worst"),
    }
    return simple(rows, columns)


def lost(own):
    """Points of accuracy that missing labels cost."""
    return 100 * statistics.fmean(row["with"] - row["without"] for row in own)


def new_home_table(rows):
    """Shown and hidden, and what was learned from before."""
    columns = {
        "others' windows": lambda own: f"{mean(own, 'others_windows'):.0f}",
        "steps of theirs": lambda own: f"{mean(own, 'others_rounds'):.0f}",
        "own steps": lambda own: f"{mean(own, 'rounds'):.0f}",
        "shown [%]": lambda own: percent(own, "shown"),
        "hidden, worst balanced [%]": lambda own: percent(own, "worst"),
    }
    return simple(rows, columns)


def quality_table(rows):
    """Every measure; of raw data, training windows stand for what is made."""
    number = lambda name: lambda own: f"{mean(own, name):.3g}"
    of = lambda name: lambda own: f"{mean([r['memorisation'] for r in own], name):.3g}"
    columns = {
        "synthetic to real [%]": lambda own: percent(own, "synthetic_to_real"),
        "real to synthetic [%]": lambda own: percent(own, "real_to_synthetic"),
        "real to real [%]": lambda own: percent(own, "real_to_real"),
        "discriminative, 0 to 0.5": number("discriminative"),
        "predictive": number("predictive"),
        "of training windows": number("predictive_raw"),
        "MMD²": number("mmd"),
        "context-FID": number("fid"),
        "autocorrelation": number("autocorrelation"),
        "cross-channel": number("cross_channel"),
        "nearest training window": of("synthetic"),
        "of test windows": of("held_out"),
        "copies, 0.05 if none": of("copies"),
    }
    return simple(rows, columns)


def steps_table(rows):
    """Judge and rate over steps."""
    columns = {
        "shown, rewritten [%]": lambda own: percent(own, "shown"),
        "hidden, worst balanced [%]": lambda own: percent(own, "worst"),
        "shown, from nothing [%]": lambda own: percent(own, "asked_shown"),
        "windows/s from nothing": of_speed,
    }
    return simple(rows, columns)


def of_speed(own):
    """Windows a second; blank where the machine had other work beside."""
    alone = [row for row in own if row["windows_per_s"] is not None]
    return f"{mean(alone, 'windows_per_s'):.0f}" if alone else ""


def motionsense_table(rows):
    """What ``bench/anonymizers.py`` finds, of PrivateHub and other diffusions."""
    told = lambda mean, spread=None: (
        f"{mean:.1f}" + (f" ± {spread:.1f}" if spread else "")
    )
    pair = lambda row, name: kept([row], name, lambda x: told(*x[0]))
    head = ["", "seeds", "activity [%]", "gender, balanced [%]", "retrained, worst [%]"]
    head += ["epochs"]
    lines = []
    for row in rows:
        worst = told(*row["retrained_balanced"][row["worst"]])
        line = [f"{row['system']} {row['form']}".strip(), len(row["seeds"])]
        line += [pair(row, "public_accuracy"), pair(row, "private_balanced_accuracy")]
        lines.append([*line, f"{worst} ({row['worst']})", row["epochs"]])
    return table(head, lines)


def simple(rows, columns):
    """A row a place and name, and ``{head: rows -> text}``."""
    lines = []
    for own in grouped(rows):
        line = [own[0]["place"], ", ".join(own[0]["hidden"]), own[0]["name"], len(own)]
        lines.append([*line, *(told(own) for told in columns.values())])
    return table(["place", "hidden", "", "seeds", *columns], lines)
