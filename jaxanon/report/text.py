"""What a report says: sentences, grades and how each number was obtained."""

import re
from typing import NamedTuple

import jinja2

UNREADABLE = "not readable even from raw windows"

LEAST = 0.02  # Above what guessing gives, to be called readable.


class Shown(NamedTuple):
    """How well classes that are not hidden are recognised, and by guessing alone."""

    accuracy: float
    recall: float  # mean over the classes
    majority: float  # accuracy of always naming the commonest; 0 if one is left
    chance: float  # recall of guessing; likewise


def percent(share: float, digits: int = 1) -> str:
    """``0.934`` as ``93.4 %``."""
    return f"{100 * share:.{digits}f} %"


def settings(chosen: dict) -> str:
    """Settings in words.

    Example:
      >>> settings({"alpha": 0.1, "lambda_": 0.4})
      'alpha 0.1, lambda 0.4'
    """
    return ", ".join(f"{name.rstrip('_')} {value}" for name, value in chosen.items())


def spread(score: dict) -> str:
    """Mean and standard deviation of a share, in percent; the mean alone of one run."""
    mean = f"{100 * score['mean']:.1f}"
    return mean if score["std"] is None else f"{mean} ± {100 * score['std']:.1f}"


def _one_line(value):
    """Keeps a name with line breaks inside its sentence."""
    return " ".join(value.split()) if isinstance(value, str) else value


_SENTENCES = jinja2.Environment(  # Plain text: the pages escape it.
    loader=jinja2.PackageLoader("jaxanon.report"),
    undefined=jinja2.StrictUndefined,
    finalize=_one_line,
    trim_blocks=True,
    lstrip_blocks=True,
)

_SENTENCES.filters |= {"percent": percent, "f": format}


def sentences(template: str, **values) -> list[str]:
    """The paragraphs of a text template, one line each; empty ones are left out."""
    text = _SENTENCES.get_template(template).render(values)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [paragraph for paragraph in paragraphs if paragraph]


class Attack(NamedTuple):
    """A further attack: its heading and how its numbers are obtained."""

    title: str
    method: str


def _attacks():
    named = (line.split(" = ", 1) for line in sentences("attacks.txt"))
    return {name: Attack(*text.split(": ", 1)) for name, text in named}


ATTACKS = _attacks()


def protocol(report: dict) -> dict[str, str]:
    """How each number was obtained, by section."""
    lines = sentences("protocol.txt", **report, all_attacks=ATTACKS)
    return dict(line.split(": ", 1) for line in lines)


def guaranteed(privacy: dict | None) -> list[str]:
    """What a ledger comes to.

    Args:
      privacy: of ``told`` of a guarantee in ``jaxanon.privacy.guarantee``; None
        without noise.
    """
    return sentences("guarantee.txt", privacy=privacy)


def costs(told: dict) -> list[str]:
    """What training cost.

    Args:
      told: of ``jaxanon.training.profiling.read``.

    Example:
      >>> costs({"compile_s": 3.21, "round_s": 0.0125, "first_round": 1,
      ...     "last_round": 40, "memory_bytes": 512e6, "memory_of": "process",
      ...     "device": "cpu"})[0]
      'Compiling took 3.2 s, a round 12.5 ms (rounds 1 to 40 on cpu).'
    """
    return sentences("costs.txt", costs=told)


def unfinished(told: dict | None, what: str = "epochs") -> list[str]:
    """That a run was interrupted.

    Args:
      told: of ``Run.unfinished``.
      what: the unit of its numbers.

    Example:
      >>> unfinished({"done": 2.0, "asked": 5})
      ['Unfinished: 2 of 5 epochs are done; train or serve on with --resume.']
    """
    if told is None:
        return []
    done = f"{told['done']:.4g} of {told['asked']} {what}"
    return [f"Unfinished: {done} are done; train or serve on with --resume."]


def exposure(worst: float, raw: float, chance: float) -> str:
    """How well an attribute is hidden, in two words.

    Grades the part of the way from chance to raw windows that the strongest attacker
    goes. If raw windows tell nothing either, there was nothing to hide.

    Example:
      >>> exposure(worst=0.55, raw=0.99, chance=0.5)
      'well hidden'
    """
    if raw - chance < LEAST:
        return UNREADABLE
    way = (worst - chance) / (raw - chance)
    grades = ((0.15, "well hidden"), (0.4, "mostly hidden"), (0.75, "partly exposed"))
    return next((grade for bound, grade in grades if way <= bound), "exposed")


def attacked(report: dict) -> list[str]:
    """Private attributes, and the subject if linkage was tried."""
    names = list(report["intrusive"])
    return names + ["subject"] * bool(report["linkage"] and "subject" not in names)


