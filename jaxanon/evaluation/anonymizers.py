"""``evaluate``: what anonymized windows keep, what they hide, and from whom."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxanon import metrics, report
from jaxanon.attacks import RawClassifiers
from jaxanon.core import checks, release
from jaxanon.core.programs import single
from jaxanon.core.run import Run
from jaxanon.datasets import Data
from jaxanon.datasets.spec import physical, standardise
from jaxanon.evaluation import attackers, energy, federated, protocol
from jaxanon.evaluation import checks as evaluation_checks
from jaxanon.evaluation.protocol import INFORMATION, Evaluation, EvaluationContext
from jaxanon.evaluation.summary import aggregate, of_runs
from jaxanon.training import profiling

__all__ = [
    "aggregate",
    "evaluate",
    "evaluate_each",
    "evaluate_many",
    "train_raw_classifiers",
]

SHARE = 0.2  # Of each class's training windows, whose labels an attacker knows.


@single
def train_raw_classifiers(
    data: Data, *, seed: int = 0, progress: Callable | None = None
) -> RawClassifiers:
    """Classifiers of raw windows, to share between evaluations on the same data.

    Args:
      data: of ``jaxanon.load``.
      seed: draws initial weights and batches.
      progress: called as ``progress(done, total, what)``.

    Returns:
      ``RawClassifiers`` for the public, the private and, where all test subjects occur
      in training, the subject attribute.

    Raises:
      ValueError: as ``evaluate``, of the data.
    """
    checks.seed(seed)
    evaluation_checks.check_data(data)
    return protocol.train_raw_classifiers(
        protocol.root(seed), data, _teller(progress, 1)
    )


def evaluate(
    run,
    data: Data,
    *,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
    share: float | None = None,
    judges: RawClassifiers | None = None,
    output_dir: str | os.PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """Evaluates an anonymizer as a serious adversary would.

    Utility and intrusive inference are judged by classifiers trained on raw windows;
    re-identification and linkage by attackers trained on the anonymizer's output for
    a share of the *training* windows, and scored on all anonymized test windows. The
    same seed gives the same report.

    ``attacks`` names who is retrained: ``mlp``, ``cnn``, ``lstm``, ``forest``,
    ``boosting``, ``logistic``, ``tree``, ``svm``; the worst one counts. It may name
    what is tried besides, by those attackers where it takes one:

    * ``intrusive``: every attacker trained on raw windows, beside the judges;
    * ``released``: training accuracy on an attacker's own share of the test windows,
      which published tables call re-identification;
    * ``per_class``: one attacker for each class of the public attribute;
    * ``stream``: evidence added up over 1, 5, 30, 100 windows of one subject;
    * ``pairs``: whether two anonymized streams are of one person;
    * ``self-training``: a support vector machine with hardly any labels;
    * ``inversion``: windows rebuilt from the gradients that a client sends, of a run
      with ``client_loss() -> (loss_fn, params)`` as ``attacks.invert_gradient`` takes
      them: the loss of one standardised window and its public class, one-hot;
    * ``fingerprint``: how unique a subject's models are, of a run that chooses one per
      window (``online_run``), with ``choices(key, windows) -> int[N]``;
    * ``membership``: whether a generator was trained on a window, by what it makes
      (``run.sample``) and how well it explains the window (``run.window_losses``).

    Of a run of a learner, which rewrites nothing, it tells how well clients predict
    instead, and nobody attacks: see ``jaxanon.evaluation.evaluate``.

    Args:
      run: what ``train`` or ``open_run`` returned; only ``anonymize(key, windows)``
        and, if present, ``history``, ``folder``, ``method`` and what an attack asks for
        are used.
      data: of ``jaxanon.load``; physical units.
      attacks: names from the above; without an attacker among them, and by default,
        there are ``mlp`` and ``forest``.
      seed: of everything drawn here.
      share: of each class's training windows whose labels an attacker knows, (0, 1];
        by default 0.2.
      judges: of ``train_raw_classifiers``, to spare training them again.
      output_dir: folder for ``report.json``, ``report.html`` and figures, which replace
        older ones; None is ``run.folder``, and nothing is written if that is None.
      progress: called as ``progress(done, total, what)`` before each piece of work.

    Returns:
      A dict fit for strict JSON: ``utility``, ``intrusive``, ``reidentification``
      (by private attribute), ``linkage`` (None where there are no two test subjects
      to tell apart), ``attacks`` (by name, rows of ``attribute``, ``attacker``,
      ``variant``, ``scores`` or other ``figures``), ``distortion``,
      ``mutual_information`` in nats, ``protocol`` in words, ``dataset``, ``method``,
      ``seed``, ``headline``. Every classifier's scores are those of
      ``metrics.scores``: accuracies in [0, 1] beside chance and majority level, a
      confusion matrix, and per-class figures.

    Raises:
      TypeError: if ``run`` is none, such as the name of its folder, or for a seed that
        is no whole number.
      ValueError: for an empty or malformed part of the data, another split of what the
        run was trained on, a seed beyond 32 bits, labels out of range, NaN
        or infinity before or after anonymization, an unknown attack or one that the
        run has nothing for, a class of one window, a share that leaves a class fewer
        than two windows, judges that lack an attribute; for attacks, a share or judges
        where a learner's run is evaluated.
    """
    own = isinstance(run, Run) and run.method.own_data is not None
    if own or (isinstance(run, Run) and run.method.predict is not None):
        if any(given is not None for given in (attacks, share, judges)):
            raise ValueError(
                f"{run.method.name} rewrites nothing, and there is nothing to attack; "
                "leave attacks, share and judges out."
            )
        if own:
            homes: Any = data
            return energy.evaluate(
                run, homes, seed=seed, output_dir=output_dir, progress=progress
            )
        return federated.evaluate(
            run, data, seed=seed, output_dir=output_dir, progress=progress
        )
    share = SHARE if share is None else share
    options = {"attacks": attacks, "share": share, "judges": judges}
    return _evaluate(
        [run], data, [seed], output_dir=output_dir, progress=progress, **options
    )[0]


@single
def _evaluate(runs, data, seeds, *, attacks, share, judges, output_dir, progress):
    """The reports of several runs, whose attackers train together."""
    evaluation_checks.check_given(runs, seeds, data)
    chosen = attackers.choose(attacks)
    _check(runs, data, chosen, share, judges)
    strangers = protocol.strangers(data) and protocol.linkable(data)
    names = protocol.attacked(data)
    trainings = len(chosen.attackers) * (bool(names) + strangers) + strangers
    work = 4 * len(runs) + trainings + len(chosen.attacks) + (judges is None)
    tell = _teller(progress, work)

    trials = [
        protocol.prepare_evaluation(run, seed, data, chosen.attackers, share, tell)
        for run, seed in zip(runs, seeds, strict=True)
    ]
    evidence = attackers.reidentify(trials, names)
    linkage = attackers.linkage(trials, evidence, strangers)
    judges = judges or protocol.train_raw_classifiers(trials[0].key, data, tell)
    case = EvaluationContext(trials, evidence, judges)
    further = {}
    for name in chosen.attacks:
        tell(f"attack: {name}")
        further[name] = attackers.ATTACKS[name](case)
    reports = []
    for index, one in enumerate(trials):
        rows = {name: found[index] for name, found in further.items()}
        reports.append(_report(one, evidence[index], linkage[index], judges, rows))
        tell("writing the report")
        folder = (
            output_dir if output_dir is not None else getattr(one.run, "folder", None)
        )
        if folder is not None:
            examples = report.choose_examples(data, one.safe)
            report.write(folder, reports[-1], examples, _curves(one.run))
    return reports


def _check(runs, data, chosen, share, judges):
    evaluation_checks.check_judges(judges, protocol.judged(data))
    evaluation_checks.check_shares(data, protocol.attacked(data), share)
    told = protocol.attacked(data), protocol.overlap(data.test)
    evaluation_checks.check_attacks(runs, data, chosen.attacks, share, *told)


def _report(one: protocol.Evaluation, evidence, linkage, judges, further) -> dict:
    spec = one.data.spec
    scores = protocol.judge(one, judges)
    retrained = {
        attribute: {
            name: protocol.score(one.data, attribute, told)
            for name, told in own.items()
        }
        for attribute, own in evidence.items()
        if attribute in spec.private
    }
    result = {
        "seed": one.seed,
        "share": one.share,
        "attackers": list(one.attackers),
        "dataset": report.describe_data(one.data),
        "method": report.describe_method(one.run),
        "utility": {"attribute": spec.public, **scores[spec.public]},
        "intrusive": {name: scores.get(name) for name in spec.private},
        "reidentification": {
            name: {"attackers": by_name, "worst": attackers.worst(by_name)}
            for name, by_name in retrained.items()
        },
        "linkage": linkage and {"raw": scores.get("subject", {}).get("raw"), **linkage},
        "attacks": further,
        "distortion": distortion(one),
        "mutual_information": information(one),
        "costs": profiling.read(getattr(one.run, "folder", None)),
    }
    result["headline"] = report.headline(result)
    result["headline"] += release.headline(one.run, one.data.test.windows)
    result["headline"] += report.unfinished(getattr(one.run, "unfinished", None))
    result["protocol"] = report.protocol(result)
    return result


def _curves(run) -> list[dict]:
    """The losses of a run's history, by round."""
    history = getattr(run, "history", None) or ()
    return [{"round": row["round"], **row["losses"]} for row in history]


