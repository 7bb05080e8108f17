"""Checks of the arguments of an evaluation."""

import numpy as np

from jaxanon.attacks import attacker_data, halves
from jaxanon.attacks.reidentification import check_by_class
from jaxanon.core import checks
from jaxanon.core.run import Run

MIN_WINDOWS = 10  # Test windows.

# Function that a run needs for an attack.
HOOKS = {"inversion": "client_loss", "fingerprint": "choices"}


def check_runs(runs, seeds, data) -> None:
    """Raises an error for bad data or seeds, or runs that do not fit the data."""
    check_data(data)
    for seed in seeds:
        checks.seed(seed)
    for run in runs:
        if not hasattr(run, "anonymize"):
            raise TypeError(
                f"run must have anonymize(key, windows), got {type(run).__name__}; "
                "open a run folder with ja.open_run."
            )
        check_split(run, data)


def check_split(run, data) -> None:
    """Raises ValueError if ``data`` is another split than that of ``run``.

    Splits are compared by mean and standard deviation of their training windows.
    Windows of tokens have neither, and a file defines its own split.
    """
    own, other = getattr(run, "spec", None), data.spec
    if own is None or (own.name, own.preset) != (other.name, other.preset):
        return
    if own.split == other.split == "given":
        return
    measured = [(*spec.mean, *spec.std) for spec in (own, other)]
    if len(measured[0]) != len(measured[1]) or not np.allclose(*measured, rtol=1e-6):
        raise ValueError(
            f"data must be the split that the run was trained on ({own.split!r}), got "
            f"{other.name} split by {other.split!r} into other windows; load it with "
            "the same split and seed."
        )


def check_data(data) -> None:
    """Raises ValueError for windows or labels that do not fit ``data.spec``."""
    spec = data.spec
    for side in ("train", "test"):
        windows, labels = getattr(data, side)
        shape = np.shape(windows)
        if len(shape) != 3 or shape[1:] != (spec.time, len(spec.channels)):
            raise ValueError(
                f"data.{side}.windows must be float[N, {spec.time}, "
                f"{len(spec.channels)}] as in its spec, got shape {shape}."
            )
        if not shape[0]:
            raise ValueError(
                f"data.{side}.windows must hold at least one window, got none; choose "
                "another split."
            )
        if side == "test" and shape[0] < MIN_WINDOWS:
            raise ValueError(
                f"data.test.windows must hold at least {MIN_WINDOWS} windows for "
                f"mutual information, got {shape[0]}; choose another split."
            )
        _finite(f"data.{side}.windows", windows, "remove or repair those windows first")
        for attribute in dict.fromkeys((spec.public, *spec.private, "subject")):
            where = f"data.{side}.labels"
            if attribute not in labels:
                raise ValueError(
                    f"{where} must include attribute {attribute!r} of the spec, got "
                    f"{sorted(labels)}."
                )
            spec.num_classes(attribute)  # Raises for numeric targets.
            classes, values = spec.classes[attribute], labels[attribute]
            checks.labels(attribute, values, shape[0], classes, where)


def _finite(name, windows, remedy):
    bad = ~np.isfinite(windows).all((1, 2))
    if bad.any():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {bad.sum()} of {len(bad)} "
            f"windows, first in window {bad.argmax()}; {remedy}."
        )


def check_safe(safe, windows) -> None:
    """Raises ValueError for anonymized windows of another shape, or not finite."""
    if safe.shape != np.shape(windows):
        raise ValueError(
            f"run.anonymize must keep the shape of its windows, {np.shape(windows)}, "
            f"got {safe.shape}."
        )
    _finite("run.anonymize's output", safe, "train with a smaller learning rate")


def check_raw_classifiers(raw_classifiers, attributes) -> None:
    """Raises ValueError if raw-data classifiers lack an attribute."""
    lacking = set(attributes) - set(
        raw_classifiers.infer if raw_classifiers else attributes
    )
    if lacking:
        raise ValueError(
            f"raw_classifiers must include {sorted(lacking)}; create them with "
            "train_raw_classifiers on this data."
        )


def check_shares(data, attributes, share: float) -> None:
    """Raises ValueError for a share that leaves an attacker too few windows."""
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}.")
    for attribute in attributes:
        attacker_data.check_counts(data.train.labels[attribute], share, attribute)


def check_attacks(runs, data, chosen, share: float, attacked, overlap) -> None:
    """Raises ValueError for an attack that the runs or the data do not support.

    Args:
      runs: runs to evaluate.
      data: data of the evaluation.
      chosen: names of further attacks. See ``attackers.ATTACKS``.
      share: fraction of each class that attackers train on.
      attacked: attributes of retrained attackers.
      overlap: ``protocol.overlap`` of the test windows.
    """
    for run in runs:
        check_hooks(run, chosen)
        if "membership" in chosen:
            check_generator(run, data)
    people = len(np.unique(data.test.labels["subject"]))
    if "fingerprint" in chosen and people < 2:
        raise ValueError(
            f"attack 'fingerprint' needs at least 2 test subjects, got {people}; omit "
            "it, or test on more people."
        )
    for name in attacked:
        if "per_class" in chosen:
            private, public = (data.train.labels[x] for x in (name, data.spec.public))
            check_by_class(private, public, share, name)
        if "released" in chosen:
            attacker_data.check_counts(data.test.labels[name], share, name, side="test")
    if "pairs" in chosen:
        check_pairs(data, overlap)
        known = data.train.labels["subject"]
        if len(np.unique(known)) > 1:  # A classifier of subjects needs two.
            attacker_data.check_counts(known, share, "subject")


def check_hooks(run, chosen) -> None:
    """Raises ValueError if a run lacks the function that an attack needs."""
    for attack, hook in HOOKS.items():
        if attack in chosen and not callable(getattr(run, hook, None)):
            method = getattr(getattr(run, "method", None), "name", "this run")
            raise ValueError(
                f"attack {attack!r} needs a run with {hook}(...), got {method!r}; omit "
                "that attack."
            )


def check_generator(run, data) -> None:
    """Raises ValueError unless membership inference is possible."""
    method = run.method if isinstance(run, Run) else None
    if method is None or method.generate is None:
        name = "this run" if method is None else method.name
        raise ValueError(
            f"attack 'membership' needs a run that generates windows, got {name!r}; "
            "omit that attack."
        )
    kinds = [kinds_of(part, data.spec.public) for part in (data.train, data.test)]
    shared = set(map(tuple, kinds[0])) & set(map(tuple, kinds[1]))
    alike = [sum(tuple(kind) in shared for kind in side) for side in kinds]
    if min(alike) < 2:
        raise ValueError(
            "attack 'membership' needs at least 2 test windows of people and classes "
            f"that occur in training, got {min(alike)}; split by time instead of by "
            "person, or omit the attack."
        )


def kinds_of(part, public: str) -> np.ndarray:
    """Returns ``int[N, 2]``: subject and public class of each window."""
    labels = [np.asarray(part.labels[name]) for name in ("subject", public)]
    return np.stack(labels, 1)


def check_pairs(data, overlap) -> None:
    """Raises ValueError unless two test subjects have two streams each."""
    subjects, public = np.asarray(data.test.labels["subject"]), data.spec.public
    known, _ = halves(subjects, data.test.labels[public], overlap=overlap)
    people = len(np.unique(subjects[known]))
    if people < 2:
        raise ValueError(
            "attack 'pairs' needs at least 2 test subjects with 3 windows of one "
            f"{public}, the last without samples of the first, got {people}; omit it, "
            "or test on more people."
        )
