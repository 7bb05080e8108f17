"""What an evaluation refuses, before any work is done where it can."""

import numpy as np

from jaxanon.attacks import attacker_data, halves
from jaxanon.attacks.reidentification import check_by_class
from jaxanon.core import checks
from jaxanon.core.run import Run

FEWEST = 10  # Test windows.

# What a run has to have, by attack.
HOOKS = {"inversion": "client_loss", "fingerprint": "choices"}


def check_given(runs, seeds, data) -> None:
    """Refuses bad data, wrong seeds, what anonymizes nothing, and another split."""
    check_data(data)
    for seed in seeds:
        checks.seed(seed)
    for run in runs:
        if not hasattr(run, "anonymize"):
            raise TypeError(
                "run must anonymize, as what ja.train gives does, got "
                f"{type(run).__name__}; open a folder by ja.open_run."
            )
        check_split(run, data)


def check_split(run, data) -> None:
    """ValueError for another split of the data set that ``run`` was trained on.

    Told by the mean and deviation of its training windows, which no two splits share;
    windows of tokens have none, and a file's own split is what the file says.
    """
    own, other = getattr(run, "spec", None), data.spec
    if own is None or (own.name, own.preset) != (other.name, other.preset):
        return
    if own.split == other.split == "given":
        return
    measured = [(*spec.mean, *spec.std) for spec in (own, other)]
    if len(measured[0]) != len(measured[1]) or not np.allclose(*measured, rtol=1e-6):
        raise ValueError(
            f"data is {other.name} split by {other.split!r} into other windows than "
            f"the run was trained on (split by {own.split!r}), so that some of those "
            "may be tested; load it by the same split and seed."
        )


def check_data(data) -> None:
    """ValueError for windows or labels that do not fit ``data.spec``."""
    spec = data.spec
    for side in ("train", "test"):
        windows, labels = getattr(data, side)
        shape = np.shape(windows)
        if len(shape) != 3 or shape[1:] != (spec.time, len(spec.channels)):
            raise ValueError(
                f"data.{side}.windows must be float[N, {spec.time}, "
                f"{len(spec.channels)}] as its spec says, got shape {shape}."
            )
        if not shape[0]:
            raise ValueError(
                f"data.{side}.windows is empty; choose another split, so that there "
                "is something to train on and to test with."
            )
        if side == "test" and shape[0] < FEWEST:
            raise ValueError(
                f"data.test.windows holds {shape[0]} windows, and mutual information "
                f"needs at least {FEWEST}; choose another split."
            )
        _finite(f"data.{side}.windows", windows, "drop or mend those windows first")
        for attribute in dict.fromkeys((spec.public, *spec.private, "subject")):
            where = f"data.{side}.labels"
            if attribute not in labels:
                raise ValueError(
                    f"{where} lacks attribute {attribute!r} of the spec; it has "
                    f"{sorted(labels)}."
                )
            spec.num_classes(attribute)  # A number is refused.
            classes, own = spec.classes[attribute], labels[attribute]
            checks.labels(attribute, own, shape[0], classes, where)


def _finite(name, windows, remedy):
    bad = ~np.isfinite(windows).all((1, 2))
    if bad.any():
        raise ValueError(
            f"{name} holds NaN or infinity in {bad.sum()} of {len(bad)} windows, first "
            f"in window {bad.argmax()}; {remedy}."
        )


def check_safe(safe, windows) -> None:
    """ValueError for anonymized windows of another shape, or not finite."""
    if safe.shape != np.shape(windows):
        raise ValueError(
            f"run.anonymize must keep the shape of its windows, {np.shape(windows)}, "
            f"got {safe.shape}."
        )
    _finite("run.anonymize's output", safe, "train with a smaller learning rate")


def check_judges(judges, attributes) -> None:
    """ValueError for judges that lack an attribute."""
    lacking = set(attributes) - set(judges.infer if judges else attributes)
    if lacking:
        raise ValueError(
            f"judges lack {sorted(lacking)}; make them by train_raw_classifiers on "
            "this data."
        )


def check_shares(data, attributes, share: float) -> None:
    """ValueError for a share that leaves an attacker too little to train on."""
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}.")
    for attribute in attributes:
        attacker_data.check_counts(data.train.labels[attribute], share, attribute)


def check_attacks(runs, data, chosen, share: float, attacked, overlap) -> None:
    """ValueError for an attack that runs or data have nothing for.

    Args:
      runs: to be evaluated.
      data: that they are evaluated on.
      chosen: names of attacks beside those of retrained attackers.
      share: that an attacker knows of each class.
      attacked: attributes that they retrain for.
      overlap: of ``protocol.overlap``, of the test windows.
    """
    for run in runs:
        check_hooks(run, chosen)
        if "membership" in chosen:
            check_generator(run, data)
    people = len(np.unique(data.test.labels["subject"]))
    if "fingerprint" in chosen and people < 2:
        raise ValueError(
            "attack 'fingerprint' needs at least 2 test subjects to tell apart, got "
            f"{people}; leave it out, or test on more people."
        )
    for name in attacked:
        if "per_class" in chosen:
            own, public = (data.train.labels[x] for x in (name, data.spec.public))
            check_by_class(own, public, share, name)
        if "released" in chosen:
            attacker_data.check_counts(data.test.labels[name], share, name, side="test")
    if "pairs" in chosen:
        check_pairs(data, overlap)
        known = data.train.labels["subject"]
        if len(np.unique(known)) > 1:  # Whom test subjects could be more or less like.
            attacker_data.check_counts(known, share, "subject")


def check_hooks(run, chosen) -> None:
    """ValueError for an attack on something that the run does not have."""
    for attack, hook in HOOKS.items():
        if attack in chosen and not callable(getattr(run, hook, None)):
            method = getattr(getattr(run, "method", None), "name", "this run")
            raise ValueError(
                f"attack {attack!r} needs a run that has {hook}(...), and {method!r} "
                "has none; leave that attack out."
            )


def check_generator(run, data) -> None:
    """ValueError for a run that makes no windows, or data that tell nothing of it."""
    method = run.method if isinstance(run, Run) else None
    if method is None or method.generate is None:
        name = "this run" if method is None else method.name
        raise ValueError(
            "attack 'membership' needs a run that makes windows from nothing, and "
            f"{name!r} makes none; leave that attack out."
        )
    kinds = [kinds_of(part, data.spec.public) for part in (data.train, data.test)]
    shared = set(map(tuple, kinds[0])) & set(map(tuple, kinds[1]))
    alike = [sum(tuple(kind) in shared for kind in side) for side in kinds]
    if min(alike) < 2:
        raise ValueError(
            "attack 'membership' needs 2 test windows at least of people and classes "
            f"that occur in training, got {min(alike)}: others differ from training "
            "windows in more than that; split by time, not by person, or leave it out."
        )


def kinds_of(part, public: str) -> np.ndarray:
    """``int[N, 2]``, whose windows are, and of which public class."""
    labels = [np.asarray(part.labels[name]) for name in ("subject", public)]
    return np.stack(labels, 1)


def check_pairs(data, overlap) -> None:
    """ValueError where there are no two test subjects with two streams each."""
    subjects, public = np.asarray(data.test.labels["subject"]), data.spec.public
    known, _ = halves(subjects, data.test.labels[public], overlap=overlap)
    people = len(np.unique(subjects[known]))
    if people < 2:
        raise ValueError(
            "attack 'pairs' needs at least 2 test subjects with 3 windows of one "
            f"{public}, of which the last shares no samples with the first, got "
            f"{people}; leave it out, or test on more people."
        )
