"""``evaluate``: what anonymized windows keep, what they hide, and from whom."""

import os
from collections.abc import Callable, Sequence

import jax

from jaxanon import report, trial
from jaxanon.attacks import Judges
from jaxanon.datasets import Data
from jaxanon.summary import aggregate
from jaxanon.trial_checks import check_choices, check_data

__all__ = ["aggregate", "evaluate", "evaluate_many", "raw_judges"]


def raw_judges(
    data: Data, *, seed: int = 0, progress: Callable | None = None
) -> Judges:
    """Classifiers of raw windows, to share between evaluations on the same data.

    Args:
      data: of ``jaxanon.load``.
      seed: draws initial weights and batches.
      progress: called as ``progress(done, total, what)``.

    Returns:
      ``Judges`` for the public, the private and, where all test subjects occur in
      training, the subject attribute.

    Raises:
      ValueError: as ``evaluate``, of the data.
    """
    check_data(data)
    tell = _teller(progress, len(trial.judged(data)))
    return trial.train_judges(trial.root(seed), data, tell)


def evaluate(
    run,
    data: Data,
    *,
    attackers: Sequence[str] = ("mlp", "forest"),
    seed: int = 0,
    share: float = 0.2,
    judges: Judges | None = None,
    out: str | os.PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """Evaluates an anonymizer as a serious adversary would.

    Utility and intrusive inference are judged by classifiers trained on raw windows;
    re-identification and linkage by attackers trained on the anonymizer's output for
    a share of the *training* windows, and scored on all anonymized test windows. The
    same seed gives the same report.

    Args:
      run: what ``train`` or ``open_run`` returned; only ``anonymize(key, windows)``
        and, if present, ``history``, ``folder`` and ``method`` are used.
      data: of ``jaxanon.load``; physical units.
      attackers: names of ``attacks.ATTACKERS``; the worst one counts.
      seed: of everything drawn here.
      share: of each class's training windows whose labels an attacker knows, (0, 1].
      judges: of ``raw_judges``, to spare training them again.
      out: folder for ``report.json``, ``report.html`` and figures, which replace
        older ones; None is ``run.folder``, and nothing is written if that is None.
      progress: called as ``progress(done, total, what)`` before each piece of work.

    Returns:
      A dict fit for strict JSON: ``utility``, ``intrusive``, ``reidentification``
      (by private attribute), ``linkage`` (None where there are no two test subjects
      to tell apart), ``mutual_information`` in nats, ``protocol`` in words,
      ``dataset``, ``method``, ``seed``, ``headline``. Every classifier's scores are
      those of ``metrics.scores``: accuracies in [0, 1] beside chance and majority
      level, a confusion matrix, and per-class figures.

    Raises:
      ValueError: for an empty or malformed part of the data, labels out of range, NaN
        or infinity before or after anonymization, an unknown attacker, a share that
        leaves a class fewer than two windows, judges that lack an attribute.
    """
    check_data(data)
    judged = trial.judged(data)
    check_choices(attackers, judges, judged)
    spec, strangers = data.spec, trial.strangers(data)
    attacked = [name for name in spec.private if name != "subject"]
    work = 3 + len(attackers) * (len(attacked) + trial.linkable(data))
    work += strangers + (0 if judges else len(judged))
    tell, key = _teller(progress, work), trial.root(seed)

    tell("anonymizing the test windows")
    anonymize = trial.make_safe(run, spec)
    safe = anonymize(jax.random.fold_in(key, trial.TEST), data.test.windows)
    case = trial.Trial(key, data, anonymize, safe, tuple(attackers), share, tell)
    retrained = {name: trial.reidentify(case, name) for name in attacked}
    linkage = _linkage(case)
    judges = judges or trial.train_judges(key, data, tell)
    scores = trial.judge(case, judges)
    if "subject" in spec.private and linkage and not strangers:
        retrained["subject"] = linkage["attackers"]
    result = {
        "seed": seed,
        "share": share,
        "attackers": list(attackers),
        "dataset": report.describe_data(data),
        "method": report.describe_method(run),
        "utility": {"attribute": spec.public, **scores[spec.public]},
        "intrusive": {name: scores.get(name) for name in spec.private},
        "reidentification": {
            name: {"attackers": by_name, "worst": trial.worst(by_name)}
            for name, by_name in retrained.items()
        },
        "linkage": linkage and {"raw": scores.get("subject", {}).get("raw"), **linkage},
        "mutual_information": trial.information(case),
    }
    result["headline"] = report.headline(result)
    result["protocol"] = report.protocol(result)
    tell("writing the report")
    folder = out if out is not None else getattr(run, "folder", None)
    if folder is not None:
        examples = report.choose_examples(data, safe)
        report.write(folder, result, examples, _curves(run))
    return result


def _curves(run) -> list[dict]:
    """The losses of a run's history, by round."""
    rows = getattr(run, "history", None) or ()
    return [{"round": row["round"], **row.get("losses", {})} for row in rows]


def _linkage(case: trial.Trial) -> dict | None:
    """Who sent a window: as re-identification, or by halves if senders are new."""
    if not trial.linkable(case.data):
        return None
    if not trial.strangers(case.data):
        by_name = trial.reidentify(case, "subject")
        return {
            "strangers": False,
            "attackers": by_name,
            "worst": trial.worst(by_name),
        }
    raw = trial.standardise(case.data.spec, case.data.test.windows)
    by_name = trial.link_strangers(case, case.safe, case.attackers)
    first = trial.link_strangers(case, raw, case.attackers[:1])[case.attackers[0]]
    return {
        "strangers": True,
        "raw": first,
        "attackers": by_name,
        "worst": trial.worst(by_name),
    }


def evaluate_many(runs: Sequence, data: Data, *, seed: int = 0, **options) -> dict:
    """Evaluates several anonymizers, such as the same method trained by ten seeds.

    Judges are trained once; the i-th run is evaluated with seed ``seed + i``.

    Args:
      runs: as ``evaluate`` takes one.
      data: of ``jaxanon.load``.
      seed: of the first run and of the judges.
      **options: of ``evaluate``, except ``out``: each run writes to its own folder.

    Returns:
      ``{"reports": [...], "summary": aggregate(reports)}``.

    Raises:
      ValueError: if ``runs`` is empty, and as ``evaluate``.
    """
    if not len(runs):
        raise ValueError("runs is empty: there is nothing to evaluate.")
    if "out" in options:
        raise ValueError(
            "out must be left out: each run writes to its own folder, run.folder."
        )
    if options.get("judges") is None:
        options["judges"] = raw_judges(
            data, seed=seed, progress=options.get("progress")
        )
    reports = [
        evaluate(run, data, seed=seed + index, **options)
        for index, run in enumerate(runs)
    ]
    return {"reports": reports, "summary": aggregate(reports)}


def _teller(progress, total):
    """Counts the calls, so that a piece of work need only say its name."""
    count = iter(range(total))
    return lambda what: progress and progress(next(count), total, what)
