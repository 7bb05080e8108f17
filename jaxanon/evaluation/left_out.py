"""Leave-one-person-out evaluation: one training per person, each tested on that one."""

import json
import math
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence

import jax
import numpy as np

from jaxanon import __version__, attacks, metrics
from jaxanon.attacks import attackers as known_attackers
from jaxanon.core import checks, registry
from jaxanon.core.programs import single, state_is_finite
from jaxanon.core.run import Run
from jaxanon.datasets import Data, writing
from jaxanon.datasets.spec import physical, standardise
from jaxanon.evaluation import attackers as evaluation_attackers
from jaxanon.evaluation import checks as evaluation_checks
from jaxanon.evaluation import federated, intervals, protocol
from jaxanon.training import run_folder

FILE = "leave_one_out.json"

RAW, SAFE = "raw windows", "anonymized windows"  # Rows of raw-data classifiers.
PREDICTED = "predicted"  # Row of a learner.

LIMITS = {"accuracy": (0.0, 1.0), "r2": (-math.inf, 1.0)}
ERRORS = (0.0, math.inf)  # Limits of MAE and RMSE.

NOT_IN_TRAINING = "a left-out person does not occur in training"

CHECKED = 64  # Windows that two builds of a method anonymize for comparison.
TOLERANCE = 0.05  # Standard deviations; a few windows may differ by rounding.


