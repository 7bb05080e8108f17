"""Tables of learners, PFDRL, PrivateHub and privacy audits."""

from anonymizers import rows as anonymizer_rows
from atlas import tables as atlas_tables
from audit import page as audit_page
from harness.comparison import deviation, first, percent
from harness.pages import asked, by, columns_table, table
from harness.results import figures, read
from pfdrl import tables as pfdrl_tables
from privatehub import tables as hub_tables
from readme.stamp import stamped

PLACES = ("UCI HAPT", "Sleep-EDF", "WISDM watch", "Smart homes", "Homes' energy")


def atlas(results):
    """Returns every learner on every application."""
    rows = by(asked(read(results / "atlas.json"), "methods"), atlas_tables.PLACE)
    found = [atlas_tables.over_seeds(rows[place]) for place in PLACES]
    names = [n for n in atlas_tables.ORDER if any(n in own for own in found)]
    lines = [[name, *(_score(own.get(name)) for own in found)] for name in names]
    heads = (f"{place} (for {rows[place][0]['stands_for']})" for place in PLACES)
    return table(["method", *heads], lines)


def _score(row):
    if row is None:
        return ""
    if row["metric"] == "r2" and row["value"] < -1:
        return "below -1"
    published = f" ({row['published']:g})" if row.get("published") else ""
    return f"{atlas_tables.score(row)}{published}"


def epsilons(results):
    """Returns the scores of private learners over ε."""
    rows = atlas_tables.asked(read(results / "atlas.json"), "epsilon")
    return atlas_tables.over_table(rows, "epsilon")


def pfdrl(results):
    """Returns the methods that switch standby off, on Tracebase."""
    rows = asked(read(results / "pfdrl.json"), "methods")

    def saved(own):
        std = 100 * deviation([row["saved"] for row in own])
        return percent("saved", 1)(own) + (f" ± {std:.1f}" if len(own) > 1 else "")

    def converged(own):
        days = pfdrl_tables.days(own, careful=True)
        return " to ".join(dict.fromkeys((str(min(days)), str(max(days)))))

    columns = {
        "method": first("name"),
        "seeds": len,
        "standby energy saved, %": saved,
        "minutes in use switched off, %": percent("switched_off"),
        "best actions, %": percent("optimal"),
        "days until convergence": converged,
    }
    own = [row for row in rows if row["place"] == "tracebase"]
    return columns_table(pfdrl_tables.grouped(own), columns)


def privatehub(results):
    """Returns utility and leakage for every place and choice of classes to hide."""
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
    return table(["place: classes to hide", *names], lines)


def _shown(group):
    if group is None:
        return ""
    parts = (hub_tables.percent(group, name) for name in ("shown", "worst"))
    return " / ".join([*parts, hub_tables.retrained(group)])


def rewritten(results):
    """Returns the attacks on windows of MotionSense that diffusion models rewrote."""
    rows = asked(read(results / "privatehub.json"), "motionsense")
    cells = [anonymizer_rows.cells(row) for row in rows]
    heads = ("system", "variant", "activity", "gender", "gender, balanced")
    heads += ("strongest attacker", "30 windows of one person", "DTW distortion")
    lines = [
        (*c[:5], *c[6:9], len(row["seeds"])) for c, row in zip(cells, rows, strict=True)
    ]
    return table([*heads, "seeds"], lines)


def sampling(results):
    """Returns the speed of PrivateHub's sampler."""
    columns = {
        "measurement": lambda row: row["name"],
        "size": lambda row: row["what"],
        "value": lambda row: f"{figures(row['value'])} {row['unit']}",
    }
    return columns_table(asked(read(results / "privatehub.json"), "speed"), columns)


def _bold(text, row):
    """Marks a measured ε above the claimed one."""
    return f"**{text}**" if text and float(text) > row["claimed"] else text


CLAIMED = {"claimed ε": lambda row: f"{row['claimed']:.2f}"}
MEASURED = "measured ε, at least"


def mechanisms(results):
    """Returns measured and claimed ε for the worst example."""
    columns = {
        "mechanism": lambda row: row["name"],
        **CLAIMED,
        MEASURED: lambda row: _bold(f"{row['counted']:.2f}", row),
    }
    rows = read(results / "audit.json")
    own = [row for row in rows if row["kind"] == "mechanisms"]
    return columns_table([row for row in own if "planted" not in row], columns)


def planted(results):
    """Returns measured ε of correct mechanisms and of mechanisms with a bug."""
    lines = []
    for row in read(results / "audit.json"):
        if "planted" in row:
            name, claimed, *measured = audit_page.planted(row)
            lines.append([name, claimed, *(_bold(text, row) for text in measured)])
    bugs = ("half the noise", "half the clip norm", "one number without noise")
    return table(["mechanism", "claimed ε", MEASURED, *bugs], lines)


def members(results):
    """Returns membership inference from the messages of a client."""
    rate = lambda at: lambda row: f"{100 * row['true_positives'][at]:.0f} %"
    columns = {
        "learner": lambda row: row["learner"],
        "attacker sees": lambda row: audit_page.SEES[row["view"]],
        "statistic": lambda row: row["statistic"],
        "claimed ε": lambda row: audit_page.told_epsilon(row["claimed"]),
        "found at 1 % false positives": rate("0.01"),
        "at 10 %": rate("0.1"),
        "AUC": lambda row: f"{row['auc']:.2f}",
    }
    rows = [row for row in read(results / "audit.json") if row["kind"] == "members"]
    return columns_table([row for row in rows if row["examples"] == "own"], columns)


def inversion(results):
    """Returns gradient inversion: the correlation of a rebuilt window with the true."""
    noise = {None: "none, no clipping", 0.0: "none, with clipping"}
    columns = {
        "learner": lambda row: row["learner"],
        "noise multiplier": lambda row: noise.get(
            row["noise_multiplier"], f"{row['noise_multiplier']}"
        ),
        "claimed ε": lambda row: audit_page.told_epsilon(row["claimed"]),
        "correlation": lambda row: f"{row['correlation']:.2f}",
    }
    rows = [row for row in read(results / "audit.json") if row["kind"] == "inversion"]
    return columns_table(rows, columns)


_ATLAS = "python bench atlas --json bench/results/atlas.json", "atlas"
_AUDIT = "python bench audit --json bench/results/audit.json", "audit"
_HUB = "python bench privatehub"
TABLES = {
    "Atlas": stamped(atlas, *_ATLAS),
    "Atlas over epsilon": stamped(epsilons, *_ATLAS),
    "PFDRL": stamped(pfdrl, "python bench pfdrl --question methods --seeds 3", "pfdrl"),
    "PrivateHub": stamped(privatehub, _HUB, "privatehub", "methods"),
    "MotionSense rewritten": stamped(
        rewritten, f"{_HUB} --question motionsense", "privatehub", "motionsense"
    ),
    "PrivateHub speed": stamped(
        sampling, f"{_HUB} --question speed", "privatehub", "speed"
    ),
    "audit of mechanisms": stamped(mechanisms, *_AUDIT),
    "audit of planted bugs": stamped(planted, *_AUDIT),
    "audit of members": stamped(members, *_AUDIT),
    "audit of inversion": stamped(inversion, *_AUDIT),
}
