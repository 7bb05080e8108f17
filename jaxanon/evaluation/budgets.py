"""What is read of released windows over their ε: useful and sensitive inferences."""

import os
from collections.abc import Callable, Sequence

import jax

from jaxanon import metrics, report
from jaxanon.attacks import attackers
from jaxanon.core import checks, release
from jaxanon.core.run import Run
from jaxanon.datasets.spec import standardise

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
    """Tries a run's releases at every ε, with a reader who is taught on released ones.

    Whoever uses released windows and whoever attacks them are alike here: each is
    taught on released training windows with their labels, one of the useful inference
    and others of the sensitive ones, and tried on released test windows.

    Args:
      run: of DEEProtect.
      data: of ``jaxanon.load``, what the run was trained on.
      epsilons: of a window, each > 0.
      attacker: who reads, a name of ``evaluate``'s attackers.
      seed: of noise and of who reads.
      output_dir: folder for ``budget.json``, ``budget.png`` and ``budget.html``; None:
        none.
      progress: called as ``progress(done, total, what)`` before each piece of work.

    Returns:
      Rows, the raw windows' first: ``epsilon`` (None for raw windows), ``scores``, a
      dict of ``metrics.scores`` by attribute, the useful ones first, and ``useful``,
      their names.

    Raises:
      ValueError: for a run without an ε, an ε that is not > 0, no ε, or another
        attacker.
    """
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one, got none.")
    who = attackers.get(attacker)
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
        sent = _sent(one, data, key)
        scores = {}
        for place, name in enumerate(names):
            classes, known = data.spec.classes[name], data.train.labels[name]
            own = jax.random.fold_in(key, 2 + place)
            read = who.fit(own, sent[0], known, len(classes))
            told = read(sent[1]).argmax(axis=1)
            scores[name] = metrics.scores(data.test.labels[name], told, classes)
        rows.append({"epsilon": epsilon, "scores": scores, "useful": useful(run)})
    if output_dir is not None:
        report.write_budget(output_dir, _title(run), _about(run, data, attacker), rows)
    return rows


def useful(run: Run) -> tuple[str, ...]:
    """Attributes that a run's releases are to keep, the public one first."""
    return (run.spec.public, *getattr(run.method.config, "also", ()))


def _sent(run, data, key):
    """Training and test windows as a reader has them, standardised."""
    spec = data.spec
    sides = [checks.windows(x.windows, spec.time, spec.channels) for x in data[1:]]
    if run is not None:
        keys = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        pairs = zip(keys, sides, strict=True)
        sides = [run.anonymize(own, windows) for own, windows in pairs]
    return [standardise(spec, windows) for windows in sides]


def _title(run):
    kept, hidden = " and ".join(useful(run)), " and ".join(run.spec.private)
    return f"{run.method.name} on {run.spec.name}: keep {kept}, hide {hidden}"


def _about(run, data, attacker):
    return (
        f"{len(data.test.windows):,} test windows of {data.spec.name} "
        f"({data.spec.preset}), released by mechanism {run.method.config.mechanism!r}, "
        f"and read by {attacker!r}, which was taught on {len(data.train.windows):,} "
        f"released training windows. ε bounds what is told between "
        f"{release.neighbours(run)}; a stream costs the sum over its windows."
    )
