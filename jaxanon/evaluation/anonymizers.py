"""``evaluate``: utility of anonymized windows, and attacks on them."""

import os
import time
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

SHARE = 0.2  # Fraction of each class's training windows that attackers train on.


@single
def train_raw_classifiers(
    data: Data, *, seed: int = 0, progress: Callable | None = None
) -> RawClassifiers:
    """Trains classifiers on raw windows, to share between evaluations.

    Args:
      data: data set, as ``jaxanon.load`` returns it.
      seed: random seed of initial weights and batches.
      progress: callback ``progress(done, total, what)``.

    Returns:
      ``RawClassifiers`` for the public and private attributes, and for the subject if
      all test subjects occur in training.

    Raises:
      ValueError: if ``data`` is malformed (see ``evaluate``).
    """
    checks.seed(seed)
    evaluation_checks.check_data(data)
    return protocol.train_raw_classifiers(
        protocol.root(seed), data, _counted(progress, 1)
    )


def evaluate(
    run,
    data: Data,
    *,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
    share: float | None = None,
    raw_classifiers: RawClassifiers | None = None,
    output_dir: str | os.PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """Evaluates the utility of an anonymizer and attacks its output.

    Classifiers trained on raw windows measure utility and intrusive inference.
    Attackers measure re-identification and linkage: they train on a share of the
    *training* windows, anonymized, and are scored on all anonymized test windows. The
    same seed gives the same report. A run of a learner is not attacked; its clients are
    tested instead (see ``jaxanon.evaluation.federated.evaluate``).

    ``attacks`` names attackers (``mlp``, ``cnn``, ``lstm``, ``forest``, ``boosting``,
    ``logistic``, ``tree``, ``svm``) and further attacks:

    * ``intrusive``: every attacker trained on raw windows;
    * ``released``: training accuracy on an attacker's own share of the test windows,
      which published tables call re-identification;
    * ``per_class``: one attacker for each class of the public attribute;
    * ``stream``: evidence accumulated over 1, 5, 30 and 100 windows of one subject;
    * ``recordings``: attackers trained on windows that are cut from recordings as
      ``anonymize_recordings`` and devices release them, overlapping windows added up.
      Not measured if the windows of the data do not overlap;
    * ``pairs``: linkage of two anonymized streams of one person;
    * ``self-training``: a support vector machine with labels of 1 % of the windows;
    * ``inversion``: windows reconstructed from the gradients that a client sends. The
      run needs ``client_loss() -> (loss_fn, params)`` as ``attacks.invert_gradient``
      takes them;
    * ``fingerprint``: uniqueness of the models chosen for a subject. The run needs
      ``choices(key, windows) -> int[N]`` (``online_run``);
    * ``membership``: whether a generator was trained on a window, from its samples
      (``run.sample``) and its losses (``run.window_losses``).

    Args:
      run: result of ``train`` or ``open_run``. Only ``anonymize(key, windows)`` is
        required. The functions above, ``history``, ``folder`` and ``method`` are
        optional.
      data: data set in physical units, as ``jaxanon.load`` returns it.
      attacks: names from the lists above; None is ``mlp``, ``forest``, ``stream`` and
        ``recordings``.
        The attackers ``mlp`` and ``forest`` run if no attacker is named.
      seed: random seed of the evaluation.
      share: fraction of each class's training windows that attackers train on, in
        (0, 1]. None is 0.2.
      raw_classifiers: result of ``train_raw_classifiers``. None trains them.
      output_dir: folder for ``report.json``, ``report.html`` and figures. Older files
        are replaced. None is ``run.folder``; without a folder nothing is written.
      progress: callback ``progress(done, total, what)``, called before each step.

    Returns:
      A dict for strict JSON. ``intrusive`` and ``reidentification`` are by private
      attribute, ``attacks`` holds rows by name. The key ``linkage`` is None with fewer
      than two linkable test subjects. The key ``verdict`` is the result of
      ``jaxanon.report.verdict``, and ``headline`` has it in words. Scores
      are those of ``metrics.scores``, with ``interval`` (95 % over persons, by measure)
      and ``not_measured``, the reason if the data cannot support the score.

    Raises:
      TypeError: if ``run`` cannot anonymize or ``seed`` is not an integer.
      ValueError: if ``data`` is malformed, has too few windows or is not the split of
        the run. Other causes are windows that are not finite, an unknown or unsupported
        attack, a ``share`` that leaves a class fewer than two windows, and
        ``raw_classifiers`` that lack an attribute.
    """
    has_homes = isinstance(run, Run) and run.method.own_data is not None
    if has_homes or (isinstance(run, Run) and run.method.predict is not None):
        if any(option is not None for option in (attacks, share, raw_classifiers)):
            raise ValueError(
                "attacks, share and raw_classifiers must be None for "
                f"{run.method.name}, which does not anonymize windows; omit them."
            )
        if has_homes:
            homes: Any = data
            return energy.evaluate(
                run, homes, seed=seed, output_dir=output_dir, progress=progress
            )
        return federated.evaluate(
            run, data, seed=seed, output_dir=output_dir, progress=progress
        )
    share = SHARE if share is None else share
    options = {"attacks": attacks, "share": share, "raw_classifiers": raw_classifiers}
    return _evaluate(
        [run], data, [seed], output_dir=output_dir, progress=progress, **options
    )[0]


@single
def _evaluate(
    runs, data, seeds, *, attacks, share, raw_classifiers, output_dir, progress
):
    """Reports of several runs, whose attackers train together."""
    began = time.monotonic()
    evaluation_checks.check_runs(runs, seeds, data)
    chosen = attackers.choose(attacks)
    _check(runs, data, chosen, share, raw_classifiers)
    unseen = protocol.has_unseen_subjects(data) and protocol.linkable(data)
    names = protocol.attacked(data)
    trainings = len(chosen.attackers) * (bool(names) + unseen) + unseen
    steps = 4 * len(runs) + trainings + len(chosen.attacks) + (raw_classifiers is None)
    step = _counted(progress, steps)

    evaluations = [
        protocol.prepare_evaluation(run, seed, data, chosen.attackers, share, step)
        for run, seed in zip(runs, seeds, strict=True)
    ]
    evidence = attackers.reidentify(evaluations, names)
    linkage = attackers.linkage(evaluations, evidence, unseen)
    raw_classifiers = raw_classifiers or protocol.train_raw_classifiers(
        evaluations[0].key, data, step
    )
    context = EvaluationContext(evaluations, evidence, raw_classifiers)
    further = {}
    for name in chosen.attacks:
        step(f"attack: {name}")
        further[name] = attackers.ATTACKS[name](context)
    reports = []
    for index, one in enumerate(evaluations):
        rows = {name: by_run[index] for name, by_run in further.items()}
        reports.append(
            _report(one, evidence[index], linkage[index], raw_classifiers, rows)
        )
        step("writing the report")
        folder = (
            output_dir if output_dir is not None else getattr(one.run, "folder", None)
        )
        if folder is not None:
            examples = report.choose_examples(data, one.safe)
            footer = report.footer(time.monotonic() - began)
            report.write(folder, reports[-1], examples, _curves(one.run), footer)
    return reports


def _check(runs, data, chosen, share, raw_classifiers):
    evaluation_checks.check_raw_classifiers(
        raw_classifiers, protocol.evaluated_attributes(data)
    )
    evaluation_checks.check_shares(data, protocol.attacked(data), share)
    attacked, overlap = protocol.attacked(data), protocol.overlap(data.test)
    evaluation_checks.check_attacks(
        runs, data, chosen.attacks, share, attacked, overlap
    )


def _report(
    one: protocol.Evaluation, evidence, linkage, raw_classifiers, further
) -> dict:
    spec = one.data.spec
    scores = protocol.score_classifiers(one, raw_classifiers)
    retrained = {
        attribute: {
            name: protocol.score(one.data, attribute, outputs)
            for name, outputs in by_attacker.items()
        }
        for attribute, by_attacker in evidence.items()
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
            name: {"attackers": by_name, "strongest": attackers.strongest(by_name)}
            for name, by_name in retrained.items()
        },
        "linkage": linkage and {"raw": scores.get("subject", {}).get("raw"), **linkage},
        "attacks": further,
        "distortion": distortion(one),
        "mutual_information": information(one),
        "costs": profiling.read(getattr(one.run, "folder", None)),
    }
    result["verdict"] = report.verdict(result)
    result["headline"] = report.headline(result)
    result["headline"] += release.headline(one.run, one.data.test.windows)
    result["headline"] += report.unfinished(getattr(one.run, "unfinished", None))
    result["protocol"] = report.protocol(result)
    return result


