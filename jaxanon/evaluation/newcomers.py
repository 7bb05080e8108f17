"""People who join when a learner has been trained: their models, and what they do."""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxanon import federated
from jaxanon.attacks import attacker_data
from jaxanon.core.run import Run
from jaxanon.datasets import Data, Windows
from jaxanon.datasets.custom_split import share_samples
from jaxanon.datasets.spec import take
from jaxanon.learners.learner import population_of
from jaxanon.privacy import ledger
from jaxanon.training import run_folder


def join(run: Run, data: Data, *, num_rounds: int = 1) -> Run:
    """The run as newcomers have it, to predict with and to evaluate on their windows.

    Each takes what the run shares and fits a model to their own windows of
    ``data.train``, as ``federated.personalize_new_client`` says: nothing of that is
    sent, and the run's state stays as it is. Of ``localized`` they train from scratch,
    for as many steps as the others' rounds have: what joining is to be compared with.

    Args:
      run: of a learner.
      data: of newcomers, in the run's channels, length and public classes. Subjects are
        numbered by its own spec; who has no window in ``data.train`` predicts with what
        is shared. Windows are standardised as the run's were.
      num_rounds: that a newcomer goes through alone, >= 0.

    Returns:
      A ``Run`` for ``jaxanon.evaluation.federated.predictions`` and
      ``jaxanon.evaluate``, given the same ``data``; without a folder.

    Raises:
      TypeError: for a run of a method, which learns nothing of its clients' own.
      ValueError: for data of another shape, or ``num_rounds`` below 0.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", split="subject")
      >>> learner = ja.learners.build("localized", data.spec, filters=(4,))
      >>> run = ja.train(learner, data, epochs=1, progress=False)
      >>> fresh = parted(data, 0.5)
      >>> report = ja.evaluate(join(run, fresh, num_rounds=2), fresh)
      >>> len(report["clients"]) == len(np.unique(fresh.test.labels["subject"]))
      True
    """
    algorithm = algorithm_of(run)
    if algorithm is None:
        raise TypeError(
            f"{run.method.name} is no learner, and nobody joins it; train one of "
            "jaxanon.learners."
        )
    if num_rounds < 0:
        raise ValueError(f"num_rounds must be >= 0, got {num_rounds!r}.")
    _same_windows(run.spec, data.spec)
    subjects = {"subject": data.spec.classes["subject"]}
    spec = dataclasses.replace(run.spec, classes=run.spec.classes | subjects)
    init_key, _ = jax.random.split(jax.random.key(run.config["seed"]))
    begun = getattr(run.method.init(init_key), "own", None)
    own = jax.tree.map(lambda leaf: leaf[0], begun)

    def model(key, state, population, client):
        rows = jax.tree.map(lambda leaf: leaf[client], population.rows)
        mask = population.mask[client]
        return federated.personalize_new_client(
            algorithm, key, state, own, rows, mask, num_rounds
        )

    method: Any = run.method
    method = method._replace(
        spec=spec,
        prepare=lambda clients: population_of(spec, clients),
        predict=method.predict._replace(model=model),
    )
    found = run_folder.describe(method, data, run.state, epochs=0, seed=0)["data"]
    spent = ledger.rounds_spent(run.folder, run.state)  # Theirs who trained it.
    alone = {"rounds_alone": num_rounds, "rounds_spent": spent}
    config = run.config | {"data": found | alone}
    return dataclasses.replace(
        run, method=method, spec=spec, config=config, folder=None
    )


def algorithm_of(run: Run):
    """What a learner's clients train by; None of a run that anonymizes."""
    method = run.method
    if method.predict is None or method.federation is None:
        return None
    return method.federation.algorithm


