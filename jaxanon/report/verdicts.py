"""The verdict of an evaluation: utility, privacy, and how sure both are.

Privacy is judged by the strongest attack that was run, and by the larger of its
balanced accuracy and AUC, each above its chance level.
"""

from typing import Any, NamedTuple

GREEN, AMBER, RED, NOT_MEASURED = "green", "amber", "red", "not measured"

LIMITS = ((0.05, GREEN), (0.15, AMBER))  # Above chance level; utility: below raw.

TINY = 1e-9  # Rounding error of a limit.

LEAST = 0.02  # Above chance level, for raw windows to predict an attribute.

RAW_CLASSIFIER = "raw-data classifier"

GENERAL_ATTACKERS = "mlp", "cnn", "forest", "boosting"

GENERAL_ATTACKS = {
    "intrusive": "every attacker trained on raw windows",
    "per_class": "one attacker per public class",
    "stream": "streams of one person",
    "recordings": "recordings as released",
    "pairs": "linkage of two streams",
    "self-training": "attackers with few labels",
}


class Attack(NamedTuple):
    """Scores of one attack on anonymized windows."""

    name: str  # "classifier", "retrained", or a further attack
    words: str
    scores: dict | None
    reason: str | None = None  # why there are no scores


class Leak(NamedTuple):
    """The larger of balanced accuracy and AUC, above chance level."""

    measure: str
    value: float
    chance: float
    interval: tuple[float, float] | None

    @property
    def excess(self) -> float:
        """Value above chance level."""
        return self.value - self.chance


def verdict(report: dict) -> dict:
    """Judges an evaluation.

    An attribute is green if the upper end of the 95 % interval over persons is at most
    5 points above chance level, amber up to 15 points, else red. Utility is green if
    balanced accuracy falls by at most 5 points from raw windows, amber up to 15.

    Args:
      report: report of ``evaluate``, without the verdict.

    Returns:
      A dict for strict JSON: ``utility``; ``private`` and ``warnings``, rows of the
      attributes to hide and of the others; ``status``, the worst of ``private``;
      ``not_tested``; ``next_step``.
    """
    utility = _utility(report)
    rows = {name: attribute(report, name) for name in attacked(report)}
    asked = report["intrusive"]
    private = [row for name, row in rows.items() if name in asked]
    warnings = [row for name, row in rows.items() if name not in asked]
    not_tested = untested(report)
    return {
        "status": _worst(row["status"] for row in private),
        "utility": utility,
        "private": private,
        "warnings": warnings,
        "not_tested": not_tested,
        "next_step": _next_step(utility, private, warnings, not_tested),
    }


def _worst(statuses):
    found = set(statuses)
    order = (RED, NOT_MEASURED, AMBER, GREEN)
    return next((status for status in order if status in found), NOT_MEASURED)


def grade(excess: float) -> str:
    """Grades points above chance level, or lost from raw windows.

    Example:
      >>> [grade(x) for x in (-0.1, 0.05, 0.051, 0.15, 0.2)]
      ['green', 'green', 'amber', 'amber', 'red']
    """
    return next((name for limit, name in LIMITS if excess <= limit + TINY), RED)


def attacked(report: dict) -> list[str]:
    """Returns the private attributes, and the subject if it was linked."""
    names = list(report["intrusive"])
    return names + ["subject"] * bool(report["linkage"] and "subject" not in names)


def leak(scores: dict) -> Leak:
    """Returns the larger of balanced accuracy and AUC, above chance level.

    Args:
      scores: scores with ``balanced_accuracy``, ``auc`` (may be None), ``chance`` and
        ``interval``.

    Example:
      >>> leak({"balanced_accuracy": 0.6, "chance": 0.5, "auc": 0.8})[:3]
      ('AUC', 0.8, 0.5)
    """
    intervals = scores.get("interval") or {}
    bounds = lambda name: tuple(intervals[name]) if intervals.get(name) else None
    balanced = Leak(
        "balanced accuracy",
        scores["balanced_accuracy"],
        scores["chance"],
        bounds("balanced_accuracy"),
    )
    if scores.get("auc") is None:
        return balanced
    ranked = Leak("AUC", scores["auc"], 0.5, bounds("auc"))
    return max(balanced, ranked, key=lambda one: one.excess)


def attacks(report: dict, name: str) -> list[Attack]:
    """Returns every attack on an attribute of anonymized windows.

    Training accuracies and baselines on raw windows do not count.
    """
    found = []
    judged = report["intrusive"].get(name)
    if judged:
        words = f"{RAW_CLASSIFIER} on anonymized windows"
        found.append(Attack("classifier", words, judged["anonymized"]))
    section = report["reidentification"].get(name)
    if name == "subject" and section is None:
        section = report["linkage"]
    for attacker, scores in (section or {"attackers": {}})["attackers"].items():
        words = f"{attacker} retrained on anonymized windows"
        found.append(Attack("retrained", words, scores))
    for kind, rows in report.get("attacks", {}).items():
        for row in rows:
            words = _further(kind, row)
            if row["attribute"] == name and words is not None:
                reason = row.get("reason")
                found.append(Attack(kind, words, row["scores"], reason))
    return found