def evaluate_each(
    runs: Sequence,
    data: Data,
    seeds: Sequence[int],
    *,
    attacks: Sequence[str] | None = None,
    share: float = SHARE,
    judges: RawClassifiers | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict]:
    """Evaluates several anonymizers side by side, each by a seed of its own.

    Judges are trained once, and attackers that are networks for all runs in one
    program; else each report is that of ``evaluate``, and goes to the run's folder.

    Args:
      runs: as ``evaluate`` takes one, of anonymizers; at least one.
      seeds: one for each run; judges that are trained here are trained by the first.
      data, attacks, share, judges, progress: of ``evaluate``.

    Returns:
      A report for each run.

    Raises:
      ValueError: without runs, for seeds of another number, and as ``evaluate``.
    """
    if not len(runs):
        raise ValueError("runs is empty: there is nothing to evaluate.")
    if len(seeds) != len(runs):
        raise ValueError(
            f"seeds must be one for each of {len(runs)} runs, got {seeds}."
        )
    options = {"attacks": attacks, "share": share, "judges": judges}
    return _evaluate(runs, data, seeds, output_dir=None, progress=progress, **options)


def evaluate_many(
    runs: Sequence,
    data: Data,
    *,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
    share: float = SHARE,
    judges: RawClassifiers | None = None,
    output_dir: None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """``evaluate_each``, summed up, such as of a method that was trained by ten seeds.

    The i-th run is evaluated with seed ``seed + i``.

    Args:
      runs: as ``evaluate`` takes one.
      data, attacks, share, judges, progress: of ``evaluate``.
      seed: of the first run and of the judges.
      output_dir: None; each run writes to its own folder.

    Returns:
      ``{"reports": [...], "summary": summary.of_runs(reports)}``.

    Raises:
      ValueError: if ``runs`` is empty, and as ``evaluate``.
    """
    if output_dir is not None:
        raise ValueError(
            "output_dir must be None: each run writes to its own folder, run.folder."
        )
    seeds = [seed + index for index in range(len(runs))]
    options = {"attacks": attacks, "share": share, "judges": judges}
    reports = evaluate_each(runs, data, seeds, progress=progress, **options)
    return {"reports": reports, "summary": of_runs(reports)}


def _teller(progress, total):
    """Counts the calls, so that a piece of work need only say its name."""
    count = iter(range(total))
    return lambda what: progress and progress(next(count), total, what)


MOST = 2000  # Test windows whose distortion is measured, spread evenly.


def information(trial: Evaluation) -> dict:
    """Mutual information in nats, ``raw`` and ``anonymized``, by attribute."""
    trial.tell("estimating mutual information")
    spec, _, test = trial.data
    raw = standardise(spec, test.windows)
    key = jax.random.fold_in(trial.key, INFORMATION)
    told = {}
    names = dict.fromkeys((spec.public, *spec.private, "subject"))
    for index, attribute in enumerate(names):
        # The same subset before and after, so that only the windows differ.
        told[attribute] = {
            name: metrics.mutual_information_table(
                jax.random.fold_in(key, index), windows, test.labels[attribute]
            )
            for name, windows in (("raw", raw), ("anonymized", trial.safe))
        }
    return told


def distortion(trial: Evaluation) -> dict:
    """How far test windows were moved: warping distance, statistics, steps.

    Returns:
      ``windows`` (how many were measured); ``warping``, mean and standard deviation
      over them of ``metrics.warping_distances`` in deviations of the training rows;
      ``statistics`` of ``metrics.statistics_kept`` in physical units; ``steps`` of
      ``metrics.step_errors``, None without an acceleration with gravity.
    """
    trial.tell("measuring distortion")
    spec, _, test = trial.data
    count = min(MOST, len(test.windows))
    rows = np.linspace(0, len(test.windows) - 1, count).round().astype(int)
    raw, safe = test.windows[rows], physical(spec, trial.safe[rows])
    moved = metrics.warping_distances(standardise(spec, raw), trial.safe[rows])
    felt, told = (
        metrics.acceleration(x, spec.channels, spec.units) for x in (raw, safe)
    )
    steps = None if felt is None else metrics.step_errors(felt, told, spec.rate_hz)
    return {
        "windows": count,
        "warping": {"mean": float(moved.mean()), "std": float(moved.std())},
        "statistics": metrics.statistics_kept(raw, safe, spec.channels),
        "steps": steps,
    }
