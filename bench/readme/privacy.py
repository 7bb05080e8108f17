"""Tables of anonymizers: utility and leakage."""

from anonymizers import rows as anonymizer_rows
from deeprotect import tables
from harness.pages import columns_table, table
from harness.results import Rows, figures, read
from readme.stamp import stamped

CASE = "MotionSense"  # The case of the first table of anonymizers.
RETRAINED = "retrained attackers (MLP / forest)"
RAW = "raw-data classifier, balanced"
PUBLISHED = (
    ["Blinder, published (Yang and Ardakanian 2023)", "93.61", "57.04", "", ""],
    ["ObscureNet, published in the same paper", "94.87", "53.04", "", ""],
    ["PrivDiffuser, published (Yang and Ardakanian 2025)", "96.32", "49.96", "", ""],
)


def blinder(results):
    """Returns guided Blinder over ten seeds, next to published figures."""
    score = Rows(results, "blinder_motion_sense").spread
    ours = lambda what: score(f"Blinder, guided: {what}")
    raw = ("activity, raw", "gender intrusive, raw", "gender intrusive balanced, raw")
    safe = [name.replace("raw", "anonymized") for name in raw]
    attackers = (ours(f"gender re-identified by {name}") for name in ("mlp", "forest"))
    return table(
        ["%", "activity", "gender", "gender, balanced", RETRAINED],
        [
            ["raw windows", *map(ours, raw), ""],
            ["Blinder, guided", *map(ours, safe), " / ".join(attackers)],
            *PUBLISHED,
        ],
    )


HEADER = (
    *("system", "variant", "activity", "gender", "gender, balanced"),
    *("chance / majority", "strongest attacker", "30 windows of one person"),
    *("DTW distortion", "published", "verdict"),
)


def anonymizers(results):
    """Returns every anonymizer of the first case."""
    rows = read(results / "anonymizers.json")
    own = [HEADER, *(anonymizer_rows.cells(r) for r in rows if r["case"] == CASE)]
    at = HEADER.index("chance / majority")  # The same in every row.
    head, *lines = ((*cells[:at], *cells[at + 1 :]) for cells in own)
    return table(head, lines)


def elsewhere(results):
    """Returns every anonymizer of the other cases, with fewer columns."""
    rows = [one for one in read(results / "anonymizers.json") if one["case"] != CASE]
    cell = lambda at: lambda one: anonymizer_rows.cells(one)[at]

    def utility(one):
        return f"{one['public']} {anonymizer_rows.shown(one['public_accuracy'])}"

    def inferred(one):
        score = one.get("private_balanced_accuracy")
        return f"{one['private']} {anonymizer_rows.shown(score)}" if score else ""

    columns = {
        "data": lambda one: one["case"],
        "system": lambda one: anonymizer_rows.called(one["system"], one["form"]),
        "utility": utility,
        RAW: inferred,
        **{HEADER[at]: cell(at) for at in range(5, 10)},
    }
    return columns_table(rows, columns)


def front(results):
    """Returns the settings of guided Blinder on the Pareto front."""
    setting = lambda name: (
        lambda row: f"{row['settings'][name]:g}" if name in row["settings"] else ""
    )
    score = lambda name: lambda row: f"{100 * row['scores'][name]['mean']:.1f}"
    names = {
        "beta": "`beta`",
        "output_discriminator_weight": "discriminator weight",
        "utility": "utility weight",
        "epochs": "epochs",
        "flip_probability": "flip probability",
    }
    columns = {
        "preset": lambda row: row["preset"],
        **{head: setting(name) for name, head in names.items()},
        "activity": score("activity accuracy"),
        "gender, balanced": score("gender intrusive"),
        RETRAINED: lambda row: _retrained(row["retrained"]),
        "DTW distortion": lambda row: f"{row['warping']:.1f}",
    }
    return columns_table(read(results / "front_motion_sense.json"), columns)


