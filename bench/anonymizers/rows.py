"""Reports of ``jaxanon.evaluate`` as rows of the table, and the table for readers.

Rows of the same system that other seeds were measured for are put together.
"""

import json
import math
import warnings

from anonymizers import published
from harness import results

# Of these a row has a mean and a deviation over its seeds.
PAIRS = (
    *("public_accuracy", "public_accuracy_raw", "public_macro_f1"),
    *("private_accuracy", "private_balanced_accuracy", "chance", "majority"),
    *("warping", "information_nats"),
)

EXPERIMENT = "method", "settings", "epochs", "windows"
HEADER = (
    *("system", "form", "public", "private", "private, balanced", "chance / majority"),
    *("retrained, worst", "30 windows of one person", "warping", "published", ""),
)


def row(case, entry, variant, data, kept, how) -> dict:
    """One row: every figure in percent, as mean and standard deviation over seeds.

    Args:
      case, entry: of ``_entries``; ``variant`` a name of the entry's.
      data: what the row was measured on.
      kept: what was kept of the evaluations: ``seeds`` (the summary of all seeds'
        reports, and the ``seeds``) and, where they were run, ``attackers`` and
        ``attacks`` (seed 0's reports with every other attacker, and with attacks of
        other kinds), with ``seconds`` each.
      how: epochs of training, what measured it, with versions and the day.
    """
    spec = data.spec
    summary = kept["seeds"]["report"]
    first = [
        kept[stage]["report"] for stage in ("attackers", "attacks") if stage in kept
    ]
    (private,) = spec.private
    utility = summary["utility"]
    judged = summary["intrusive"][private]  # None of subjects never seen in training.
    retrained = {
        kind: _attackers([summary, *first], private, kind)
        for kind in ("accuracy", "balanced_accuracy")
    }
    attackers = retrained["balanced_accuracy"]
    found = {
        "case": case.name,
        "system": entry.name,
        "form": variant,
        "method": entry.method,
        "settings": entry.settings | entry.variants[variant],
        "seeds": kept["seeds"]["seeds"],
        "windows": [len(data.train.windows), len(data.test.windows)],
        "public": spec.public,
        "private": private,
        "seconds": {stage: one["seconds"] for stage, one in kept.items()},
        **how,
        "public_accuracy": _percent(utility["anonymized"]["accuracy"]),
        "public_accuracy_raw": _percent(utility["raw"]["accuracy"]),
        "public_macro_f1": _percent(utility["anonymized"]["macro_f1"]),
        "retrained_accuracy": retrained["accuracy"],
        "retrained_balanced": attackers,
        "worst": max(attackers, key=lambda name: attackers[name][0], default=None),
        "warping": _pair(summary["distortion"]["warping"]["mean"]),
        "information_nats": _pair(summary["mutual_information"][private]["anonymized"]),
        "attacks": _attacks([summary, *first]),
        "linkage": _linkage(summary["linkage"]),
        "figures": _figures([summary, *first]),
    }
    if judged is not None:
        for kind in ("accuracy", "balanced_accuracy"):
            found[f"private_{kind}"] = _percent(judged["anonymized"][kind])
        found["chance"] = _percent(judged["anonymized"]["chance"])
        found["majority"] = _percent(judged["anonymized"]["majority"])
    return compared(found)


def compared(row) -> dict:
    """A row beside what is published of it now, whenever it was measured."""
    at = row["case"], row["system"], row["form"]
    found = {name: value for name, value in row.items() if name not in COMPARED}
    if at in published.NOTES:
        found["reason"] = published.NOTES[at].format(epochs=row["epochs"])
    told = published.PUBLISHED.get(at)
    if told is not None:
        found["published"] = {
            "public_accuracy": told.activity,
            "private_accuracy": told.private,
            "reidentified": told.reidentified,
            "reidentified_source": told.reidentified_source,
            "source": told.source,
        }
        measured = row["public_accuracy"][0], row["private_accuracy"][0]
        found["verdict"] = published.verdict(told, *measured)
        found["reason"] = published.differs(told, *measured, row["epochs"])
    return found


COMPARED = ("published", "verdict", "reason")


def _percent(spread):
    return [None if each is None else 100 * each for each in _pair(spread)]


def _pair(spread):
    """A mean and its standard deviation, of a summary or of a single report."""
    if isinstance(spread, dict):
        return [spread["mean"], spread["std"]]
    return [spread, None]


def _attackers(reports, private, kind):
    """Retrained attackers' accuracies, of the first report that has an attacker."""
    found = {}
    for report in reports:
        told = report["reidentification"].get(private, {"attackers": {}})["attackers"]
        new = {name: _percent(one[kind]) for name, one in told.items()}
        found = new | found
    return found


