"""The ε that is counted of every mechanism, beside the one claimed, and by bugs."""

import _audit_clients
import _audit_examples
import _audit_federated
import _audit_releases
import _audit_runs
import _audit_windows

DELTA, RUNS = _audit_clients.DELTA, 40_000
SHORT = "LDP-FL, 3 weights, ε of one"


def rows(dataset, smoke, runs):
    """A row of each mechanism; ``holds`` is what its mathematics says."""
    del dataset, runs
    runs = 400 if smoke else RUNS
    every = list(_audit_examples.cases())
    for name, algorithm, num_rounds, options, spent, holds in (
        every[:: len(every) - 1] if smoke else every
    ):
        hyper = _audit_examples.ATLAS | options
        if "FedSGD" in name:
            hyper = {"noise_multiplier": hyper["noise_multiplier"]}
        yield _row(
            name,
            spent,
            _audit_examples.found(algorithm, num_rounds, hyper, runs),
            holds,
        )
    for name, given, spent, holds in _clients(smoke):
        yield _row(name, spent, _audit_clients.found(given, runs), holds)
    yield from _planted(smoke, runs)


def _planted(smoke, runs):
    """Rows of mechanisms as they are, and by the bugs planted in them."""
    releases = [*_audit_releases.cases(), *_audit_windows.cases()]
    each = 1 - (1 - _audit_clients.TOGETHER) / len(releases)
    for case in releases[:1] if smoke else releases:
        told = _audit_releases.counted(case, 10 * runs if smoke else runs, each)
        yield _of_bugs(case, told, case.delta)
    for case in [] if smoke else _audit_federated.cases():
        yield _of_bugs(case, _audit_federated.counted(case, runs), DELTA)
    for case in [] if smoke else _audit_runs.cases():
        yield _of_bugs(case, _audit_runs.counted(case), _audit_runs.DELTA)


def _of_bugs(case, told, delta):
    own = told.pop(_audit_releases.HONEST)
    row = {"name": case.name, "claimed": case.claimed, "counted": own, "delta": delta}
    return row | {"holds": True, "planted": told}


def _clients(smoke):
    every = _audit_clients.cases()
    return [case for case in every if case[0] == SHORT] if smoke else every


def _row(name, spent, told, holds):
    return {
        "name": name,
        "claimed": spent,
        "counted": told.epsilon,
        "auc": told.auc,
        "delta": DELTA,
        "holds": holds,
    }
