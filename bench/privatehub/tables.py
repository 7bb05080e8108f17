"""Tables of the comparison with PrivateHub, next to the chapter's figures."""

import statistics

from harness import comparison, pages
from harness.comparison import deviation, first, kept, mean, number
from harness.pages import columns_table, table
from privatehub import jobs as work
from privatehub import published


def of_first_choice(rows, name) -> list[dict]:
    """Returns rows of a question; for table 4.2, those of the first choice."""
    if name != "table 4.2":
        return pages.asked(rows, name)
    return [row for row in pages.asked(rows, "methods") if row["at"] == 0]


def grouped(rows) -> list[list[dict]]:
    """Groups seeds by place, choice and name, in the order of the methods."""
    return comparison.grouped(rows, ("place", "choice", "name"), order)


def secret(row):
    """Returns the hidden classes as text; some places lack classes of a choice.

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
    """Returns the sort key of a row: place and choice, then method or number."""
    names = [*work.names(), *work.OF_FORECASTS, work.ALONE, work.BEFORE]
    at = names.index(row["name"]) if row["name"] in names else 0
    number = row["x"] if isinstance(row["x"], int) else 0
    return row["place"], row["at"], number, at, row["name"]


def percent(own, name, digits=1):
    """Returns the mean over seeds in percent, ± std if there are several seeds."""
    values = [100 * row[name] for row in own if row.get(name) is not None]
    if not values:
        return ""
    more = f" ± {deviation(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{more}"


def share(name):
    """Returns a column of ``percent``."""
    return lambda own: percent(own, name)


def of_private(own, measure):
    """Returns a measure of each class to hide in percent."""
    told = []
    for name in own[0]["private"]:
        each = [{measure: row["private"][name][measure]} for row in own]
        told.append(percent(each, measure))
    return ", ".join(told)


def chapter_table(rows):
    """Returns table 4.2: a line per place for shown classes and per class to hide.

    Columns are methods in the chapter's order, followed by ours. Values for a class to
    hide are its recall. Majority: fraction of the largest class among those to show.
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
    """Returns the recall of a hidden class in percent."""
    return percent([row["private"][hidden] for row in own], "recall")


def methods_table(rows):
    """Returns table 4.2 with a row per place, choice and method."""

    def chapter(at):
        return lambda own: published.beside(
            own[0]["beside"] if own[0]["at"] == 0 else "", own[0]["name"]
        )[at]

    private = lambda measure: lambda own: of_private(own, measure)
    columns = {
        "place": first("place"),
        "hidden": lambda own: ", ".join(own[0]["hidden"]),
        "": first("name"),
        "seeds": len,
        "shown [%]": share("shown"),
        "chance": share("shown_chance"),
        "majority": share("shown_majority"),
        "chapter": chapter(0),
        "hidden: recall [%]": private("recall"),
        "chapter, hidden": chapter(1),
        "balanced [%]": private("balanced"),
        "AUC": private("auc"),
        "accuracy [%]": private("accuracy"),
        "majority, hidden": private("majority"),
        "retrained, balanced [%]": retrained,
        "trained": lambda own: learned(own[0]),
    }
    return columns_table(grouped(rows), columns)


def retrained(own):
    """Returns the accuracy of the strongest retrained attacker in percent."""
    return percent([{"worst": max(row["retrained"].values())} for row in own], "worst")


def learned(row):
    """Returns the training budget as text."""
    if "rounds" not in row:
        return ""
    given = row["settings"]
    widths = given.get("widths") or given["features"]
    told = (
        f"{row['rounds']:,} rounds of {given['batch_size']}, widths "
        f"{'-'.join(map(str, widths))}, {row['training_s']:.0f} s"
    )
    way = (f"{n.replace('_', ' ')} {v:g}" for n, v in row.get("way", {}).items())
    return "; ".join([told, *way])


