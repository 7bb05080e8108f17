"""Tables, a page and figures of the comparison with PrivateHub."""

import statistics

import numpy as np

from harness import pages
from harness.comparison import COLOURS, speed_table
from harness.pages import DOTTED, Question, by, label
from jaxanon.report.figures import RAW, SAFE
from privatehub import goals, published, tables
from privatehub import jobs as work


def panels(names, width=4.2, height=3.2):
    """Returns a panel per name."""
    return pages.panels(names, width, height)


def _with_legend(drawn, axes, caption):
    columns = 5 if len(axes) > 1 else 2  # A single panel is narrow.
    return pages.with_legend(drawn, axes, caption, columns)


def plane(rows):
    """Draws table 4.2: shown over hidden accuracy, a panel per place and choice."""
    drawn, axes = panels([name for name, _ in goals.cases(rows)])
    for where, own in goals.cases(rows):
        axis = axes[where]
        for name, each in own.items():
            colour = COLOURS[work.names().index(name)]
            told = [[100 * row[m] for row in each] for m in ("worst", "shown")]
            axis.plot(*told, "o", ms=6, color=colour, label=name)
        axis.axvline(goals.CHANCE, **DOTTED)
        axis.axvline(goals.CHANCE + goals.ABOVE_CHANCE, **DOTTED)
        label(axis, "to hide: worst balanced accuracy [%]", "to show: accuracy [%]")
    caption = (
        "Upper left is better. Dotted: chance level, and the required limit ten points "
        "above it. A dot is a seed."
    )
    return _with_legend(drawn, axes, caption)


def choices(rows):
    """Draws figure 4.8: shown and hidden accuracy over the classes to hide."""
    rows = sorted(rows, key=tables.order)
    places = list(dict.fromkeys(row["place"] for row in rows))
    drawn, axes = panels(places)
    for place, axis in axes.items():
        own = [row for row in rows if row["place"] == place]
        names = list(dict.fromkeys(row["choice"] for row in own))
        methods = [m for m in work.names() if any(row["name"] == m for row in own)]
        for number, method in enumerate(methods):
            each = [
                [r for r in own if (r["choice"], r["name"]) == (choice, method)]
                for choice in names
            ]
            wide = 0.8 / len(methods)
            at = np.arange(len(names)) + wide * (number + 0.5) - 0.4
            colour = COLOURS[work.names().index(method)]
            shown = [100 * _mean(group, "shown") for group in each]
            axis.bar(at, shown, wide, color=colour, label=method, alpha=0.5)
            recall = [100 * _recall(group) for group in each]
            axis.bar(at, recall, wide / 2, color=colour)
        words = {row["choice"]: tables.secret(row) for row in own}
        told = [words[choice].replace(", ", ",\n") for choice in names]
        axis.set_xticks(range(len(names)), told, fontsize=7)
        axis.set_ylabel("recognised [%]", fontsize=8)
    caption = (
        "Pale: windows of classes to show; dark and narrow: windows of classes to hide."
    )
    return _with_legend(drawn, axes, caption)


def with_streams(rows):
    """Returns the rows of the figure of streams: PrivateHub, one choice and seed."""
    every = [row for row in rows if "streams" in row]
    own = [row for row in every if row["name"] == work.OURS and row["at"] == 0]
    return [r for r in own if r["seed"] == min(q["seed"] for q in own)] or every[:1]


def slim(rows):
    """Removes streams from rows that are not drawn."""
    of = lambda question: [row for row in rows if row["question"] == question]
    drawn = {id(row) for q in ("methods", "switched") for row in with_streams(of(q))}
    bare = lambda row: {name: row[name] for name in row if name != "streams"}
    return [row if id(row) in drawn else bare(row) for row in rows]


def beside(what):
    """Returns a figure of test windows next to generated ones."""
    caption = (
        f"Three channels of a test window, {what}; each is scaled to its own range."
    )
    return lambda rows: _streams(rows, caption)


def _streams(rows, caption):
    own = with_streams(rows)
    if not own:
        return None
    told = [(row, window) for row in own for window in row["streams"]["windows"]]
    names = [_window_name(row, window) for row, window in told]
    drawn, axes = panels(names, height=2.0)
    for (row, window), axis in zip(told, axes.values(), strict=True):
        for kind, colour in (("raw", RAW), ("made", SAFE)):
            values = np.array(window[kind])
            spread = np.ptp(values, axis=0)
            lifted = (values - values.min(0)) / np.where(spread > 0, spread, 1)
            for number, column in enumerate(lifted.T):
                name = kind if number == 0 else None
                axis.plot(column - 1.2 * number, color=colour, lw=1.1, label=name)
        axis.set_yticks(
            [0.5 - 1.2 * k for k in range(values.shape[1])],
            row["streams"]["channels"],
            fontsize=6,
        )
        axis.set_xlabel("sample", fontsize=8)
    return _with_legend(drawn, axes, caption)