@single
def leave_one_out(
    run: Run,
    data: Data,
    *,
    attackers: Sequence[str] | None = None,
    seed: int = 0,
    share: float = 0.2,
    layout: str | None = None,
    output_dir: str | os.PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict:
    """Trains a run's method once without each person, and tests it on that person.

    All trainings have the config, hyper-parameters, seed and epochs of ``run``, and are
    members of one compiled program. Each standardizes windows by its own training side.
    Windows of both sides of ``data`` take part. The run itself is not changed.

    An anonymizer rewrites the windows of the left-out person. Classifiers that were
    trained on raw windows of the others measure utility and inference, before and
    after. Retrained attackers train on anonymized windows of the others. A learner
    predicts the windows of the left-out person by the shared layers.

    Args:
      run: run of a registered anonymizer or learner.
      data: data of the run, in physical units, with windows of at least 2 people.
      attackers: retrained attackers, names of ``attacks.ATTACKERS``; None is ``mlp``
        and ``forest``. A learner has none.
      seed: random seed of the evaluation; trainings use that of the run.
      share: fraction of each class's training windows that attackers train on, in
        (0, 1].
      layout: "vmap" or "scan", for trainings side by side or one after another; None
        is "scan" on a CPU, else "vmap". It only changes rounding.
      output_dir: folder for ``leave_one_out.json``; None is ``run.folder``. Without a
        folder nothing is written.
      progress: callback ``progress(done, total, what)``, called before each group.

    Returns:
      A dict for strict JSON. ``attributes`` has ``goal``, ``chance`` and ``scores`` by
      attribute. Scores are by row (raw windows, anonymized windows, retrained
      attackers, predicted): ``mean``, ``std`` and ``interval`` (95 %, Student's t) of
      the accuracy over people, in [0, 1]; and of all predictions together
      ``balanced_accuracy``, ``auc``, ``intervals`` over persons (the jackknife) and
      ``not_measured``, the reason if the data cannot support them. A target has
      ``r2``, ``mae`` and ``rmse`` instead. ``persons`` holds ``subject``, ``windows``,
      ``diverged`` and ``scores`` by attribute and row.

    Raises:
      TypeError: if ``seed`` is not an integer.
      ValueError: if ``data`` does not fit the run or has fewer than 2 people, an
        attacker is unknown, or one program cannot train all folds (see
        ``sweeps.folds.plan``).

    Notes:
      With few people, training lacks much of the left-out person's class, so scores
      below chance level are possible.
    """
    from jaxanon.sweeps import folds as sweeps_folds  # It imports this package.
    from jaxanon.sweeps import program

    began = time.monotonic()
    checks.seed(seed)
    layout = program.choose_layout(layout)
    chosen = _choose(run, attackers)
    _check_run(run, data)
    folds = sweeps_folds.plan(run.method, data._replace(spec=run.spec))
    names = _attributes(run.spec)
    if run.method.guarantee is not None:
        warnings.warn(
            f"{len(folds.people)} trainings spend a separate privacy budget each; do "
            "not release them or these scores under the budget of the run.",
            UserWarning,
            stacklevel=3,
        )
    compiled = program.num_compiled()
    groups = sweeps_folds.groups(folds, layout)
    rows: dict[int, dict] = {}
    for number, group in enumerate(groups):
        told = ", ".join(run.spec.classes["subject"][p] for p in dict.fromkeys(group))
        step = _step(progress, 2 * number, 2 * len(groups))
        step(0, f"training without each of {told}")
        trained = sweeps_folds.train(
            folds,
            group,
            seed=run.config["seed"],
            epochs=run.config["epochs"],
            hyper=run.config.get("hyper", {}),
            layout=layout,
        )
        step(1, f"testing on each of {told}")
        trained = [one for one in trained if one.person not in rows]
        rows |= _test(run, folds, trained, chosen, names, seed, share)
    result = {
        "version": __version__,
        "method": {
            "name": run.method.name,
            "settings": run_folder.settings_of(run.method),
            "hyper": run.config.get("hyper", {}),
            "epochs": run.config["epochs"],
            "rounds": run.config["epochs"] * folds.per_epoch,
            "seed": run.config["seed"],
        },
        "dataset": {
            "name": run.spec.name,
            "preset": run.spec.preset,
            "public": run.spec.public,
            "private": list(run.spec.private),
            "fingerprint": run_folder.fingerprint(data),
        },
        "seed": seed,
        "share": share if chosen else None,
        "attackers": list(chosen),
        "programs": program.num_compiled() - compiled,
        "repeated_fraction": folds.repeated,
        **_summary(run.spec, names, rows),
        "duration_s": time.monotonic() - began,
    }
    result = json.loads(json.dumps(result, allow_nan=False))
    folder = run.folder if output_dir is None else output_dir
    if folder is not None:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        path = pathlib.Path(folder) / FILE
        writing.write(path, json.dumps(result, indent=2) + "\n")
    return result


def _step(progress, done, total):
    """Returns ``(offset, what)``, which reports progress."""
    return lambda offset, what: progress and progress(done + offset, total, what)


def _choose(run, names):
    """Returns the retrained attackers; ValueError for further attacks."""
    if run.method.predict is not None:
        if names is not None:
            raise ValueError(
                f"attacks must be None for a learner such as {run.method.name}, got "
                f"{list(names)}."
            )
        return ()
    chosen = evaluation_attackers.choose(
        evaluation_attackers.DEFAULT if names is None else names
    )
    if chosen.attacks:
        raise ValueError(
            f"attacks must be retrained attackers, {sorted(attacks.ATTACKERS)}, to "
            f"leave people out, got {list(chosen.attacks)}; use evaluate without "
            "leaving people out."
        )
    return chosen.attackers


def _check_run(run, data):
    evaluation_checks.check_split(run, data)
    if run.spec.classes != data.spec.classes or run.spec.time != data.spec.time:
        raise ValueError(
            f"data must be that of the run, with its classes and windows of "
            f"{run.spec.time} samples, got other data named {data.spec.name!r}."
        )


def _attributes(spec):
    """Returns the attributes to score; the subject cannot be scored."""
    names = [spec.public, *spec.private]
    return [name for name in names if name != "subject"]


def _test(run, folds, trained, chosen, names, seed, share) -> dict[int, dict]:
    """Returns truths and evidence of each left-out person, by attribute and row."""
    rows, finite = {}, []
    for one in trained:
        losses = one.history[-1]["losses"].values()
        good = all(map(math.isfinite, losses)) and state_is_finite(one.state)
        rows[one.person] = {"windows": len(one.data.test.windows), "diverged": not good}
        rows[one.person]["truth"] = one.data.test.labels
        if good:
            finite.append(one)
    if finite and run.method.predict is not None:
        for one in finite:
            rows[one.person] |= _predicted(run, folds, one, seed)
    elif finite:
        _check_units(run, finite[0], seed)
        for one, evidence in zip(
            finite, _attacked(run, finite, chosen, names, seed, share), strict=True
        ):
            rows[one.person]["evidence"] = evidence
    return rows


def _of_fold(run, one) -> Run:
    return Run(run.method, one.state, run.spec, None, one.history, run.config)


def _predicted(run, folds, one, seed):
    """Returns predictions of a learner: classes as one-hot rows, or numbers."""
    spec, truth = run.spec, dict(one.data.test.labels)
    values = federated.predictions(_of_fold(run, one), one.data, seed=seed)
    if spec.target is None:
        values = np.eye(spec.num_classes(spec.public), dtype=np.float32)[values]
    else:
        in_units = lambda each: folds.in_units(one.person, spec.public, each)
        truth[spec.public], values = in_units(truth[spec.public]), in_units(values)
    return {"truth": truth, "evidence": {spec.public: {PREDICTED: values}}}


def _attacked(run, folds, chosen, names, seed, share):
    """Returns evidence of classifiers and attackers, for each fold.

    Networks of all folds train in one program.
    """
    spec = run.spec
    keys = [
        jax.random.fold_in(protocol.root(seed), one.person) for one in folds
    ]  # By person, so that groups change nothing.
    raw = [standardise(spec, one.data.test.windows) for one in folds]
    anonymize = [protocol.make_safe(_of_fold(run, one), spec) for one in folds]
    safe = [
        anonymize_fn(jax.random.fold_in(key, protocol.TEST), one.data.test.windows)
        for anonymize_fn, key, one in zip(anonymize, keys, folds, strict=True)
    ]
    results = [{name: {} for name in names} for _ in folds]
    windows = [standardise(spec, one.data.train.windows) for one in folds]
    fit = known_attackers.get("mlp").fit_sets
    raw_keys = [jax.random.fold_in(key, protocol.RAW_CLASSIFIERS) for key in keys]
    for number, name in enumerate(names):
        labels = [one.data.train.labels[name] for one in folds]
        infer_fns = fit(
            _stacked([jax.random.fold_in(key, number) for key in raw_keys]),
            windows,
            labels,
            [spec.num_classes(name)] * len(folds),
            hold_back=False,
        )
        for by_name, infer, before, after in zip(
            results, infer_fns, raw, safe, strict=True
        ):
            by_name[name] |= {RAW: infer(before), SAFE: infer(after)}
    private = [name for name in names if name != spec.public]
    for attacker in chosen if private else ():
        targets, target_keys = [], []
        number = known_attackers.number(attacker)
        for index, one in enumerate(folds):
            for name in private:
                purpose = protocol.REIDENTIFY + sorted(spec.classes).index(name)
                key = jax.random.fold_in(keys[index], purpose)
                target_keys.append(jax.random.fold_in(key, number))
                targets.append(
                    attacks.Target(
                        anonymize[index],
                        one.data.train.windows,
                        one.data.train.labels[name],
                        spec.num_classes(name),
                        safe[index],
                        name,
                    )
                )
        outputs = iter(
            attacks.reidentify(_stacked(target_keys), attacker, targets, share=share)
        )
        for by_name in results:
            for name in private:
                by_name[name][f"{attacker} retrained"] = next(outputs)
    return results


def _stacked(keys):
    """Returns keys as one array; JAX's check of reused keys rejects ``jnp.stack``."""
    data = jax.numpy.stack([jax.random.key_data(key) for key in keys])
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(keys[0]))