def _curves(run) -> list[dict]:
    """Losses of a run by round."""
    history = getattr(run, "history", None) or ()
    return [{"round": row["round"], **row["losses"]} for row in history]


def evaluate_each(
    runs: Sequence,
    data: Data,
    seeds: Sequence[int],
    *,
    attacks: Sequence[str] | None = None,
    share: float = SHARE,
    raw_classifiers: RawClassifiers | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict]:
    """Evaluates several anonymizers, each with its own seed.

    Raw-data classifiers are trained once, and attackers that are networks train for all
    runs in one program. Each report equals that of ``evaluate``, and is written to the
    run's folder.

    Args:
      runs: runs of anonymizers, at least one.
      seeds: seed of each run. The first also trains the raw-data classifiers.
      data, attacks, share, raw_classifiers, progress: arguments of ``evaluate``.

    Returns:
      One report per run.

    Raises:
      ValueError: if ``runs`` is empty or ``seeds`` has another length; see also
        ``evaluate``.
    """
    if not len(runs):
        raise ValueError("runs must hold at least one run, got none.")
    if len(seeds) != len(runs):
        raise ValueError(
            f"seeds must hold one seed for each of {len(runs)} runs, got {seeds}."
        )
    options = {"attacks": attacks, "share": share, "raw_classifiers": raw_classifiers}
    return _evaluate(runs, data, seeds, output_dir=None, progress=progress, **options)


