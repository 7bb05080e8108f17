"""Learners audited over many runs, with and without planted bugs."""

import contextlib
import importlib
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

from audit import clients, examples
from audit import runs as audit_runs
from audit.releases import BUGS, PLANTED, Bug
from jaxanon.privacy import responses_spent

DELTA = clients.DELTA


class Learner(NamedTuple):
    """A learner that is run many times, and its claimed ε for worst-case neighbours."""

    name: str
    claimed: float
    count: Callable  # runs -> ``attacks.Membership``, retraced in each call
    bugs: tuple[str, ...] = PLANTED


def counted(learner: Learner, runs: int) -> dict[str, float]:
    """Returns the ε measured from ``runs`` runs per side, without and with each bug."""
    found = {}
    for name, bug in BUGS.items():
        if name in PLANTED and name not in learner.bugs:
            continue
        with audit_runs.planted(bug), _answers(bug):
            found[name] = learner.count(runs).epsilon
    return found


def cases():
    """Yields learners that protect an example, a client, or each weight."""
    claimed = clients.epsilon(1.0)
    yield Learner("Atlas, many runs", claimed, examples.atlas)
    of_clients = lambda given: lambda runs: clients.found(given(), runs)
    yield Learner("Atlas, of clients, many runs", claimed, of_clients(clients.atlas))
    average = of_clients(clients.dp_fedavg)
    yield Learner("DP-FedAvg, many runs", claimed, average)
    weights = responses_spent(1.0, 3, DELTA)
    # LDP-FL does not clip; its weights stay within their range.
    yield Learner(
        "LDP-FL, 3 weights, many runs",
        weights,
        of_clients(clients.ldp_fl),
        bugs=("noise × 0.5", "one left bare"),
    )


@contextlib.contextmanager
def _answers(bug: Bug):
    """Patches LDP-FL to double its ε, or to send a layer of one weight unprotected."""
    # The package attribute of that name is the function.
    module = importlib.import_module("jaxanon.federated.private.ldp_fl")
    honest = module.two_points

    def told(key, weights, radius, epsilon):
        bare = bug.bare and weights.size == 1  # The layer with one weight.
        return honest(key, weights, radius, 30.0 if bare else epsilon / bug.noise)

    with mock.patch.object(module, "two_points", told):
        yield