def _check_units(run, one, seed):
    """Raises ValueError if anonymization depends on physical units.

    The folds share the statistics that are compiled into the method, and their windows
    are restated instead. This is the same only for standardized windows.
    """
    from jaxanon.sweeps import folds as sweeps_folds

    method, spec = run.method, run.spec
    if spec.tokens:
        return
    other_spec = sweeps_folds.restate(spec)
    rebuilt = registry.rebuild(method.name, other_spec, method.config, method.recipe)
    other = Run(rebuilt, one.state, other_spec, None, one.history, run.config)
    windows = standardise(spec, one.data.test.windows[:CHECKED])
    key = jax.random.fold_in(protocol.root(seed), len(spec.classes["subject"]))
    both = [
        standardise(each.spec, each.anonymize(key, physical(each.spec, windows)))
        for each in (_of_fold(run, one), other)
    ]
    differ = np.abs(both[0] - both[1]).max(axis=(1, 2)) > TOLERANCE
    if differ.mean() > 0.1:
        raise ValueError(
            f"one program must serve all folds, but windows anonymized by "
            f"{method.name} depend on physical units (bounds or values); train it once "
            "per person with --test-people instead."
        )


def _summary(spec, names, rows):
    """Returns ``attributes``, ``persons`` and ``not_measured`` of the report."""
    people = sorted(rows)
    persons = [
        {
            "subject": spec.classes["subject"][person],
            "windows": rows[person]["windows"],
            "diverged": rows[person]["diverged"],
            "scores": {},
        }
        for person in people
    ]
    known = [person for person in people if "evidence" in rows[person]]
    attributes = {}
    for name in names:
        if not known or name not in rows[known[0]]["evidence"]:
            continue  # A learner has only the public attribute.
        kinds = rows[known[0]]["evidence"][name]
        target = name in spec.targets
        scores: dict[str, dict] = {}
        for kind in kinds:
            each = {}
            for person in known:
                truth = rows[person]["truth"][name]
                values = rows[person]["evidence"][name][kind]
                each[person] = _score_person(spec, name, truth, values)
            for person, entry in zip(people, persons, strict=True):
                if person in each:
                    entry["scores"].setdefault(name, {})[kind] = each[person]
            scores[kind] = _over_people([*each.values()])
            if not target:
                scores[kind] = scores[kind]["accuracy"]
                scores[kind] |= _pooled(spec, name, kind, rows, known)
        attributes[name] = {
            "goal": "high" if name == spec.public else "low",
            "chance": None if target else 1 / spec.num_classes(name),
            "unit": spec.targets[name].unit if target else None,
            "scores": scores,
        }
    not_measured: dict[str, str | list] = {}
    if "subject" in (spec.public, *spec.private):
        not_measured["subject"] = NOT_IN_TRAINING
    if lost := [entry["subject"] for entry in persons if entry["diverged"]]:
        not_measured["diverged"] = lost
    return {"attributes": attributes, "persons": persons, "not_measured": not_measured}