def adversaries(report: dict, attribute: str) -> dict[str, dict]:
    """Scores on anonymized windows of every attacker of ``attribute``."""
    found = {}
    if report["intrusive"].get(attribute):
        judged = report["intrusive"][attribute]["anonymized"]
        found["judge trained on raw windows"] = judged
    section = report["reidentification"].get(attribute)
    if attribute == "subject" and section is None:
        section = report["linkage"]
    for name, scores in (section or {"attackers": {}})["attackers"].items():
        found[f"{name} retrained on anonymized windows"] = scores
    return found


def raw_scores(report: dict, attribute: str) -> dict | None:
    """Scores of a classifier of raw windows, trained on raw windows."""
    if report["intrusive"].get(attribute):
        return report["intrusive"][attribute]["raw"]
    return report["linkage"]["raw"] if report["linkage"] else None


def headline(report: dict) -> list[str]:
    """What survives, what is hidden and from whom: one sentence per attribute."""
    lines = _of_utility(report)
    for attribute in attacked(report):
        raw, found = raw_scores(report, attribute), adversaries(report, attribute)
        if raw is None or not found:
            lines.append(f"{attribute} could not be attacked with this data.")
            continue
        name = max(found, key=lambda name: found[name]["balanced_accuracy"])
        reached, chance = found[name]["balanced_accuracy"], found[name]["chance"]
        grade = exposure(reached, raw["balanced_accuracy"], chance)
        asked = attribute in report["intrusive"]
        aside = "" if asked else ", though nobody asked to hide it"
        lines.append(
            f"{attribute} is {grade}{aside}: the worst adversary ({name}) reaches "
            f"{percent(reached)} balanced accuracy, where guessing gives "
            f"{percent(chance)} and raw windows {percent(raw['balanced_accuracy'])}."
        )
    if report["dataset"]["split"] == "official":
        lines.append("The split leaks test windows into training: see below.")
    return lines


def _of_utility(report) -> list[str]:
    """What survives of the classes to show, and how well those to hide are seen."""
    utility, secret = report["utility"], to_hide(report)
    public, sides = utility["attribute"], (utility["anonymized"], utility["raw"])
    kept, before = (among(side, secret) for side in sides)
    gains = (
        (kept.accuracy - before.majority, before.accuracy - before.majority),
        (kept.recall - before.chance, before.recall - before.chance),
    )
    way = next((own / all_ for own, all_ in gains if all_ >= LEAST), None)
    grades = ((0.9, "survives"), (0.6, "mostly survives"), (0.2, "suffers"))
    verb = f"is {UNREADABLE}"
    if way is not None:
        verb = next((verb for bound, verb in grades if way >= bound), "is lost")
    which = f" of classes to show (all but {', '.join(secret)})" if secret else ""
    lines = [
        f"{public} {verb}: {percent(kept.accuracy)} of anonymized windows{which} are "
        f"classified right, of raw windows {percent(before.accuracy)}."
    ]
    for name in secret:
        found, raw = (
            next(row for row in side["per_class"] if row["name"] == name)
            for side in sides
        )
        if found["windows"]:
            lines.append(
                f"{public} {name} was to be hidden: {percent(found['recall'])} of its "
                f"windows are still recognised, of raw ones {percent(raw['recall'])}."
            )
    return lines


def to_hide(report: dict) -> tuple[str, ...]:
    """Public classes that the report's method hides; none for most methods."""
    config = (report["method"] or {}).get("config")
    return tuple(config.get("hide", ())) if isinstance(config, dict) else ()


def among(scores: dict, without: tuple[str, ...] = ()) -> Shown:
    """Scores on the windows of some classes alone.

    Args:
      scores: of ``metrics.scores``.
      without: names of classes that do not count; if nothing is left, all do.

    Example:
      >>> rows = [("a", 6, 0.5), ("b", 2, 1.0), ("c", 2, 0.0)]
      >>> rows = [dict(zip(("name", "windows", "recall"), row)) for row in rows]
      >>> among({"per_class": rows}, ("c",))
      Shown(accuracy=0.625, recall=0.75, majority=0.75, chance=0.5)
    """
    rows = [row for row in scores["per_class"] if row["windows"]]
    rows = [row for row in rows if row["name"] not in without] or rows
    counts = [row["windows"] for row in rows]
    right = sum(row["windows"] * row["recall"] for row in rows) / sum(counts)
    recall = sum(row["recall"] for row in rows) / len(rows)
    if len(rows) == 1:  # There is nothing to guess among.
        return Shown(right, recall, 0.0, 0.0)
    return Shown(right, recall, max(counts) / sum(counts), 1 / len(rows))
