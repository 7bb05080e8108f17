"""New clients of a trained learner: personal models and their data."""

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
    """Personalizes a run for new clients.

    Each new client takes the shared layers and fits personal layers to its windows of
    ``data.train`` with ``federated.personalize_new_client``. It sends nothing, and the
    state of the run is unchanged. For ``localized``, new clients train from scratch for
    as many steps as the other clients' rounds have, which is the baseline.

    Args:
      run: run of a learner.
      data: windows of new clients, with the run's channels, length and public classes.
        Subjects are numbered by the spec of ``data``. A client without windows in
        ``data.train`` predicts with the shared layers. Windows are standardised with
        the statistics of the run.
      num_rounds: local rounds of a new client, >= 0.

    Returns:
      A ``Run`` without a folder, for ``jaxanon.evaluate`` with the same ``data``.

    Raises:
      TypeError: if ``run`` is not a run of a learner.
      ValueError: if ``data`` has another shape, or ``num_rounds`` is negative.

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
            f"run must be of a learner, got {run.method.name}; train one of "
            "jaxanon.learners."
        )
    if num_rounds < 0:
        raise ValueError(f"num_rounds must be >= 0, got {num_rounds!r}.")
    _same_windows(run.spec, data.spec)
    subjects = {"subject": data.spec.classes["subject"]}
    spec = dataclasses.replace(run.spec, classes=run.spec.classes | subjects)
    init_key, _ = jax.random.split(jax.random.key(run.config["seed"]))
    initial = run.method.init(init_key).own
    personal = jax.tree.map(lambda leaf: leaf[0], initial)

    def model(key, state, population, client):
        rows = jax.tree.map(lambda leaf: leaf[client], population.rows)
        mask = population.mask[client]
        return federated.personalize_new_client(
            algorithm, key, state, personal, rows, mask, num_rounds
        )

    method: Any = run.method
    method = method._replace(
        spec=spec,
        prepare=lambda clients: population_of(spec, clients),
        predict=method.predict._replace(model=model),
    )
    described = run_folder.describe(method, data, run.state, epochs=0, seed=0)["data"]
    spent = ledger.rounds_spent(
        run.folder, run.state
    )  # Rounds of the training clients.
    alone = {"rounds_alone": num_rounds, "rounds_spent": spent}
    config = run.config | {"data": described | alone}
    return dataclasses.replace(
        run, method=method, spec=spec, config=config, folder=None
    )


def algorithm_of(run: Run):
    """Returns the federated algorithm of a learner; None for an anonymizer."""
    method = run.method
    if method.predict is None or method.federation is None:
        return None
    return method.federation.algorithm


def parted(data: Data, share: float, *, gap: int | None = None) -> Data:
    """Splits the windows of new clients into windows to fit on and to test.

    New clients have test windows but no training windows, as in a split by subject. The
    first windows of each public class (of all windows for a numeric target) are for
    fitting; after a gap, the rest is for testing.

    Args:
      data: data set, as ``jaxanon.load`` returns it.
      share: fraction of a class's windows to fit on, in (0, 1).
      gap: number of skipped windows between the two parts. None detects how many
        windows share samples with an earlier one, and also drops test windows that
        share samples with a fitted window of another class.

    Returns:
      ``Data`` of new clients only, with the spec of ``data``.

    Raises:
      ValueError: if ``share`` is out of range, there is no new client, or a part is
        empty.

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
            "data.test must include subjects without training windows, got none; split "
            "by subject."
        )
    detected, gap = gap is None, overlap(test) if gap is None else gap
    fit, tested = [], []
    for subject in new:
        for kind in np.unique(kinds[subjects == subject]):
            rows = np.flatnonzero((subjects == subject) & (kinds == kind))
            first = round(share * len(rows))
            fit.append(rows[:first])
            tested.append(rows[first + gap * bool(first) :])
    fit, tested = (np.sort(np.concatenate(rows)) for rows in (fit, tested))
    if detected and gap:  # Windows of two classes may share samples at a border.
        shared = lambda *pair: share_samples(*test.windows[np.array(pair)])
        tested = attacker_data.drop_overlapping(fit, tested, subjects, shared)
    if not len(fit) or not len(tested):
        raise ValueError(
            f"share must leave windows to fit on and to test, got {share} with "
            f"{len(fit)} and {len(tested)} windows and a gap of {gap}; choose another "
            "share or a smaller gap."
        )
    return Data(data.spec, take(test, fit), take(test, tested))


def overlap(windows: Windows) -> int:
    """Returns the maximum number of later windows that share samples with a window.

    It is derived from the smallest step between two successive windows of which the
    later starts with the last samples of the earlier, at least two different ones.

    Args:
      windows: ``float32[N, time, channels]``, in the order of their recordings.

    Returns:
      The number of windows, 0 without overlap.

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
    """Returns whether any pair has equal samples that are not constant."""
    near = np.flatnonzero((before[:, 0] == after[:, 0]).all(axis=1))
    same = (before[near] == after[near]).all(axis=(1, 2))
    return bool((same & (np.ptp(after[near], axis=1) > 0).any(axis=1)).any())


def _same_windows(spec, other):
    for name in ("time", "channels", "public"):
        if getattr(spec, name) != getattr(other, name):
            raise ValueError(
                f"data.spec.{name} must be {getattr(spec, name)!r} as in the run, got "
                f"{getattr(other, name)!r}; segment the recordings alike."
            )
    mine, theirs = (each.classes.get(spec.public) for each in (spec, other))
    if mine != theirs:
        raise ValueError(
            f"data.spec.classes[{spec.public!r}] must be {mine} as in the run, got "
            f"{theirs}; use the same names."
        )