def _further(kind, row):
    """Words of a further attack's row; None for baselines and other figures."""
    if kind not in GENERAL_ATTACKS or row["figures"]:
        return None
    if row["attacker"] == RAW_CLASSIFIER or row["variant"] == "raw windows":
        return None
    if kind == "stream" and row["variant"].startswith("1 windows"):
        return None  # Single windows are re-identification.
    if kind == "intrusive":
        return f"{row['attacker']} trained on raw windows"
    return f"{row['attacker']}, {row['variant']}"


def raw_scores(report: dict, name: str) -> dict | None:
    """Returns the scores of the raw-data classifier on raw windows, or None."""
    if report["intrusive"].get(name):
        return report["intrusive"][name]["raw"]
    linked = report["linkage"] if name == "subject" else None
    return linked["raw"] if linked else None


def strongest(section: dict) -> str:
    """Returns the strongest attacker of a section, also of reports before 0.3."""
    return section["strongest"] if "strongest" in section else section["worst"]


def attribute(report: dict, name: str) -> dict:
    """Judges one attribute by the strongest attack on it.

    Returns:
      ``attribute``, ``status``, ``reason`` (if not measured), ``attack``, ``measure``,
      ``value``, ``chance``, ``interval``, ``balanced_accuracy``, ``auc`` and ``raw``
      (the same measure on raw windows; None if there is none).
    """
    tried = attacks(report, name)
    scored: list[Any] = [one for one in tried if one.scores is not None]
    fields = "reason attack measure value chance interval raw balanced_accuracy auc"
    row = dict.fromkeys(fields.split())
    row = {"attribute": name, "status": NOT_MEASURED, **row}
    if not scored:
        reasons = [one.reason for one in tried if one.reason]
        return row | {"reason": (reasons or ["no attack could run on this data"])[0]}
    measured = [one for one in scored if not one.scores.get("not_measured")]
    if not measured:
        return row | {"reason": scored[0].scores["not_measured"]}
    upper = lambda one: (leak(one.scores).interval or (0.0, 0.0))[1]
    first = max(measured, key=lambda one: (leak(one.scores).excess, upper(one)))
    found = leak(first.scores)
    raw = raw_scores(report, name)
    if first.name == "stream":
        raw = _raw_stream(report, name, first) or raw
    field = "auc" if found.measure == "AUC" else "balanced_accuracy"
    row |= {
        "attack": first.words,
        "measure": found.measure,
        "value": found.value,
        "chance": found.chance,
        "interval": found.interval and list(found.interval),
        "balanced_accuracy": first.scores["balanced_accuracy"],
        "auc": first.scores.get("auc"),
        "raw": raw and raw.get(field),
    }
    if found.interval is None:
        return row | {"reason": "the report has no interval over persons"}
    return row | {"status": grade(found.interval[1] - found.chance)}


def _raw_stream(report, name, attack):
    """Scores of the same stream attack on raw windows; None if it was not run."""
    variant = attack.words.split(", ", 1)[1]
    return next(
        (
            row["scores"]
            for row in report["attacks"]["stream"]
            if row["attribute"] == name and row["variant"] == f"raw stream, {variant}"
        ),
        None,
    )


def _utility(report):
    """Judges the public attribute, among the classes that are not to be hidden."""
    utility, secret = report["utility"], to_hide(report)
    raw, safe = utility["raw"], utility["anonymized"]
    before, after = (among(side, secret) for side in (raw, safe))
    interval = None if secret else (safe.get("interval") or {}).get("balanced_accuracy")
    row = {
        "attribute": utility["attribute"],
        "status": NOT_MEASURED,
        "reason": safe.get("not_measured"),
        "value": after.recall,
        "raw": before.recall,
        "chance": before.chance,
        "interval": interval,
        "without": list(secret),
    }
    if row["reason"] is not None:
        return row | {"value": None, "raw": None, "interval": None}
    if before.recall - before.chance < LEAST:
        return row | {"reason": "raw windows do not predict it above chance level"}
    return row | {"status": grade(before.recall - after.recall)}


class Shown(NamedTuple):
    """Scores among the classes that are not hidden."""

    accuracy: float
    recall: float  # mean over the classes: balanced accuracy
    majority: float  # accuracy of the most frequent class; 0 with one class
    chance: float  # balanced accuracy at chance level; 0 with one class


