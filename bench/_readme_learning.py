"""README's tables of what learners reach, and of what their messages tell."""

import _atlas_tables
import _audit_page
import _hub_tables
import _pfdrl_tables
from _markdown import table
from _readme_rows import read

PLACES = ("UCI HAPT", "Sleep-EDF", "WISDM watch", "Smart homes", "Homes' energy")
SEES = {"each": "each message", "mean": "the mean"}


def atlas(results):
    """Every method on every application."""
    rows = read(results / "atlas.json")
    own = [row for row in rows if row["question"] == "methods"]
    found = {
        place: _atlas_tables.over_seeds(
            row for row in own if row["application"] == place
        )
        for place in PLACES
    }
    names = [n for n in _atlas_tables.ORDER if any(n in found[p] for p in PLACES)]
    lines = [
        [name, *(_score(found[place].get(name)) for place in PLACES)] for name in names
    ]
    stands = [f"{p} ({next(iter(found[p].values()))['stands_for']})" for p in PLACES]
    return table(["", *stands], lines)


def _score(row):
    if row is None:
        return ""
    if row["metric"] == "r2" and row["value"] < -1:
        return "below -1"
    told = f" ({row['published']:g})" if row.get("published") else ""
    return f"{_atlas_tables.score(row)}{told}{_atlas_tables.mark(row)}"


def pfdrl(results):
    """Methods on Tracebase."""
    rows = read(results / "pfdrl.json")
    own = [r for r in rows if r["question"] == "methods" and r["place"] == "tracebase"]
    lines = []
    for group in _pfdrl_tables.grouped(own):
        mean = lambda name, digits, group=group: (
            f"{100 * _pfdrl_tables.mean(group, name):.{digits}f}"
        )
        spread = _pfdrl_tables.deviation([row["saved"] for row in group])
        days = _pfdrl_tables.days(group, careful=True)
        told = " to ".join(dict.fromkeys((str(min(days)), str(max(days)))))
        lines.append(
            [
                *(group[0]["name"], len(group)),
                mean("saved", 1) + (f" ± {100 * spread:.1f}" if len(group) > 1 else ""),
                *(mean("switched_off", 2), mean("optimal", 2), told),
            ]
        )
    return table(
        [
            *("", "seeds", "standby energy saved, %", "in-use minutes off, %"),
            *("best actions, %", "days until it stays so, disturbing nobody more"),
        ],
        lines,
    )


def privatehub(results):
    """Classes shown and hidden, of every place and choice."""
    rows = read(results / "privatehub.json")
    own = [row for row in rows if row["question"] == "methods"]
    groups = {}
    for group in _hub_tables.grouped(own):
        first = group[0]
        groups.setdefault((first["place"], first["choice"]), {})[first["name"]] = group
    names = list(dict.fromkeys(name for found in groups.values() for name in found))
    lines = []
    for (place, _), found in groups.items():
        hidden = _hub_tables.secret(next(iter(found.values()))[0])
        lines.append([f"{place}: {hidden}", *(_shown(found.get(n)) for n in names)])
    return table(["shown / hidden, worst balanced / retrained, %", *names], lines)


def _shown(group):
    if group is None:
        return ""
    told = [{"worst": max(row["retrained"].values())} for row in group]
    parts = (
        *(_hub_tables.percent(group, name) for name in ("shown", "worst")),
        _hub_tables.percent(told, "worst"),
    )
    return " / ".join(parts)


def mechanisms(results):
    """ε counted beside ε claimed, for the worst example."""
    lines = []
    for row in read(results / "audit.json"):
        if row["kind"] == "mechanisms" and "planted" not in row:
            counted = f"{row['counted']:.2f}"
            broken = row["counted"] > row["claimed"]
            told = f"**{counted}**" if broken else counted
            lines.append([row["name"], f"{row['claimed']:.2f}", told])
    return table(
        ["worst example there can be", "ε claimed", "ε counted, at least"], lines
    )


def planted(results):
    """ε counted of mechanisms as they are, and with bugs planted in them."""
    lines = []
    for row in read(results / "audit.json"):
        if "planted" in row:
            name, claimed, *told = _audit_page.planted(row)
            beyond = [bool(x) and float(x) > row["claimed"] for x in told]
            marked = zip(told, beyond, strict=True)
            lines.append([name, claimed, *(f"**{x}**" if y else x for x, y in marked)])
    head = ["worst neighbours, or one run", "ε claimed", "ε counted, at least"]
    return table([*head, *_audit_page.BUGS], lines)


def members(results):
    """Which windows a client trained on, by its messages."""
    lines = []
    for row in read(results / "audit.json"):
        if row["kind"] == "members" and row["examples"] == "own":
            rates = row["true_positives"]
            lines.append(
                [
                    *(row["learner"], SEES[row["view"]], row["statistic"]),
                    _audit_page.told_epsilon(row["claimed"]),
                    *(f"{100 * rates[rate]:.0f} %" for rate in ("0.01", "0.1")),
                    f"{row['auc']:.2f}",
                ]
            )
    return table(
        [
            *("learner", "who sees", "told by", "ε claimed", "found at 1 % false"),
            *("at 10 %", "area under the curve"),
        ],
        lines,
    )


TABLES = {
    "Atlas": atlas,
    "PFDRL": pfdrl,
    "PrivateHub": privatehub,
    "audit of mechanisms": mechanisms,
    "audit of planted bugs": planted,
    "audit of members": members,
}