def switched_table(rows):
    """Returns the raw-data classifier's accuracy on generated windows."""
    columns = {
        "shown classes: asked for, told [%]": share("asked_shown"),
        "raw windows of them [%]": share("raw_shown"),
        "classes to hide: asked for, told [%]": share("asked_hidden"),
        "another class asked for: that is told [%]": share("other_told"),
        "the real one is told [%]": share("real_told"),
    }
    return simple(rows, columns)


def forecast_table(rows):
    """Returns forecast errors, absolute and relative to raw windows."""
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
    """Returns an error relative to raw windows, averaged over seeds."""
    return statistics.fmean(e[kind] / max(e["raw"], 1e-9) for e in errors)


SHOWN = {"shown [%]": share("shown")}
WORST = {"hidden, worst balanced [%]": share("worst")}


def missing_table(rows):
    """Returns accuracies of two classes with and without their labels."""
    lost = lambda own: 100 * statistics.fmean(r["with"] - r["without"] for r in own)
    columns = {
        "raw [%]": share("raw"),
        "all labels [%]": share("with"),
        "without theirs [%]": share("without"),
        "points lost": lambda own: f"{lost(own):.1f}",
        "all shown [%]": share("shown"),
    }
    return simple(rows, columns | WORST)


def new_home_table(rows):
    """Returns shown and hidden accuracy, and the budget on others' windows."""
    columns = {
        "others' windows": number("others_windows", ".0f"),
        "steps of theirs": number("others_rounds", ".0f"),
        "own steps": number("rounds", ".0f"),
    }
    return simple(rows, columns | SHOWN | WORST)


def quality_table(rows):
    """Returns every measure; raw data use training windows as synthetic ones."""
    of = lambda name: lambda own: f"{mean([r['memorisation'] for r in own], name):.3g}"
    columns = {
        "synthetic to real [%]": share("synthetic_to_real"),
        "real to synthetic [%]": share("real_to_synthetic"),
        "real to real [%]": share("real_to_real"),
        "discriminative, 0 to 0.5": number("discriminative", ".3g"),
        "predictive": number("predictive", ".3g"),
        "of training windows": number("predictive_raw", ".3g"),
        "MMD²": number("mmd", ".3g"),
        "context-FID": number("fid", ".3g"),
        "autocorrelation": number("autocorrelation", ".3g"),
        "cross-channel": number("cross_channel", ".3g"),
        "nearest training window": of("synthetic"),
        "of test windows": of("held_out"),
        "copies, 0.05 if none": of("copies"),
    }
    return simple(rows, columns)


def steps_table(rows):
    """Returns accuracy and speed over the number of steps."""
    columns = {
        "shown, rewritten [%]": share("shown"),
        **WORST,
        "shown, from nothing [%]": share("asked_shown"),
        "windows/s from nothing": of_speed,
    }
    return simple(rows, columns)


def of_speed(own):
    """Returns windows per second; blank if the machine was busy with other work."""
    alone = [row for row in own if row["windows_per_s"] is not None]
    return f"{mean(alone, 'windows_per_s'):.0f}" if alone else ""


def motionsense_table(rows):
    """Returns results of ``anonymizers`` for PrivateHub and other diffusion models."""
    told = lambda mean, spread=None: (
        f"{mean:.1f}" + (f" ± {spread:.1f}" if spread else "")
    )
    pair = lambda name: lambda row: kept([row], name, lambda x: told(*x[0]))
    worst = lambda row: told(*row["retrained_balanced"][row["worst"]])
    columns = {
        "": lambda row: f"{row['system']} {row['form']}".strip(),
        "seeds": lambda row: len(row["seeds"]),
        "activity [%]": pair("public_accuracy"),
        "gender, balanced [%]": pair("private_balanced_accuracy"),
        "retrained, worst [%]": lambda row: f"{worst(row)} ({row['worst']})",
        "epochs": lambda row: row["epochs"],
    }
    return columns_table(rows, columns)


def simple(rows, columns):
    """Returns a table with a row per place and name from ``{head: rows -> text}``."""
    which = {
        "place": first("place"),
        "hidden": lambda own: ", ".join(own[0]["hidden"]),
        "": first("name"),
        "seeds": len,
    }
    return columns_table(grouped(rows), which | columns)
