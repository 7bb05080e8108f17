"""Terms that a server and its clients agree on before training."""

import dataclasses
import hashlib
import json
import os
from typing import Any

import jax
import numpy as np

from jaxanon import __version__, datasets
from jaxanon.core import registry
from jaxanon.datasets.spec import contradict, rates_differ
from jaxanon.edge.budget import Budget
from jaxanon.federated.engine import exchange
from jaxanon.training import checkpoint, processes

PROTOCOL = 3  # Version of the message format.

CHOICE = "choose the same --dataset, --preset, --public and --private"


class Unfit(ValueError):
    """A client's data do not match the terms.

    ``public_message`` is the part of the message that the server may see.
    """

    def __init__(self, message: str, public_message: str):
        super().__init__(message)
        self.public_message = public_message


def check_method(method) -> None:
    """Raises ``ValueError`` unless a method can train over Flower.

    The method must be federated, its rounds must consist of messages of single clients,
    and its clients must send updates.
    """
    if method.federation is None:
        raise ValueError(
            f"{method.name} cannot train over Flower because it trains on all windows "
            "centrally; choose a federated method such as fedavg, atlas or blinder, or "
            "use jaxanon train."
        )
    if method.stages is None or method.update is not method.federation.algorithm.update:
        raise ValueError(
            f"{method.name} cannot train over Flower because its rounds do not consist "
            "of messages of single clients; choose fedavg, atlas or blinder, or "
            "simulate it with jaxanon train."
        )
    if method.name == "centralized":
        raise ValueError("centralized has no clients; use fedavg.")
    if method.name == "localized":
        raise ValueError("localized has clients that send nothing; use fedavg.")


def clients_of(method, data) -> list[int]:
    """Returns each client's subject, by client index, as in ``jaxanon.train``."""
    if method.predict is not None:
        return list(range(data.spec.num_classes("subject")))
    return np.unique(data.train.labels["subject"]).tolist()


def of_subject(windows: datasets.Windows, mine) -> datasets.Windows:
    """Returns the windows, with labels, selected by ``mine``, ``bool[N]``."""
    labels = {name: label[mine] for name, label in windows.labels.items()}
    return datasets.Windows(windows.windows[mine], labels)


def terms(method, state, clients: list[int], max_windows: int, seed: int) -> dict:
    """Returns everything that must be equal on all machines, as JSON values.

    Args:
      method: ``Method``.
      state: the state that ``init`` returned.
      clients: subjects from ``clients_of``.
      max_windows: maximum number of windows per client; all are padded to it.
      seed: the run's seed. Clients with a privacy guarantee use secret keys instead.
    """
    agreed = {
        "version": __version__,
        "protocol": PROTOCOL,
        "code": processes.code(),
        "method": method.name,
        "settings": dataclasses.asdict(method.config),
        "spec": json.loads(method.spec.to_json()),
        "architecture": checkpoint.architecture(exchange.broadcast_state(state)),
        "clients": clients,
        "max_windows": max_windows,
        "seed": seed,
    }
    return json.loads(json.dumps(agreed))


