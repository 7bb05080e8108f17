"""Useful and sensitive inferences from released windows, by ε."""

import os
from collections.abc import Callable, Sequence

import jax

from jaxanon import report
from jaxanon.attacks import attackers
from jaxanon.core import checks, release
from jaxanon.core.run import Run
from jaxanon.datasets.spec import standardise
from jaxanon.evaluation import protocol

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def curve(
    run: Run,
    data,
    epsilons: Sequence[float] = EPSILONS,
    *,
    attacker: str = "forest",
    seed: int = 0,
    output_dir: str | os.PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict]:
    """Scores inferences from a run's releases at every ε.

    A classifier per attribute trains on released training windows and is scored on
    released test windows. The public attribute is the useful inference, the private
    ones are sensitive.

    Args:
          run: run of DEEProtect.
      data: data set that the run was trained on.
      epsilons: ε of a window, each > 0.
      attacker: classifier. See ``evaluate`` for the names.
      seed: random seed of noise and classifiers.
      output_dir: folder for ``budget.json``, ``budget.svg`` and ``budget.html``. None
        writes no files.
      progress: callback ``progress(done, total, what)``, called before each step.

    Returns:
      Rows, raw windows first: ``epsilon`` (None for raw windows); ``scores``, by
      attribute, useful ones first, from ``protocol.score``; and
      ``useful``, the names of the useful ones.

    Raises:
      ValueError: if the run has no ε, ``epsilons`` is empty or holds a value <= 0, or
        the attacker is unknown.
    """
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one value > 0, got none.")
    kind = attackers.get(attacker)
    runs = [release.with_epsilon(run, epsilon) for epsilon in epsilons]
    names = (*useful(run), *data.spec.private)
    root = jax.random.fold_in(jax.random.key(seed), 0)
    rows = []
    for number, one in enumerate([None, *runs]):
        epsilon = None if one is None else one.method.config.epsilon
        if progress is not None:
            what = "raw windows" if one is None else f"epsilon {epsilon:g}"
            progress(number, len(runs) + 1, what)
        key = jax.random.fold_in(root, number)
        train, test = _released(one, data, key)
        scores = {}
        for index, name in enumerate(names):
            classes, labels = data.spec.classes[name], data.train.labels[name]
            fit_key = jax.random.fold_in(key, 2 + index)
            predict = kind.fit(fit_key, train, labels, len(classes))
            scores[name] = protocol.score(data, name, predict(test))
        rows.append({"epsilon": epsilon, "scores": scores, "useful": useful(run)})
    if output_dir is not None:
        report.write_budget(output_dir, _title(run), _about(run, data, attacker), rows)
    return rows


def useful(run: Run) -> tuple[str, ...]:
    """Returns the attributes that releases preserve, the public one first."""
    return (run.spec.public, *getattr(run.method.config, "also", ()))


def _released(run, data, key):
    """Released training and test windows, standardised."""
    spec = data.spec
    sides = [checks.windows(x.windows, spec.time, spec.channels) for x in data[1:]]
    if run is not None:
        keys = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        pairs = zip(keys, sides, strict=True)
        sides = [run.anonymize(side_key, windows) for side_key, windows in pairs]
    return [standardise(spec, windows) for windows in sides]


def _title(run):
    shown, hidden = " and ".join(useful(run)), " and ".join(run.spec.private)
    return f"{run.method.name} on {run.spec.name}: preserve {shown}, hide {hidden}"


def _about(run, data, attacker):
    return (
        f"{len(data.test.windows):,} test windows of {data.spec.name} "
        f"({data.spec.preset}) are released by mechanism "
        f"{run.method.config.mechanism!r}. The classifier {attacker!r} trained on "
        f"{len(data.train.windows):,} released training windows. ε bounds how well "
        f"{release.neighbours(run)} can be distinguished; a stream costs the sum over "
        "its windows."
    )