def _retrained(scores):
    """Returns the scores of MLP and forest, and of a stronger attacker if any."""
    usual = {name: scores[name] for name in ("mlp", "forest")}
    text = " / ".join(f"{100 * x:.1f}" for x in usual.values())
    strongest = max(scores, key=scores.get)
    if strongest in usual:
        return text
    return f"{text}; {strongest} {100 * scores[strongest]:.1f}"


def attributes(results):
    """Returns Blinder with two private attributes."""
    score = Rows(results, "blinder_attributes").spread
    value = lambda name, what: score(f"side and subject: {name}{what}")
    raw, safe = (value("exercise", f", {kind}") for kind in ("raw", "anonymized"))
    lines = [["exercise (accuracy)", raw, safe, "", "14.3"]]
    for name, chance in (("side", "50.0"), ("subject", "10.0")):
        kinds = (f" intrusive balanced, {kind}" for kind in ("raw", "anonymized"))
        attackers = (value(name, f" re-identified by {a}") for a in ("mlp", "forest"))
        cells = [*(value(name, kind) for kind in kinds), " / ".join(attackers), chance]
        lines.append([f"{name} (balanced)", *cells])
    heads = ["raw windows", "raw-data classifier", RETRAINED, "chance level"]
    return table(["%", *heads], lines)


def unseen(results):
    """Returns Blinder on people who are not in the training data."""
    score = Rows(results, "blinder_unseen").spread

    def pair(one, other):
        value = lambda fraction, what: score(f"R_U {fraction}: {what}")
        return lambda fraction: f"{value(fraction, one)} / {value(fraction, other)}"

    both = lambda what: pair(f"{what}, raw", f"{what}, anonymized")
    attack = "gender re-identified by"
    columns = {
        "fraction of people in training": str,
        "activity, raw / anonymized": both("activity"),
        "gender balanced, raw / anonymized": both("gender intrusive balanced"),
        RETRAINED: pair(f"{attack} mlp", f"{attack} forest"),
    }
    return columns_table(("0.9", "0.5"), columns)


RELEASES = {
    "everything, Laplace on raw windows": "Laplace on raw windows",
    "everything, PrivUnit": "PrivUnit, 7 features",
    "everything, PrivUnit, 15 features": "PrivUnit, 15 features",
    "named, within the span": "span (named), 7 features",
    "named, within the span, 15 features": "span (named), 15 features",
}


def deeprotect(results):
    """Returns the ε at which utility is within 10 points of raw windows."""
    rows = read(results / "deeprotect.json")
    needed, lines = tables.needed(rows), []
    for row in (row for row in rows if row["kind"] == "raw"):
        place = tables.place(row)
        raw = ", ".join(f"{name} {100 * x:.1f}" for name, x in row["told"].items())
        cells = (_least(needed[place].get(release)) for release in RELEASES)
        lines.append([*place, raw, *cells])
    head = ["data", "useful / sensitive", "raw accuracy, %", *RELEASES.values()]
    return table(head, lines)


def _least(found):
    if found is None:
        return ""
    epsilon, bound = found
    return "none tried" if epsilon is None else f"{bound}{figures(epsilon)}"


def _blinder(experiment, epochs=10, seeds=10):
    return f"python bench blinder {experiment} --epochs {epochs} --seeds {seeds}"


TABLES = {
    "Blinder": stamped(blinder, _blinder("--variant guided"), "blinder_motion_sense"),
    "anonymizers": stamped(anonymizers, "python bench anonymizers", "anonymizers"),
    "anonymizers elsewhere": stamped(
        elsewhere, "python bench anonymizers", "anonymizers"
    ),
    "front": stamped(front, "python bench blinder.front", "front_motion_sense"),
    "attributes": stamped(
        attributes,
        _blinder("--experiment attributes", seeds=3),
        "blinder_attributes",
    ),
    "unseen": stamped(
        unseen, _blinder("--experiment unseen", seeds=3), "blinder_unseen"
    ),
    "DEEProtect": stamped(deeprotect, "python bench deeprotect", "deeprotect"),
}