def evaluate_many(
    runs: Sequence,
    data: Data,
    *,
    attacks: Sequence[str] | None = None,
    seed: int = 0,
    share: float = SHARE,
    raw_classifiers: RawClassifiers | None = None,
    output_dir: None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """Evaluates runs of one method, such as ten seeds, and summarizes the reports.

    The i-th run is evaluated with seed ``seed + i``.

    Args:
      runs: runs of anonymizers, at least one.
      seed: seed of the first run and of the raw-data classifiers.
      output_dir: None. Each report is written to the folder of its run.
      data, attacks, share, raw_classifiers, progress: arguments of ``evaluate``.

    Returns:
      ``{"reports": [...], "summary": summary.of_runs(reports)}``.

    Raises:
      ValueError: if ``runs`` is empty or ``out`` is not None; see also ``evaluate``.
    """
    if output_dir is not None:
        raise ValueError(
            f"output_dir must be None, got {output_dir!r}; each report is written to "
            "run.folder."
        )
    seeds = [seed + index for index in range(len(runs))]
    options = {"attacks": attacks, "share": share, "raw_classifiers": raw_classifiers}
    reports = evaluate_each(runs, data, seeds, progress=progress, **options)
    return {"reports": reports, "summary": of_runs(reports)}


def _counted(progress, total):
    """Returns a callback that counts steps and takes only their description."""
    count = iter(range(total))
    return lambda what: progress and progress(next(count), total, what)


MAX_WINDOWS = 2000  # Test windows whose distortion is measured, evenly spaced.


def information(evaluation: Evaluation) -> dict:
    """Returns mutual information in nats, ``raw`` and ``anonymized``, by attribute."""
    evaluation.step("estimating mutual information")
    spec, _, test = evaluation.data
    raw = standardise(spec, test.windows)
    key = jax.random.fold_in(evaluation.key, INFORMATION)
    nats = {}
    names = dict.fromkeys((spec.public, *spec.private, "subject"))
    for index, attribute in enumerate(names):
        # The same subset before and after, so that only the windows differ.
        nats[attribute] = {
            name: metrics.mutual_information_table(
                jax.random.fold_in(key, index), windows, test.labels[attribute]
            )
            for name, windows in (("raw", raw), ("anonymized", evaluation.safe))
        }
    return nats


def distortion(evaluation: Evaluation) -> dict:
    """Measures the distortion of test windows: warping distance, statistics, steps.

    Returns:
      ``windows``, the number of measured windows. ``warping``, mean and standard
      deviation of ``metrics.warping_distances`` in standard deviations of the training
      rows. ``statistics`` of ``metrics.compare_statistics`` in physical units;
      ``steps`` of ``metrics.step_errors``, None without acceleration that includes
      gravity; ``steps_not_measured`` is then the reason.
    """
    evaluation.step("measuring distortion")
    spec, _, test = evaluation.data
    count = min(MAX_WINDOWS, len(test.windows))
    rows = np.linspace(0, len(test.windows) - 1, count).round().astype(int)
    raw, safe = test.windows[rows], physical(spec, evaluation.safe[rows])
    moved = metrics.warping_distances(standardise(spec, raw), evaluation.safe[rows])
    before, after = (
        metrics.acceleration(x, spec.channels, spec.units) for x in (raw, safe)
    )
    steps, reason = None, metrics.find_accelerometer(spec.channels, spec.units).reason
    if before is not None:
        steps = metrics.step_errors(before, after, spec.rate_hz)
    return {
        "windows": count,
        "warping": {"mean": float(moved.mean()), "std": float(moved.std())},
        "statistics": metrics.compare_statistics(raw, safe, spec.channels),
        "steps": steps,
        "steps_not_measured": reason,
    }