def to_hide(report: dict) -> tuple[str, ...]:
    """Returns the public classes that the method hides; empty for most methods."""
    config = (report["method"] or {}).get("config")
    if not isinstance(config, dict):
        return ()
    return tuple(config.get("classes_to_hide", config.get("hide")) or ())


def among(scores: dict, without: tuple[str, ...] = ()) -> Shown:
    """Returns scores on the windows of some classes.

    Args:
      scores: result of ``metrics.scores``.
      without: names of the classes to exclude; if that is all of them, none is.

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
    if len(rows) == 1:
        return Shown(right, recall, 0.0, 0.0)
    return Shown(right, recall, max(counts) / sum(counts), 1 / len(rows))


def untested(report: dict) -> list[str]:
    """Returns the general attacks that were not run."""
    idle = [name for name in GENERAL_ATTACKERS if name not in report["attackers"]]
    found = [f"attacker{'s' * (len(idle) > 1)} {', '.join(idle)}"] if idle else []
    spec = report["dataset"]
    known = {spec.get("public"), *spec.get("private", ()), *attacked(report)}
    others = [name for name in spec.get("classes", {}) if name not in known]
    if others:
        found.append(f"attributes outside --private: {', '.join(others)}")
    run = report.get("attacks", {})
    found += [words for name, words in GENERAL_ATTACKS.items() if name not in run]
    if "stream" in run:
        found += _unscored_streams(report)
    if reason := unmeasured_recordings(report):
        found.append(f"{GENERAL_ATTACKS['recordings']} ({reason})")
    return found


def unmeasured_recordings(report: dict) -> str | None:
    """Returns why released recordings were not measured; None if they were, or not run.

    Example:
      >>> unmeasured_recordings({"attacks": {}}) is None
      True
    """
    rows = report.get("attacks", {}).get("recordings", ())
    reasons = [row["reason"] for row in rows if row.get("reason")]
    return reasons[0] if reasons else None


class Released(NamedTuple):
    """Balanced accuracies of one attacker on an attribute."""

    attribute: str
    attacker: str
    recordings: float  # on windows cut from released recordings
    windows: float | None  # on anonymized windows; None if not measured


def released_recordings(report: dict) -> list[Released]:
    """Returns the measured scores on released recordings, next to those on windows."""
    found = []
    for row in report.get("attacks", {}).get("recordings", ()):
        scores, name = row["scores"], row["attribute"]
        if scores is None or scores.get("not_measured"):
            continue
        section = report["reidentification"].get(name)
        if name == "subject" and section is None:
            section = report["linkage"]
        if name == report["utility"]["attribute"]:
            windows = report["utility"]["anonymized"]
        else:
            windows = (section or {"attackers": {}})["attackers"].get(row["attacker"])
        known = windows is not None and not windows.get("not_measured")
        found.append(
            Released(
                name,
                row["attacker"],
                scores["balanced_accuracy"],
                windows["balanced_accuracy"] if known else None,
            )
        )
    return found


def _unscored_streams(report):
    """Lengths of streams that were not scored, by attribute with a verdict."""
    lengths: dict[str, dict] = {}
    for row in report["attacks"]["stream"]:
        scores, name = row["scores"], row["attribute"]
        measured = scores is not None and not scores.get("not_measured")
        if measured or row["attacker"] == RAW_CLASSIFIER:
            continue
        length = row["variant"].split(" ")[0]
        lengths.setdefault(name, {})[length] = None
    return [
        f"streams of {', '.join(own)} windows ({name})"
        for name, own in lengths.items()
        if attribute(report, name)["value"] is not None
    ]


def _next_step(utility, private, warnings, not_tested):
    """Returns one recommendation."""
    for row in private:
        if row["status"] == NOT_MEASURED:
            return (
                f"Test {row['attribute']} on more persons and classes "
                f"({row['reason']}): train with --split subject and other "
                "--test-people, or run jaxanon evaluate DIR --leave-one-out."
            )
    exposed = [row["attribute"] for row in private if row["status"] != GREEN]
    if exposed:
        return (
            f"Strengthen the protection of {', '.join(exposed)}: train with another "
            "recipe or for more epochs, then evaluate again."
        )
    if utility["status"] == NOT_MEASURED:
        return f"Test utility on other data ({utility['reason']})."
    if utility["status"] != GREEN:
        return "Recover utility: train with a weaker protection or for more epochs."
    impossible = f"{GENERAL_ATTACKS['recordings']} ("
    if [each for each in not_tested if not each.startswith(impossible)]:
        return (
            "Run the attacks that were not run: jaxanon evaluate DIR --overwrite "
            f"--attacks {','.join((*GENERAL_ATTACKERS, *GENERAL_ATTACKS))}"
        )
    leaking = [row["attribute"] for row in warnings if row["status"] != GREEN]
    if leaking:
        return f"Add {', '.join(leaking)} to --private if it must be hidden."
    return "Export the model: jaxanon export DIR."
