"""The tables of distortion and of further attacks."""

from html import escape

from jaxanon.report.attack_words import TITLES
from jaxanon.report.tables import table
from jaxanon.report.words import percent

_MOST = 10.0  # Times the mean; means that are nearly 0 change by more, and say nothing.
_SCORES = ("balanced_accuracy", "auc", "equal_error_rate", "chance", "majority")


def attack_tables(report) -> str:
    """One table for each further attack; nothing if there was none."""
    head = ("attribute", "by whom", "how", "balanced accuracy", "AUC", "equal error",
            "chance", "majority")  # fmt: skip
    parts = []
    for name, rows in report["attacks"].items():
        cells = [_attack_row(row) for row in rows]
        parts.append(f"<h3>{escape(TITLES[name])}</h3>" + table(head, cells))
    return "".join(parts)


def _attack_row(row):
    scores, figures = row["scores"], row["figures"]
    if scores is None:
        told = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        values = (told or "too few windows", "", "", "", "")
    else:
        values = (_share(scores[field]) for field in _SCORES)
    return (row["attribute"], row["attacker"], row["variant"], *values)


def _share(value):
    return "none" if value is None else percent(value)


def distortion_table(report) -> str:
    """What became of the windows: warping, steps, statistics by channel."""
    found = report["distortion"]
    warping = found["warping"]
    moved = f"{warping['mean']:.2f} ± {warping['std']:.2f}"
    rows: list[tuple] = [("time warping, deviations", "0", moved, "", "")]
    for counter, told in (found["steps"] or {}).items():
        if told:
            rows.append(_change(f"steps per window, {counter.replace('_', ' ')}", told))
    for channel, statistics in found["statistics"].items():
        rows += [_change(f"{channel}: {name}", x) for name, x in statistics.items()]
    change = f"change of the mean (in its unit, beyond {100 * _MOST:,.0f} %)"
    head = ("measure", "raw", "anonymized", change, "mean change")
    return table(head, rows)


def _change(what, told):
    relative = told["relative_error"]
    if relative is None or abs(relative) > _MOST:
        change = f"{told['anonymized'] - told['raw']:+.4g}"
    else:
        change = f"{100 * relative:+.1f} %"
    values = (told["raw"], told["anonymized"])
    absolute = f"{told['absolute_error']:.4g}"
    return (what, *(f"{value:.4g}" for value in values), change, absolute)
