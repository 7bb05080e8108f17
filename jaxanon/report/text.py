"""Sentences of a report."""

import re
from typing import NamedTuple

import jinja2

from jaxanon.report import verdicts


def percent(share: float, digits: int = 1) -> str:
    """Formats ``0.934`` as ``93.4 %``."""
    return f"{100 * share:.{digits}f} %"


def settings(chosen: dict) -> str:
    """Formats settings as text.

    Example:
      >>> settings({"alpha": 0.1, "lambda_": 0.4})
      'alpha 0.1, lambda 0.4'
    """
    return ", ".join(f"{name.rstrip('_')} {value}" for name, value in chosen.items())


def spread(score: dict) -> str:
    """Formats mean and standard deviation in percent; the mean alone of one run."""
    mean = f"{100 * score['mean']:.1f}"
    return mean if score["std"] is None else f"{mean} ± {100 * score['std']:.1f}"


def _one_line(value):
    """Replaces line breaks in a name by spaces."""
    return " ".join(value.split()) if isinstance(value, str) else value


_SENTENCES = jinja2.Environment(  # Plain text: the pages escape it.
    loader=jinja2.PackageLoader("jaxanon.report"),
    undefined=jinja2.StrictUndefined,
    finalize=_one_line,
    trim_blocks=True,
    lstrip_blocks=True,
)


def sentences(template: str, **values) -> list[str]:
    """Returns the non-empty paragraphs of a text template, one line each."""
    text = _SENTENCES.get_template(template).render(values)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [paragraph for paragraph in paragraphs if paragraph]


def interval(bounds) -> str:
    """Formats an interval in percent.

    Example:
      >>> interval([0.1234, 0.5])
      '12.3 to 50.0 %'
    """
    low, high = bounds
    return f"{100 * low:.1f} to {100 * high:.1f} %"


_SENTENCES.filters |= {"percent": percent, "interval": interval, "f": format}


class Attack(NamedTuple):
    """Heading and method of a further attack."""

    title: str
    method: str


def _attacks():
    named = (line.split(" = ", 1) for line in sentences("attacks.txt"))
    return {name: Attack(*text.split(": ", 1)) for name, text in named}


ATTACKS = _attacks()


def protocol(report: dict) -> dict[str, str]:
    """Returns the method of each number, by section."""
    lines = sentences("protocol.txt", **report, all_attacks=ATTACKS)
    return dict(line.split(": ", 1) for line in lines)


def guaranteed(privacy: dict | None) -> list[str]:
    """Returns sentences about a privacy guarantee.

    Args:
      privacy: summary of a guarantee in ``jaxanon.privacy.guarantee``; None without
        noise.
    """
    return sentences("guarantee.txt", privacy=privacy)


def costs(measured: dict) -> list[str]:
    """Returns sentences about the time and memory of training.

    Args:
      measured: result of ``jaxanon.training.profiling.read``.

    Example:
      >>> costs({"compile_s": 3.21, "round_s": 0.0125, "first_round": 1,
      ...     "last_round": 40, "memory_bytes": 512e6, "memory_of": "process",
      ...     "device": "cpu"})[0]
      'Compilation took 3.2 s and a round 12.5 ms (rounds 1 to 40 on cpu).'
    """
    return sentences("costs.txt", costs=measured)


def unfinished(progress: dict | None, unit: str = "epochs") -> list[str]:
    """Returns a sentence about an interrupted run; empty for a finished one.

    Args:
      progress: ``Run.unfinished``.
      unit: unit of its numbers.

    Example:
      >>> unfinished({"done": 2.0, "asked": 5})
      ['Unfinished: 2 of 5 epochs are done; continue with --resume.']
    """
    if progress is None:
        return []
    done = f"{progress['done']:.4g} of {progress['asked']} {unit}"
    return [f"Unfinished: {done} are done; continue with --resume."]


GRADES = {
    "green": "at chance level",
    "amber": "partly exposed",
    "red": "exposed",
    "not measured": "not measured",
}

UTILITY = {
    "green": "preserved",
    "amber": "partly preserved",
    "red": "lost",
    "not measured": "not measured",
}


def headline(report: dict) -> list[str]:
    """Returns the verdict in sentences: utility, each attribute, gaps, next step."""
    found = report.get("verdict") or verdicts.verdict(report)
    lines = [utility_sentence(found["utility"]), *hidden_classes(report)]
    lines += [private_sentence(row) for row in found["private"]]
    for row in found["warnings"]:
        lines.append(f"Warning (not in --private): {private_sentence(row)}")
    lines += recordings_sentences(report)
    if report["dataset"]["split"] == "official":
        lines.append("Warning: the split leaks test windows into training.")
    if found["not_tested"]:
        lines.append(f"Not tested: {'; '.join(found['not_tested'])}.")
    lines.append(f"Next step: {found['next_step']}")
    return lines


def recordings_sentences(report: dict) -> list[str]:
    """Returns a sentence that compares released recordings with windows."""
    reason = verdicts.unmeasured_recordings(report)
    if reason is not None:
        return [f"Recordings as released: not measured, because {reason}."]
    parts = []
    for one in verdicts.released_recordings(report):
        windows = "not measured" if one.windows is None else percent(one.windows)
        parts.append(
            f"{one.attribute} {percent(one.recordings)} (windows {windows}) by the "
            f"{one.attacker}"
        )
    if not parts:
        return []
    return [f"Balanced accuracy on recordings as released: {'; '.join(parts)}."]


def utility_sentence(row: dict) -> str:
    """Returns the verdict on utility as a sentence."""
    if row["status"] == verdicts.NOT_MEASURED:
        return f"{row['attribute']}: not measured, because {row['reason']}."
    bounds = row["interval"]
    sure = f" (95 % interval {interval(bounds)})" if bounds else " (no interval)"
    which = f" without {', '.join(row['without'])}" if row["without"] else ""
    return (
        f"{row['attribute']}{which} is {UTILITY[row['status']]} ({row['status']}): "
        f"{percent(row['value'])} balanced accuracy{sure}; raw windows "
        f"{percent(row['raw'])}, chance level {percent(row['chance'])}."
    )


def private_sentence(row: dict) -> str:
    """Returns the verdict on a private attribute as a sentence."""
    if row["status"] == verdicts.NOT_MEASURED:
        return f"{row['attribute']}: not measured, because {row['reason']}."
    raw = f", raw windows {percent(row['raw'])}" if row["raw"] is not None else ""
    other = ""
    if row["measure"] == "AUC":
        other = f" (balanced accuracy {percent(row['balanced_accuracy'])})"
    value = f"{percent(row['value'])} {row['measure']}"
    return (
        f"{row['attribute']} is {GRADES[row['status']]} ({row['status']}): the "
        f"strongest attack that was run ({row['attack']}) reaches {value}{other}, 95 % "
        f"interval over persons {interval(row['interval'])}; chance level "
        f"{percent(row['chance'])}{raw}."
    )


def hidden_classes(report: dict) -> list[str]:
    """Returns sentences about public classes that the method hides."""
    utility, lines = report["utility"], []
    for name in verdicts.to_hide(report):
        safe, raw = (
            next(row for row in utility[side]["per_class"] if row["name"] == name)
            for side in ("anonymized", "raw")
        )
        if safe["windows"]:
            lines.append(
                f"{utility['attribute']} {name} is a class to hide: the raw-data "
                f"classifier recognizes {percent(safe['recall'])} of its anonymized "
                f"windows and {percent(raw['recall'])} of its raw windows."
            )
    return lines