def digest(terms: dict) -> str:
    """Returns 16 hexadecimal digits that identify terms.

    Example:
      >>> digest({"a": 1}) == digest({"a": 1}), len(digest({"a": 2}))
      (True, 16)
    """
    text = json.dumps(terms, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def agreed(terms: dict, own: datasets.Spec, expected: str | None):
    """Builds the method that the server's terms describe, if the client accepts them.

    Args:
      terms: the server's terms.
      own: the spec of the client's windows.
      expected: digest that the terms must have; None accepts any terms.

    Returns:
      ``Method``.

    Raises:
      ValueError: if versions, sources, digests or specs differ; the message names the
        difference.
    """
    theirs = terms.get("version"), terms.get("protocol")
    if theirs != (__version__, PROTOCOL):
        raise ValueError(
            f"the server runs jaxanon {theirs[0]} (protocol {theirs[1]}) and this "
            f"client {__version__} (protocol {PROTOCOL}); install the same version."
        )
    if terms.get("code") != processes.code():
        raise ValueError(
            "the server's source code of jaxanon differs from this client's, though "
            f"both are {__version__}; install the same build."
        )
    if expected not in (None, digest(terms)):
        raise ValueError(
            f"the server's settings have the digest {digest(terms)}, but this client "
            f"expects {expected}; ask the operator of the server what changed."
        )
    spec = datasets.Spec.from_json(json.dumps(terms["spec"]))
    for name in ("channels", "time", "tokens", "public", "private"):
        _same(name, getattr(spec, name), getattr(own, name))
    if contradict(own.units, spec.units):
        _same("units", spec.units, own.units, remedy="convert its windows")
    if rates_differ(own.rate_hz, spec.rate_hz):
        _same("rate_hz", spec.rate_hz, own.rate_hz, remedy="resample its windows")
    targets = [_meaning(each.target) for each in (spec, own)]
    if contradict(*targets):
        _same(
            f"unit, channel and samples of {spec.public}",
            *targets,
            remedy="convert it",
        )
    for name in (spec.public, *spec.private):
        if name != "subject":
            _same(f"classes of {name}", *(s.classes.get(name) for s in (spec, own)))
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in terms["settings"].items()
    }
    method = registry.build(terms["method"], spec, **settings)
    # Only shapes matter here, so any key will do.
    state = jax.eval_shape(method.init, jax.random.key(len(terms["clients"])))
    found = checkpoint.architecture(exchange.broadcast_state(state))
    if found != terms["architecture"]:
        raise ValueError(
            f"{terms['method']} has other arrays here than at the server, though both "
            f"run jaxanon {__version__}; install the same build."
        )
    return method


def budget(path, guarantee) -> Budget | None:
    """Opens the file that counts the rounds a client answered.

    Args:
      path: path of the budget file, created if missing; one per client's data.
      guarantee: the method's guarantee.

    Returns:
      ``Budget``, or None if the guarantee does not limit the rounds.

    Raises:
      Unfit: if the path is missing, or the file is unusable, belongs to another
        guarantee, or is spent.
    """
    if guarantee is None or guarantee.rounds is None:
        return None
    public_message = "its privacy budget does not allow it to take part."
    if path is None:
        raise Unfit(
            "budget must be a file, got none, because the noise protects this client "
            f"for only {guarantee.rounds} rounds; pass --budget FILE to count them "
            "across restarts.",
            public_message,
        )
    numbers = [x for x in jax.tree.leaves(guarantee) if not isinstance(x, str)]
    hidden = f"one client's windows, with noise of {numbers}"
    rounds = None if os.path.exists(path) else guarantee.rounds  # Else in the file.
    try:
        opened = Budget(path, rounds, hidden, unit="rounds")
        opened.check(1)
    except (ImportError, OSError, ValueError) as error:  # Without locks, no budget.
        raise Unfit(f"the budget cannot be used: {error}", public_message) from error
    return opened


def _meaning(target):
    """Returns unit, channel and samples of a numeric target, "" where unknown.

    Returns nothing for classes. Without a channel, samples is only a file's default.
    """
    if target is None:
        return ()
    return target.unit, target.channel, str(target.samples) if target.channel else ""


def _same(what, server, client, remedy=CHOICE):
    if server != client:
        raise Unfit(
            f"{what} must be {server!r}, as at the server, but this client's windows "
            f"have {client!r}; {remedy}.",
            f"{what} must be {server!r}, as at the server.",
        )


def own_windows(method, windows: datasets.Windows, client: int, terms: dict):
    """Returns one client's windows, padded and prepared for its rounds.

    Args:
      method: ``Method`` from ``agreed``.
      windows: the client's windows.
      client: the client's index.
      terms: the server's terms.

    Raises:
      Unfit: unless there are 1 to ``terms["max_windows"]`` windows.
    """
    count, capacity = len(windows.windows), terms["max_windows"]
    if not 0 < count <= capacity:
        raise Unfit(
            f"client {client} must have 1 to {capacity} windows, got {count}; raise "
            "--max-windows of jaxanon server.",
            f"it has no windows, or more than {capacity} (--max-windows).",
        )
    subject = np.full(count, terms["clients"][client], np.int32)
    labels = windows.labels | {"subject": subject}
    stacked = datasets.by_client(windows._replace(labels=labels))
    grow = lambda leaf: np.pad(
        leaf, [(0, 0), (0, capacity - count)] + [(0, 0)] * (leaf.ndim - 2)
    )
    prepared = method.prepare(jax.tree.map(grow, stacked))
    index = client if method.predict is not None else 0
    return jax.tree.map(lambda leaf: leaf[index : index + 1], prepared)
