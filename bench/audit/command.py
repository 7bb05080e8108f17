"""What a federation's server sees, attacked: python bench audit [--smoke].

Membership inference (LiRA) and gradient inversion against the messages of one client,
of learners with and without noise, beside the ε that is accounted for:

- ``mechanisms``: the worst example, or client, that there can be, on models of three
  numbers: ε as it is counted in 40,000 runs a side, of noise that keeps its claim and
  of noise that does not;
- ``members``: three people's windows, one of which is in question, in or out of a
  client's rows;
- ``inversion``: a window rebuilt from the message of a client that has no other.

``--part`` names one of them, ``--dataset`` the windows (uci_hapt by default, for
``members`` its magnitudes). ``--json F`` writes the rows to F, and F with .md, .html
and .png beside; with ``--part``, F keeps its rows of other parts.
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
    """Measures, prints, writes."""
    args = timing.arguments(
        __doc__,
        part=timing.one_of(PARTS),
        dataset="uci_hapt by default, smartwatch with --smoke",
        runs=timing.number(128, "of each example and side"),
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
    """All rows of the file, those of this part anew."""
    before = results.kept(args.json) if args.part else []
    rows = [row for row in before if row["kind"] != args.part] + found
    return sorted(rows, key=lambda row: list(PARTS).index(row["kind"]))


def mechanisms(dataset, smoke, runs):
    """The ε that is counted of every mechanism, beside the one claimed, and by bugs.

    ``holds`` is what its mathematics says.
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
    """Rows of mechanisms as they are, and by the bugs planted in them."""
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