def _linkage(report):
    """By whom senders are best told; None where there are no two to tell apart."""
    if report is None:
        return None
    level = lambda one: _percent(one["balanced_accuracy"])[0]
    worst, scores = max(report["attackers"].items(), key=lambda item: level(item[1]))
    kinds = ("accuracy", "balanced_accuracy", "chance")
    told = {kind: _percent(scores[kind]) for kind in kinds}
    unseen = report.get("unseen_subjects", report.get("strangers"))
    return {"unseen_subjects": unseen, "attacker": worst, **told}


def _attacks(reports):
    """Balanced accuracies of the further attacks, the worst attacker of each."""
    found: dict[str, dict] = {}
    for attack, one in _further(reports):
        name = f"{attack}: {one['attribute']}, {one['variant']}"
        level = _percent(one["scores"]["balanced_accuracy"])[0]
        if name not in found or level > found[name]["balanced"]:
            found[name] = {"balanced": level, "attacker": one["attacker"]}
            rate = one["scores"].get("equal_error_rate")
            if rate is not None:
                found[name]["equal_error_rate"] = _percent(rate)[0]
    return found


def _figures(reports):
    """What attacks found that is no score of classes."""
    return {
        f"{attack}: {one['attribute']}, {one['attacker']}, {one['variant']}": {
            name: _pair(value) for name, value in one["figures"].items()
        }
        for attack, one in _further(reports, "figures")
    }


def _further(reports, kind="scores"):
    """Names and rows of the further attacks that came to something of a kind."""
    for report in reports:
        for attack, rows in report["attacks"].items():
            yield from ((attack, one) for one in rows if one.get(kind))


def title(one) -> str:
    """What tells a row from all others, in words."""
    return f"{one['case']}, {called(one['system'], one['form'])}"


def called(system: str, form: str) -> str:
    """A system and its form, in words."""
    return " ".join(filter(None, (system, form)))


def told_figures(one) -> dict[str, str]:
    """Of attacks that are not scored by classes, what each found."""
    return {
        name: ", ".join(f"{what} {mean:.3f}" for what, (mean, _) in found.items())
        for name, found in one.get("figures", {}).items()
        if found
    }


LEGEND = (
    "Per cent. *Public* and *private* are accuracies of classifiers trained on raw "
    "windows, which published tables call desired and intrusive; *chance* is the "
    "balanced accuracy of a guess, *majority* the accuracy of always guessing the most "
    "frequent class. *Retrained* is the best of the attackers that learn from "
    "anonymized training windows, balanced over the classes; the column after it adds "
    "up what it says of 30 windows of one person. *Published* is public / private, and "
    "in brackets re-identification, which released programs score on the windows that "
    "they train with. Means over seeds, ± their standard deviation; what has none was "
    "measured with one seed. *Warping* is the distance by dynamic time warping, in "
    "deviations of the training rows."
)


def cells(one) -> tuple[str, ...]:
    """A row's cells, in the order of ``HEADER``."""
    worst = one["worst"]
    streams = [
        found["balanced"]
        for name, found in one["attacks"].items()
        if name.startswith(f"stream: {one['private']}, 30 windows")
    ]
    return (
        one["system"],
        one["form"],
        shown(one["public_accuracy"]),
        shown(one.get("private_accuracy")),
        shown(one.get("private_balanced_accuracy")),
        f"{one['chance'][0]:.1f} / {one['majority'][0]:.1f}" if "chance" in one else "",
        f"{shown(one['retrained_balanced'][worst])} ({worst})" if worst else "",
        f"{max(streams):.1f}" if streams else "",
        f"{one['warping'][0]:.1f}",
        _told(one.get("published")),
        one.get("verdict", ""),
    )


def _told(published):
    """Public / private (re-identified), a dash where nothing is published."""
    if published is None:
        return ""
    names = ("public_accuracy", "private_accuracy")
    cell = " / ".join(_figure(published[name]) for name in names)
    again = published.get("reidentified")
    return cell if again is None else f"{cell} ({again:.1f})"


def _figure(value):
    return "–" if value is None else f"{value:.1f}"


