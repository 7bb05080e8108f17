"""README's tables of learners' scores and of attacks on their messages."""

from atlas import tables as atlas_tables
from audit import page as audit_page
from harness.comparison import deviation, first, percent
from harness.pages import asked, by, columns_table, table
from harness.results import read
from pfdrl import tables as pfdrl_tables
from privatehub import tables as hub_tables

PLACES = ("UCI HAPT", "Sleep-EDF", "WISDM watch", "Smart homes", "Homes' energy")


def atlas(results):
    """Returns every method on every application."""
    rows = by(asked(read(results / "atlas.json"), "methods"), atlas_tables.PLACE)
    found = [atlas_tables.over_seeds(rows[place]) for place in PLACES]
    names = [n for n in atlas_tables.ORDER if any(n in own for own in found)]
    lines = [[name, *(_score(own.get(name)) for own in found)] for name in names]
    stands = (f"{place} ({rows[place][0]['stands_for']})" for place in PLACES)
    return table(["", *stands], lines)


def _score(row):
    if row is None:
        return ""
    if row["metric"] == "r2" and row["value"] < -1:
        return "below -1"
    told = f" ({row['published']:g})" if row.get("published") else ""
    return f"{atlas_tables.score(row)}{told}{atlas_tables.mark(row)}"


def pfdrl(results):
    """Returns the methods on Tracebase."""
    rows = asked(read(results / "pfdrl.json"), "methods")

    def saved(own):
        spread = 100 * deviation([row["saved"] for row in own])
        return percent("saved", 1)(own) + (f" ± {spread:.1f}" if len(own) > 1 else "")

    def until(own):
        days = pfdrl_tables.days(own, careful=True)
        return " to ".join(dict.fromkeys((str(min(days)), str(max(days)))))

    columns = {
        "": first("name"),
        "seeds": len,
        "standby energy saved, %": saved,
        "in-use minutes off, %": percent("switched_off"),
        "best actions, %": percent("optimal"),
        "days until it stays so, disturbing nobody more": until,
    }
    own = [row for row in rows if row["place"] == "tracebase"]
    return columns_table(pfdrl_tables.grouped(own), columns)


def privatehub(results):
    """Returns shown and hidden classes of every place and choice."""
    groups = {}
    rows = asked(read(results / "privatehub.json"), "methods")
    for group in hub_tables.grouped(rows):
        row = group[0]
        groups.setdefault((row["place"], row["choice"]), {})[row["name"]] = group
    names = list(dict.fromkeys(name for found in groups.values() for name in found))
    lines = []
    for (place, _), found in groups.items():
        hidden = hub_tables.secret(next(iter(found.values()))[0])
        lines.append([f"{place}: {hidden}", *(_shown(found.get(n)) for n in names)])
    return table(["shown / hidden, worst balanced / retrained, %", *names], lines)


def _shown(group):
    if group is None:
        return ""
    parts = (hub_tables.percent(group, name) for name in ("shown", "worst"))
    return " / ".join([*parts, hub_tables.retrained(group)])


def _bold(text, row):
    """Marks a measured ε that exceeds the claimed one."""
    return f"**{text}**" if text and float(text) > row["claimed"] else text


CLAIMED = {"ε claimed": lambda row: f"{row['claimed']:.2f}"}


def mechanisms(results):
    """Returns measured and claimed ε for the worst-case example."""
    columns = {
        "worst example there can be": lambda row: row["name"],
        **CLAIMED,
        "ε counted, at least": lambda row: _bold(f"{row['counted']:.2f}", row),
    }
    rows = read(results / "audit.json")
    own = [row for row in rows if row["kind"] == "mechanisms"]
    return columns_table([row for row in own if "planted" not in row], columns)


def planted(results):
    """Returns measured ε of mechanisms with and without planted bugs."""
    lines = []
    for row in read(results / "audit.json"):
        if "planted" in row:
            name, claimed, *told = audit_page.planted(row)
            lines.append([name, claimed, *(_bold(text, row) for text in told)])
    head = ["worst neighbours, or one run", "ε claimed", "ε counted, at least"]
    return table([*head, *audit_page.BUGS], lines)


def members(results):
    """Returns the success of membership inference from a client's messages."""
    rate = lambda at: lambda row: f"{100 * row['true_positives'][at]:.0f} %"
    columns = {
        "learner": lambda row: row["learner"],
        "who sees": lambda row: audit_page.SEES[row["view"]],
        "told by": lambda row: row["statistic"],
        "ε claimed": lambda row: audit_page.told_epsilon(row["claimed"]),
        "found at 1 % false": rate("0.01"),
        "at 10 %": rate("0.1"),
        "area under the curve": lambda row: f"{row['auc']:.2f}",
    }
    rows = [row for row in read(results / "audit.json") if row["kind"] == "members"]
    return columns_table([row for row in rows if row["examples"] == "own"], columns)


TABLES = {
    "Atlas": atlas,
    "PFDRL": pfdrl,
    "PrivateHub": privatehub,
    "audit of mechanisms": mechanisms,
    "audit of planted bugs": planted,
    "audit of members": members,
}
