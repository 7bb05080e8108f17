"""A report's findings in sentences, and how each number was obtained."""

from typing import NamedTuple

from jaxanon.report.attack_words import DISTORTION, METHODS, TITLES

LEAKING = (
    "Windows are split at random and standardised by all of them, as the published "
    "programs did. Neighbouring windows overlap, so nearly every test window has twins "
    "in training: no figure here, of privacy least of all, holds for new windows."
)

UNREADABLE = "not readable even from raw windows"

LEAST = 0.02  # Above what guessing gives, to be called readable.


class Shown(NamedTuple):
    """How well windows of classes to show are told apart, and by who only guesses."""

    accuracy: float
    recall: float  # mean over the classes
    majority: float  # accuracy of always naming the commonest; 0 where one is left
    chance: float  # recall of guessing; likewise


def percent(share: float) -> str:
    """``0.934`` as ``93.4 %``."""
    return f"{100 * share:.1f} %"


def exposure(worst: float, raw: float, chance: float) -> str:
    """How well an attribute is hidden, in two words.

    Graded by the part of the way from chance to raw windows that the worst adversary
    goes; where raw windows tell nothing either, there was nothing to hide.

    Example:
      >>> exposure(worst=0.55, raw=0.99, chance=0.5)
      'well hidden'
    """
    if raw - chance < LEAST:
        return UNREADABLE
    way = (worst - chance) / (raw - chance)
    grades = ((0.15, "well hidden"), (0.4, "mostly hidden"), (0.75, "partly exposed"))
    return next((grade for bound, grade in grades if way <= bound), "exposed")


def adversaries(report: dict, attribute: str) -> dict[str, dict]:
    """Scores on anonymized windows of everyone who goes for ``attribute``."""
    found = {}
    intrusive = report["intrusive"].get(attribute)
    if intrusive:
        found["judge trained on raw windows"] = intrusive["anonymized"]
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
    each = "how long a round takes only a second call would have told"
    if told["round_s"] is not None:
        each = f"a round {1e3 * told['round_s']:.3g} ms"
    rounds = f"rounds {told['first_round']:,} to {told['last_round']:,}"
    found = [
        f"Compiling took {told['compile_s']:.1f} s, {each} ({rounds} on "
        f"{told['device']})."
    ]
    if told["memory_bytes"] is not None:
        memory = f"{told['memory_bytes'] / 1e6:,.0f} MB"
        found.append(f"The {told['memory_of']} held {memory} at most.")
    return found


def unfinished(told: dict | None, what: str = "epochs") -> list[str]:
    """That a run was interrupted.

    Args:
      told: of ``Run.unfinished`` or ``StreetRun.unfinished``.
      what: of which so many are done.

    Example:
      >>> unfinished({"done": 2.0, "asked": 5})
      ['Unfinished: 2 of 5 epochs are done; train or serve on with --resume.']
    """
    if told is None:
        return []
    done, asked = told["done"], told["asked"]
    rest = "are done; train or serve on with --resume."
    return [f"Unfinished: {done:.4g} of {asked} {what} {rest}"]


def headline(report: dict) -> list[str]:
    """What survives, what is hidden and from whom: one sentence per attribute."""
    lines = _of_utility(report)
    hidden = list(report["intrusive"])
    extra = ["subject"] if report["linkage"] and "subject" not in hidden else []
    for attribute in hidden + extra:
        raw, found = raw_scores(report, attribute), adversaries(report, attribute)
        if raw is None or not found:
            lines.append(f"{attribute} could not be attacked with this data.")
            continue
        name = max(found, key=lambda name: found[name]["balanced_accuracy"])
        worst = found[name]
        reached = percent(worst["balanced_accuracy"])
        grade = exposure(
            worst["balanced_accuracy"], raw["balanced_accuracy"], worst["chance"]
        )
        aside = "" if attribute in hidden else ", though nobody asked to hide it"
        lines.append(
            f"{attribute} is {grade}{aside}: the worst adversary ({name}) reaches "
            f"{reached} balanced accuracy, where guessing gives "
            f"{percent(worst['chance'])} and raw windows "
            f"{percent(raw['balanced_accuracy'])}."
        )
    if report["dataset"]["split"] == "released":
        lines.append("The split leaks test windows into training: see below.")
    return lines


def _of_utility(report) -> list[str]:
    """What survives of the classes to show, and what is told of those to hide."""
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
    """Public classes that the report's method hides; none of most methods."""
    config = (report["method"] or {}).get("config")
    return tuple(config.get("hide", ())) if isinstance(config, dict) else ()


def among(scores: dict, without: tuple[str, ...] = ()) -> Shown:
    """What is told of windows of some classes alone.

    Args:
      scores: of ``metrics.scores``.
      without: names of classes that do not count; where nothing is left, all do.

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


def protocol(report: dict) -> dict[str, str]:
    """How each number was obtained, by section, in plain words."""
    data, share = report["dataset"], f"{100 * report['share']:g} %"
    strangers = data["test_subjects_in_training"] < data["test_subjects"]
    text = {
        "Split": LEAKING
        if data["split"] == "released"
        else f"Training and test windows are split by {data['split']}, never by "
        "window, since neighbouring windows overlap. Windows are standardised with "
        "mean and standard deviation of the training rows.",
        "Utility": f"A classifier trained on raw training windows names "
        f"{data['public']} for all test windows, raw and anonymized. The anonymizer "
        "has never met this classifier. Where public classes were to be hidden, the "
        "first sentence is of windows of the others.",
        "Intrusive inference": "The same for each private attribute: a classifier "
        "trained on raw training windows reads anonymized test windows. It is the weak "
        "adversary, and an anonymizer that merely swaps classes fools it.",
        "Re-identification": "The adversary owns the anonymizer. He runs it on "
        f"{share} of the training windows of each class, whose labels he knows, trains "
        "on its output, stops early by windows that he holds back, and is scored on "
        "all anonymized test windows, none of which he trained on. The worst adversary "
        "counts.",
        "Linkage": "The same for the identity of the subject.",
        "Mutual information": "The first 25 principal components of up to 2,000 test "
        "windows are each compared with the attribute by a nearest-neighbour estimator "
        "(k = 3); the mean is given, in nats. 0 is nothing.",
        "Distortion": DISTORTION,
        **{TITLES[name]: METHODS[name] for name in report["attacks"]},
        "Chance and majority": "Chance is a uniform guess among the classes that occur "
        "in the test windows, majority is always guessing the most frequent one. A "
        "balanced accuracy (mean recall of the classes) of chance level is what a "
        "guess of either kind reaches; an AUC or equal error rate of 50 % likewise.",
    }
    if report["linkage"] is None:
        text["Linkage"] = (
            "Left out: there are no two test subjects with three windows of one "
            "activity each, of which the last shares no samples with the first."
        )
    elif strangers:
        text["Linkage"] = (
            f"{data['test_subjects'] - data['test_subjects_in_training']} of "
            f"{data['test_subjects']} test subjects do not occur in training, so the "
            "adversary gets the first half, in time, of each test subject's "
            "anonymized windows of each activity with the subject's name, and is "
            "scored on the last 40 %, less the windows that share samples with one "
            "that he knows. The raw value is the same on raw windows."
        )
    return text