def shown(pair) -> str:
    """``mean ± std``, or what there is of it."""
    if pair is None:
        return ""
    mean, std = pair
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def together(path, rows, order) -> list[dict]:
    """Rows, and those that were written to ``path`` before.

    All of them are compared anew with what is published.

    Two of the same experiment that have no seed in common are put together. Else the
    one of more seeds stays, then the one of more stages, then the one found now; a
    warning tells of seeds that are left out.

    Args:
      path: of a file of rows, which need not be there.
      rows: found now.
      order: ``(case, system, form)`` in the order wanted; others come last.
    """
    at = lambda row: (row["case"], row["system"], row["form"])
    weight = lambda row: (len(row["seeds"]), len(row["seconds"]))
    found = {at(row): row for row in results.kept(path)}
    for row in rows:
        old = found.get(at(row), row)
        apart = not {*row["seeds"]} & {*old["seeds"]}
        if apart and alike(old, row):
            found[at(row)] = pooled(old, row)
        elif weight(row) >= weight(old):
            found[at(row)] = row
        elif left := {*row["seeds"]} - {*old["seeds"]}:
            warnings.warn(
                f"{title(row)}: seeds {sorted(left)} are left out, for the file has "
                f"{old['seeds']}, of which some are the same or trained otherwise.",
                stacklevel=2,
            )
    last = len(order)
    place = {one: number for number, one in enumerate(order)}
    rows = map(compared, found.values())
    return sorted(rows, key=lambda row: place.get(at(row), last))


def alike(old, new) -> bool:
    """Whether rows are of the same experiment, whatever their seeds."""
    read = lambda row: json.loads(json.dumps([row.get(name) for name in EXPERIMENT]))
    return read(old) == read(new)


def pooled(old, new) -> dict:
    """Two rows of the same system as one over all their seeds.

    Means and sample deviations are what they would be of all seeds at once. Of what is
    the worst of several attackers it is the mean of either row's worst one, without a
    deviation where that was not the same one. What one row alone has stays as it is, of
    that row's seeds.

    Args:
      old, new: rows that have no seed in common; ``new`` says when and how.
    """
    counts = len(old["seeds"]), len(new["seeds"])
    pair = lambda one, other: pool(*counts, one, other)
    found = old | new
    found["seeds"] = sorted(old["seeds"] + new["seeds"])
    for name in PAIRS:
        found |= _both(pair, old, new, name)
    for name in ("retrained_accuracy", "retrained_balanced"):
        found[name] = _merged(pair, old.get(name, {}), new[name])
    attackers = found["retrained_balanced"]
    found["worst"] = max(attackers, key=lambda name: attackers[name][0], default=None)
    worst = lambda one, other: _worst(counts, one, other)
    found["attacks"] = _merged(worst, old["attacks"], new["attacks"])
    figures = lambda one, other: _merged(pair, one, other)
    found["figures"] = _merged(figures, old.get("figures", {}), new.get("figures", {}))
    found |= _both(lambda one, other: _linked(pair, one, other), old, new, "linkage")
    add = lambda one, other: _merged(lambda a, b: a + b, one, other)
    found["seconds"] = _merged(add, old["seconds"], new["seconds"])
    return found


def pool(count, other_count, one, other) -> list:
    """``[mean, deviation]`` of two groups, of each of which that is known.

    Example:
      Of 1 and 3, and of 5:

      >>> pool(2, 1, [2.0, 2**0.5], [5.0, None])
      [3.0, 2.0]
    """
    total = count + other_count
    mean = (count * one[0] + other_count * other[0]) / total
    squares = count * (one[0] - mean) ** 2 + other_count * (other[0] - mean) ** 2
    for size, (_, deviation) in ((count, one), (other_count, other)):
        squares += (size - 1) * (deviation or 0.0) ** 2
    return [mean, math.sqrt(squares / (total - 1))]


def _both(join, old, new, name) -> dict:
    """A figure of both rows joined, that of either as it is, or nothing."""
    known = [row[name] for row in (old, new) if row.get(name) is not None]
    if not known:
        return {}
    return {name: join(*known) if len(known) == 2 else known[0]}


def _merged(join, old, new) -> dict:
    shared = {name: join(old[name], new[name]) for name in old if name in new}
    return old | new | shared


def _worst(counts, one, other) -> dict:
    """What the worst attackers of either row come to."""
    numbers = lambda row: {k: v for k, v in row.items() if k != "attacker"}
    mean = lambda a, b: (counts[0] * a + counts[1] * b) / sum(counts)
    found = _merged(mean, numbers(one), numbers(other))
    return found | {"attacker": _names(one, other)}


def _linked(pair, one, other) -> dict:
    kinds = ("accuracy", "balanced_accuracy", "chance")
    told = {name: pair(one[name], other[name]) for name in kinds}
    if one["attacker"] != other["attacker"]:
        told = {name: [mean, None] for name, (mean, _) in told.items()}
    return one | told | {"attacker": _names(one, other)}


def _names(*rows) -> str:
    """Attackers, where it was not the same one every time."""
    names = [name for row in rows for name in row["attacker"].split(" or ")]
    return " or ".join(dict.fromkeys(names))
