"""Tables of DEEProtect's rows, with the paper's numbers."""

from harness.pages import columns_table, table
from jaxanon.privacy import raw_error, rebuilt_error

WITHIN = 0.10  # Accuracy below that on raw windows.
LAPLACE = "everything, Laplace on raw windows"
NAMED = "named, Laplace on raw windows"
INPUTS, FEATURES, RADIUS = 30, 7, 0.35  # In all studies.
# Expected L1 error of Laplace noise, or its bound, by ε: theorems 6 and 7.
PREDICTED = {
    LAPLACE: lambda epsilon: raw_error(INPUTS, 1.0, epsilon),
    "everything, Laplace": lambda epsilon: rebuilt_error(
        INPUTS, FEATURES, 2 * RADIUS * FEATURES**0.5, epsilon
    ),
    "everything, as published": lambda epsilon: rebuilt_error(
        INPUTS, FEATURES, INPUTS * FEATURES**0.5, epsilon
    ),
}
# Liu et al. 2017: figures 7, 9 and 10, and text of section VIII.
PAPER = (
    "The paper reports for its own 20 people: identity accuracy 86.13 % from 7 "
    "features and 88.39 % from all 30 (other extractors: below 41.02 %). At ε = 5 in "
    "mode 2 it reports identity 79.58 %, activity about 5 %, transport above 78 %, "
    "entered text below 10 %. The release 'as published' adds the paper's noise of "
    "scale √k d ΔQ / ε to our features, which preserves none of this accuracy. "
    "Accuracies here are of forests trained on released windows. A secret with too "
    "many classes to search (24 people) uses the bound for any two windows. UCI HAPT "
    "has no third attribute for case 3."
)


def line(row) -> str:
    """Returns a row as text."""
    told = ", ".join(f"{k} {100 * v:.1f}" for k, v in row.get("told", {}).items())
    where = f"{row.get('dataset', '')} {row.get('case', '')}".strip()
    return f"{where}: {row['kind']}, {row['of']}: {told}"


def features_table(rows) -> str:
    """Returns useful accuracy by extractor and number of features, without noise."""
    rows = [row for row in rows if row["kind"] == "features"]
    counts = sorted({row["count"] for row in rows})
    told = ("7 of the most, %", "informativeness of 7")
    head = ["data", "case", "extractor", *map(str, counts), *told]
    lines = []
    for where in dict.fromkeys(map(place, rows)):
        own = [row for row in rows if place(row) == where]
        for extractor in dict.fromkeys(row["extractor"] for row in own):
            found = {row["count"]: row for row in own if row["extractor"] == extractor}
            cells = [shown(found[k]) if k in found else "" for k in counts]
            lines.append([*where, extractor, *cells, *_of_seven(found)])
    return table(head, lines)


def _of_seven(found):
    """Returns accuracy of 7 features relative to the most, and their informativeness.

    The former is empty if at most 7 features were evaluated.
    """
    if 7 not in found:
        return "", ""
    name = found[7]["useful"][0]
    kept = found[7]["told"][name] / found[max(found)]["told"][name]
    share = f"{100 * kept:.1f}" if max(found) > 7 else ""
    return share, f"{found[7]['informativeness']:.3f}"


def needed_table(rows) -> str:
    """Returns the ε at which useful accuracy is within 10 points of raw windows."""
    lines = []
    for where, own in needed(rows).items():
        for release, (epsilon, reached) in own.items():
            bases = [own.get(base, (None, ""))[0] for base in (LAPLACE, NAMED)]
            ratios = [
                f"{base / epsilon:.0f}" if base and epsilon else "" for base in bases
            ]
            told = f"{reached}{epsilon:.3g}" if epsilon else "more than was tried"
            lines.append([*where, release, told, *ratios])
    times = (f"times less than {base}" for base in (LAPLACE, NAMED))
    return table(["data", "case", "release", "ε needed", *times], lines)


def needed(rows) -> dict:
    """Returns the least sufficient ``(ε, "≤" or "")`` by study and release, or None.

    Interpolates accuracy linearly in log ε. If the smallest evaluated ε suffices, a
    smaller one may suffice, too.
    """
    found: dict = {}
    for row in (row for row in rows if row["kind"] == "raw"):
        where = place(row)
        goal = row["told"][row["useful"][0]] - WITHIN
        budgets = [each for each in rows if each["kind"] == "budget"]
        own = [each for each in budgets if place(each) == where]
        for release in dict.fromkeys(each["release"] for each in own):
            curve = sorted(
                (each["epsilon"], each["told"][each["useful"][0]])
                for each in own
                if each["release"] == release
            )
            least = crossing(curve, goal)
            bound = "≤ " if least is not None and least == curve[0][0] else ""
            found.setdefault(where, {})[release] = least, bound
    return found


def crossing(curve, goal):
    """Returns the first x where a curve of ``(ε, accuracy)`` reaches ``goal``, or None.

    Example:
      >>> round(crossing([(1.0, 0.2), (4.0, 0.4)], 0.3), 3)
      2.0
    """
    before = None
    for epsilon, value in curve:
        if value >= goal:
            if before is None:
                return epsilon
            share = (goal - before[1]) / (value - before[1])
            return float(before[0] * (epsilon / before[0]) ** share)
        before = epsilon, value
    return None


def noise_table(rows) -> str:
    """Returns measured and predicted L1 noise of releases with Laplace noise.

    Windows are clipped to the public range, which reduces large noise. Predictions for
    windows rebuilt from features are upper bounds.
    """
    lines = []
    for row in rows:
        predict = PREDICTED.get(row.get("release"))
        if predict is not None and "noise" in row:
            told = f"{row['noise']:.3g}", f"{predict(row['epsilon']):.3g}"
            where = *place(row), row["release"]
            lines.append([*where, f"{row['epsilon']:g}", *told])
    head = ["data", "case", "release", "ε", "L1 noise", "predicted, before cutting"]
    return table(head, lines)


def budgets_table(rows) -> str:
    """Returns useful and sensitive accuracy over ε."""
    columns = {
        "data": lambda row: row["dataset"],
        "case": lambda row: row["case"],
        "release": lambda row: row.get("release", row["of"]),
        "ε": lambda row: f"{row['epsilon']:g}" if "epsilon" in row else "none",
        "useful %": shown,
        "sensitive %": lambda row: f"{100 * row['told'][row['sensitive']]:.1f}",
    }
    own = [row for row in rows if row["kind"] in ("budget", "raw")]
    return columns_table(own, columns)


def speed_table(rows) -> str:
    """Returns times of training and releasing, and the requirements."""
    columns = {
        "what": lambda row: row["of"],
        "took": lambda row: f"{row['value']:,.1f} {row['unit']}",
        "asked": lambda row: f"{row['asked']:,.0f}",
    }
    return columns_table([row for row in rows if row["kind"] == "speed"], columns)


def shown(row) -> str:
    """Returns useful accuracies in percent, with std over seeds."""
    told = [row["told"][name] for name in row["useful"]]
    spreads = row.get("std", {})
    cells = []
    for name, value in zip(row["useful"], told, strict=True):
        spread = 100 * spreads.get(name, 0)
        cells.append(f"{100 * value:.1f}" + (f" ± {spread:.1f}" if spread else ""))
    return " / ".join(cells)


def place(row):
    """Returns the study of a row."""
    return row["dataset"], row["case"]