def _score_person(spec, name, truth, values):
    """Returns scores of one person: the accuracy, or errors of a target."""
    if name not in spec.targets:
        return {"accuracy": float(np.mean(values.argmax(1) == truth))}
    return metrics.errors(truth, values)


def _over_people(scores: list[dict]) -> dict[str, dict]:
    """Returns mean, standard deviation and interval over people, by measure."""
    found: dict[str, dict] = {}
    for measure in scores[0]:
        values = np.array([one[measure] for one in scores])
        found[measure] = {
            "mean": float(values.mean()),
            "std": float(values.std(ddof=1)) if len(values) > 1 else None,
            "interval": None,
        }
        if len(values) >= intervals.MIN_PERSONS:
            bounds = LIMITS.get(measure, ERRORS)
            interval = intervals.student(values.mean(), values, bounds=bounds)
            found[measure]["interval"] = interval
    return found


def _pooled(spec, name, kind, rows, known):
    """Returns scores of all predictions together, with intervals over persons."""
    truth = np.concatenate([rows[person]["truth"][name] for person in known])
    evidence = np.concatenate(
        [rows[person]["evidence"][name][kind] for person in known]
    )
    persons = np.concatenate(
        [np.full(rows[person]["windows"], person) for person in known]
    )
    classes = spec.classes[name]
    reason = intervals.unsupported(truth, persons, classes)
    interval = None
    if reason is None:
        interval = intervals.over_persons(truth, evidence, persons)
    elif name == spec.public:
        reason = intervals.without_classes(truth, classes)
    found = metrics.scores(truth, evidence.argmax(1), classes, evidence=evidence)
    measured = reason is None
    return {
        "balanced_accuracy": found["balanced_accuracy"] if measured else None,
        "auc": found["auc"] if measured and kind != PREDICTED else None,
        "intervals": interval,
        "majority": found["majority"],
        "not_measured": reason,
    }
