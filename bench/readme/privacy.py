"""README's tables of utility and privacy of anonymizers."""

from anonymizers import rows as anonymizer_rows
from deeprotect import tables
from harness.pages import columns_table, table
from harness.results import Rows, figures, read

CASE = "MotionSense"  # The case shown in README.


def blinder(results):
    """Returns the results of Blinder, guided, over ten seeds."""
    found = Rows(results, "blinder_motion_sense").spread
    ours = lambda what: found(f"Blinder, guided: {what}")
    return table(
        ["%", "activity", "gender", "gender, balanced", "retrained (MLP / forest)"],
        [
            [
                "raw windows",
                *(ours("activity, raw"), ours("gender intrusive, raw")),
                *(ours("gender intrusive balanced, raw"), ""),
            ],
            [
                "Blinder, guided",
                *(ours("activity, anonymized"), ours("gender intrusive, anonymized")),
                ours("gender intrusive balanced, anonymized"),
                f"{ours('gender re-identified by mlp')} / "
                f"{ours('gender re-identified by forest')}",
            ],
            *PUBLISHED,
        ],
    )


PUBLISHED = (
    ["Blinder, published (Yang and Ardakanian 2023)", "93.61", "57.04", "", ""],
    ["ObscureNet, as published there", "94.87", "53.04", "", ""],
    [
        "PrivDiffuser, published (Yang and Ardakanian 2025)",
        *("96.32", "49.96", "", ""),
    ],
)


def anonymizers(results):
    """Returns every anonymizer of one case."""
    rows = read(results / "anonymizers.json")
    own = [one for one in rows if one["case"] == CASE]
    first = own[0]
    head = list(anonymizer_rows.HEADER)
    head[2:5] = first["public"], first["private"], f"{first['private']}, balanced"
    return table(head, map(anonymizer_rows.cells, own))


def elsewhere(results):
    """Returns every anonymizer of the other cases in short form."""
    rows = read(results / "anonymizers.json")

    def read_of(one):
        told = one.get("private_balanced_accuracy")
        return f"{one['private']} {anonymizer_rows.shown(told)}" if told else ""

    kept = lambda one: anonymizer_rows.shown(one["public_accuracy"])
    cell = lambda at: lambda one: anonymizer_rows.cells(one)[at]
    columns = {
        "data": lambda one: one["case"],
        "system": lambda one: anonymizer_rows.called(one["system"], one["form"]),
        "kept": lambda one: f"{one['public']} {kept(one)}",
        "read, balanced": read_of,
        **{anonymizer_rows.HEADER[at]: cell(at) for at in range(5, 10)},
    }
    return columns_table([one for one in rows if one["case"] != CASE], columns)


def front(results):
    """Returns the Pareto-optimal settings of Blinder, guided."""
    setting = lambda name: (
        lambda row: f"{row['settings'][name]:g}" if name in row["settings"] else ""
    )
    score = lambda name: lambda row: f"{100 * row['scores'][name]['mean']:.1f}"
    names = ("beta", "output_discriminator_weight", "utility", "epochs")
    names += ("flip_probability",)
    columns = {
        "preset": lambda row: row["preset"],
        **{name: setting(name) for name in names},
        "activity": score("activity accuracy"),
        "gender, balanced": score("gender intrusive"),
        "retrained (MLP / forest)": lambda row: _retrained(row["retrained"]),
        "warping": lambda row: f"{row['warping']:.1f}",
    }
    return columns_table(read(results / "front_motion_sense.json"), columns)


def _retrained(found):
    """Returns the attackers of every row, and a stronger one if a row has more."""
    usual = {name: found[name] for name in ("mlp", "forest")}
    told = " / ".join(f"{100 * x:.1f}" for x in usual.values())
    worst = max(found, key=found.get)
    return told if worst in usual else f"{told}; {worst} {100 * found[worst]:.1f}"


def attributes(results):
    """Returns results with two private attributes."""
    found = Rows(results, "blinder_attributes").spread
    told = lambda name, what: found(f"side and subject: {name}{what}")
    lines = [
        [
            *("exercise (accuracy)", told("exercise", ", raw")),
            *(told("exercise", ", anonymized"), "", "14.3"),
        ]
    ]
    for name, chance in (("side", "50.0"), ("subject", "10.0")):
        retrained = (
            told(name, f" re-identified by {who}") for who in ("mlp", "forest")
        )
        lines.append(
            [
                f"{name} (balanced)",
                told(name, " intrusive balanced, raw"),
                told(name, " intrusive balanced, anonymized"),
                *(" / ".join(retrained), chance),
            ]
        )
    judge = "judge trained on raw windows"
    retrained = "retrained attacker (MLP / forest)"
    return table(["%", "raw windows", judge, retrained, "guessing"], lines)


def unseen(results):
    """Returns results on unseen people."""
    found = Rows(results, "blinder_unseen").spread

    def pair(one, other):
        told = lambda share, what: found(f"R_U {share}: {what}")
        return lambda share: f"{told(share, one)} / {told(share, other)}"

    both = lambda what: pair(f"{what}, raw", f"{what}, anonymized")
    by = "gender re-identified by"
    columns = {
        "share that trains": str,
        "activity, raw / anonymized": both("activity"),
        "gender balanced, raw / anonymized": both("gender intrusive balanced"),
        "retrained (MLP / forest)": pair(f"{by} mlp", f"{by} forest"),
    }
    return columns_table(("0.9", "0.5"), columns)


def deeprotect(results):
    """Returns the ε at which useful accuracy is within 10 points of raw windows."""
    rows = read(results / "deeprotect.json")
    needed, lines = tables.needed(rows), []
    for row in (row for row in rows if row["kind"] == "raw"):
        where = tables.place(row)
        told = ", ".join(f"{name} {100 * x:.1f}" for name, x in row["told"].items())
        lines.append([*where, told, *(_least(needed[where].get(r)) for r in RELEASES)])
    return table(["data", "useful / sensitive", "told, %", *RELEASES.values()], lines)


RELEASES = {
    "everything, Laplace on raw windows": "Laplace on raw windows",
    "everything, PrivUnit": "PrivUnit on 7 features",
    "everything, PrivUnit, 15 features": "PrivUnit on 15",
    "named, within the span": "within the span (named)",
    "named, within the span, 15 features": "within the span of 15",
}


def _least(found):
    if found is None:
        return ""
    epsilon, bound = found
    return "none of those tried" if epsilon is None else f"{bound}{figures(epsilon)}"


TABLES = {
    "Blinder": blinder,
    "anonymizers": anonymizers,
    "anonymizers elsewhere": elsewhere,
    "front": front,
    "attributes": attributes,
    "unseen": unseen,
    "DEEProtect": deeprotect,
}
