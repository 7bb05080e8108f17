"""Compares the ε that attacks on federated messages measure with the claimed ε.

Example: ``python bench audit --part members --dataset smartwatch --smoke``.

Runs membership inference (LiRA) and gradient inversion on the messages of one client,
for learners with and without noise:

- ``mechanisms``: the worst-case example or client on models of three numbers; measures
  ε from 40,000 runs per side for correct noise and for noise with planted bugs;
- ``members``: windows of three people; the attacker infers whether a window is among a
  client's rows;
- ``inversion``: reconstructs a window from the message of a client with one window.

``--part`` selects a part. ``--dataset`` selects the windows (default: uci_hapt; its
magnitudes for ``members``). ``--json F`` writes the rows to F, and a table, page and
figure to .md, .html and .png; with ``--part``, F keeps its rows of other parts.
"""

from audit import (
    clients,
    deeprotect,
    examples,
    inversion,
    learners,
    membership,
    page,
    releases,
)
from audit import runs as whole_runs
from harness import results, timing

DELTA, RUNS = clients.DELTA, 40_000
SHORT = "LDP-FL, 3 weights, ε of one"


def main():
    """Runs the parts, prints and writes the rows."""
    args = timing.arguments(
        __doc__,
        part=timing.one_of(PARTS),
        dataset="data set, uci_hapt by default (smartwatch with --smoke)",
        runs=timing.number(128, "runs per example and side"),
    )
    name = args.dataset or ("smartwatch" if args.smoke else "uci_hapt")
    found = []
    for part, make in PARTS.items():
        if args.part in (None, part):
            for row in make(name, args.smoke, args.runs):
                row = {"kind": part, **row, **timing.about()}
                found.append(row)
                print(page.line(row), flush=True)
    print(page.markdown(found))
    if args.json is not None:
        page.write(args.json, beside(args, found))


def beside(args, found):
    """Returns the rows of the file with those of this part replaced."""
    before = results.kept(args.json) if args.part else []
    rows = [row for row in before if row["kind"] != args.part] + found
    return sorted(rows, key=lambda row: list(PARTS).index(row["kind"]))


def mechanisms(dataset, smoke, runs):
    """Measures ε of every mechanism, as implemented and with planted bugs.

    ``holds`` states whether the claim is mathematically correct.
    """
    del dataset, runs
    count = 400 if smoke else RUNS
    every = list(examples.cases())
    for name, algorithm, num_rounds, options, spent, holds in (
        every[:: len(every) - 1] if smoke else every
    ):
        hyper = examples.ATLAS | options
        if "FedSGD" in name:
            hyper = {"noise_multiplier": hyper["noise_multiplier"]}
        told = examples.found(algorithm, num_rounds, hyper, count)
        yield _row(name, spent, told, holds)
    for name, given, spent, holds in clients.cases():
        if not smoke or name == SHORT:
            yield _row(name, spent, clients.found(given, count), holds)
    yield from _planted(smoke, count)


def _planted(smoke, count):
    """Yields rows of mechanisms as implemented and with planted bugs."""
    cases = [*releases.cases(), *deeprotect.cases()]
    each = 1 - (1 - clients.TOGETHER) / len(cases)
    for case in cases[:1] if smoke else cases:
        told = releases.counted(case, 10 * count if smoke else count, each)
        yield _of_bugs(case, told, case.delta)
    if smoke:
        return
    for case in learners.cases():
        yield _of_bugs(case, learners.counted(case, count), DELTA)
    for case in whole_runs.cases():
        yield _of_bugs(case, whole_runs.counted(case), whole_runs.DELTA)


def _of_bugs(case, told, delta):
    own = told.pop(releases.HONEST)
    row = {"name": case.name, "claimed": case.claimed, "counted": own, "delta": delta}
    return row | {"holds": True, "planted": told}


def _row(name, spent, told, holds):
    row = {"name": name, "claimed": spent, "counted": told.epsilon, "auc": told.auc}
    return row | {"delta": DELTA, "holds": holds}


PARTS = {
    "mechanisms": mechanisms,
    "members": membership.rows,
    "inversion": inversion.rows,
}