def forecasts(rows):
    """Draws figure 4.9: forecast errors relative to raw windows."""
    things = list(
        dict.fromkeys((r["place"], what) for r in rows for what in r["errors"])
    )
    drawn, axes = panels([f"{what}, {place}" for place, what in things])
    for (place, what), axis in zip(things, axes.values(), strict=True):
        own = tables.grouped([row for row in rows if row["place"] == place])
        for number, kind in enumerate(goals.READINGS):
            errors = [[row["errors"][what] for row in group] for group in own]
            values = [tables.over_raw(each, kind) for each in errors]
            at = np.arange(len(own)) + 0.27 * (number - 1)
            axis.bar(at, values, 0.27, color=COLOURS[number + 1], label=plain(kind))
        axis.axhline(goals.OVER_RAW, **DOTTED)
        axis.set_yscale("log")
        names = [group[0]["name"].replace(" ", "\n") for group in own]
        axis.set_xticks(range(len(own)), names, fontsize=6)
        axis.set_ylabel("error over raw", fontsize=8)
    caption = "; ".join(f"{plain(k)}: {told}" for k, told in goals.READINGS.items())
    return _with_legend(drawn, axes, f"{caption}. Dotted: the required limit.")


def labels(rows):
    """Draws figure 4.10: two classes with and without their labels."""
    places = by(rows, "place")
    drawn, axes = panels(list(places))
    for place, axis in axes.items():
        own = tables.grouped(places[place])
        for number, name in enumerate(("raw", "with", "without")):
            values = [100 * _mean(group, name) for group in own]
            at = np.arange(len(own)) + 0.27 * (number - 1)
            axis.bar(at, values, 0.27, color=COLOURS[number], label=name)
        names = [group[0]["name"].replace(" ", "\n") for group in own]
        axis.set_xticks(range(len(own)), names, fontsize=6)
        axis.set_ylabel("recognised [%]", fontsize=8)
    caption = "Two classes: raw; regenerated, with all labels; the same without theirs."
    return _with_legend(drawn, axes, caption)


def over_steps(rows):
    """Draws the raw-data classifier's accuracy over the steps of each sampler."""
    places = by(rows, "place")
    drawn, axes = panels(list(places))
    for place, axis in axes.items():
        every = tables.grouped(places[place])
        for solver, line in (("", "-o"), (work.BY_DPM, "--s")):
            other = lambda group: group[0]["name"].endswith(work.BY_DPM)
            own = [group for group in every if other(group) == bool(solver)]
            if not own:
                continue
            xs = [group[0]["x"] for group in own]
            for number, (name, what) in enumerate(
                (("shown", "rewritten"), ("asked_shown", "from nothing"))
            ):
                values = [100 * _mean(group, name) for group in own]
                colour = COLOURS[number]
                axis.plot(xs, values, line, ms=3, color=colour, label=what + solver)
        label(axis, "steps", "to show [%]")
    return _with_legend(
        drawn, axes, "Classes to show, over steps of DDIM (dashed: of DPM-Solver++)."
    )


def _window_name(row, window):
    hidden = ", to hide" if window["hidden"] else ""
    return f"{row['place']}: {window['class']}{hidden}"


def _mean(rows, name):
    return statistics.fmean(row[name] for row in rows) if rows else 0.0


def _recall(rows):
    each = [one["recall"] for row in rows for one in row["private"].values()]
    return statistics.fmean(each) if each else 0.0


def plain(kind):
    """Returns a reading's name as text.

    Example:
      >>> plain("of_made")
      'of made'
    """
    return kind.replace("_", " ")


QUESTIONS = {
    "table 4.2": Question(
        "Table 4.2: ours (the chapter's), accuracies in percent",
        tables.chapter_table,
    ),
    "methods": Question(
        "Classes shown and hidden (RQ1, RQ2: table 4.2, figure 4.8)",
        tables.methods_table,
        {"methods": plane, "choices": choices, "streams": beside("raw and rewritten")},
    ),
    "switched": Question(
        "Windows generated for their own class and for another",
        tables.switched_table,
        {"from_nothing": beside("and of a generated window of its class")},
    ),
    "forecasts": Question(
        "Forecasts of measured quantities (RQ3: figure 4.9)",
        tables.forecast_table,
        {"forecasts": forecasts},
    ),
    "missing": Question(
        "Two classes without labels, all regenerated (RQ4: figure 4.10)",
        tables.missing_table,
        {"missing": labels},
    ),
    "new_home": Question(
        "A new home, with and without others' windows first", tables.new_home_table
    ),
    "quality": Question("Realism of synthetic windows", tables.quality_table),
    "steps": Question(
        "Fewer steps, of DDIM and of DPM-Solver++ (2M)",
        tables.steps_table,
        {"steps": over_steps},
    ),
    "motionsense": Question(
        "MotionSense, rewritten (PrivDiffuser's authors: 96.32, 49.96)",
        tables.motionsense_table,
    ),
    "speed": Question("Speed", speed_table),
}


PAGE = pages.chapter(
    "PrivateHub compared with other generators",
    goals.table,
    published.PAPER,
    QUESTIONS,
    tables.of_first_choice,
)
markdown, write = PAGE.markdown, PAGE.write