def parted(data: Data, share: float, *, gap: int | None = None) -> Data:
    """Newcomers' windows: some of each of their classes to fit on, the rest to test.

    Newcomers are who has test windows and none to train on, as in a split by subject.
    Of each of their classes of the public attribute (of all, if it is a number) the
    first are fitted on, in the order in which they are; after a gap the rest is tested.

    Args:
      data: of ``jaxanon.load``.
      share: of a class's windows that a newcomer fits on, in (0, 1).
      gap: windows between that are left out; None is as many as share samples with one
        before them, found by their samples, and of what is tested whatever shares some
        with a window of another class. Of whom too few are left nothing is tested.

    Returns:
      ``Data`` of newcomers alone, with the spec of ``data``.

    Raises:
      ValueError: for a share out of range, or if nobody is new or has anything left.

    Example:
      >>> from jaxanon.datasets import load
      >>> fresh = parted(load("smartwatch", split="subject"), 0.25)
      >>> len(fresh.train.windows) < len(fresh.test.windows)
      True
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be in (0, 1), got {share!r}.")
    test, kinds = data.test, data.test.labels[data.spec.public]
    if not np.issubdtype(kinds.dtype, np.integer):
        kinds = np.zeros(len(kinds), np.int32)
    subjects = test.labels["subject"]
    new = np.setdiff1d(subjects, data.train.labels["subject"])
    if not len(new):
        raise ValueError(
            "nobody is new: every subject of the test windows has windows to train on; "
            "take a split by subject."
        )
    found, gap = gap is None, overlap(test) if gap is None else gap
    fit, tried = [], []
    for subject in new:
        for kind in np.unique(kinds[subjects == subject]):
            rows = np.flatnonzero((subjects == subject) & (kinds == kind))
            first = round(share * len(rows))
            fit.append(rows[:first])
            tried.append(rows[first + gap * bool(first) :])
    fit, tried = (np.sort(np.concatenate(rows)) for rows in (fit, tried))
    if found and gap:  # Of one class the first may border on the last of another.
        shared = lambda *pair: share_samples(*test.windows[np.array(pair)])
        tried = attacker_data.drop_overlapping(fit, tried, subjects, shared)
    if not len(fit) or not len(tried):
        raise ValueError(
            f"share {share} leaves {len(fit)} windows to fit on and {len(tried)} to "
            f"test, with {gap} between; take another share, or a smaller gap."
        )
    return Data(data.spec, take(test, fit), take(test, tried))


def overlap(windows: Windows) -> int:
    """How many windows after one share samples with it, at most.

    By the smallest step between two windows in succession, the later of which begins
    with the samples that the earlier ends with, two at least and not all the same.

    Args:
      windows: ``float32[N, time, channels]``, in the order of their recordings.

    Returns:
      0 where none do.

    Example:
      >>> stream = np.arange(10.0, dtype=np.float32)[:, None]
      >>> overlap(Windows(np.stack([stream[i : i + 4] for i in (0, 2, 4)]), {}))
      1
    """
    before, after = windows.windows[:-1], windows.windows[1:]
    time = windows.windows.shape[1]
    for step in range(1, time - 1):
        if len(before) and _any_equal(before[:, step:], after[:, : time - step]):
            return -(-time // step) - 1
    return 0


def _any_equal(before, after):
    """Whether a pair is the same in all samples, and they are not all one."""
    near = np.flatnonzero((before[:, 0] == after[:, 0]).all(axis=1))
    same = (before[near] == after[near]).all(axis=(1, 2))
    return bool((same & (np.ptp(after[near], axis=1) > 0).any(axis=1)).any())


def _same_windows(spec, other):
    for name in ("time", "channels", "public"):
        if getattr(spec, name) != getattr(other, name):
            raise ValueError(
                f"newcomers' data have {name} {getattr(other, name)!r}, and the run's "
                f"{getattr(spec, name)!r}; cut them alike."
            )
    mine, theirs = (each.classes.get(spec.public) for each in (spec, other))
    if mine != theirs:
        raise ValueError(
            f"newcomers' classes of {spec.public} are {theirs}, and the run's {mine}; "
            "name them alike."
        )
