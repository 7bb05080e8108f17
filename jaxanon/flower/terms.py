"""What a server and its clients agree on before a client takes part."""

import dataclasses
import hashlib
import json
import os

import jax
import numpy as np

from jaxanon import __version__, datasets
from jaxanon.core import registry
from jaxanon.datasets.spec import contradict, rates_differ
from jaxanon.edge.budget import Budget
from jaxanon.federated.engine import exchange
from jaxanon.training import checkpoint, processes

PROTOCOL = 2  # Of messages; another one is another version.

CHOICE = "choose the same --dataset, --preset, --public and --private"


class Unfit(ValueError):
    """A client's data do not fit; ``told`` is what the server may know of it."""

    def __init__(self, why: str, told: str):
        super().__init__(why)
        self.told = told


def check_method(method) -> None:
    """Refuses what no real device can run.

    Raises:
      ValueError: for a method that trains in one place, or whose rounds do not come
        apart, or whose clients are one, or send nothing.
    """
    if method.federation is None:
        raise ValueError(
            f"{method.name} can't run on real devices, for it learns from everybody's "
            "windows in one place; take fedavg, atlas or blinder, say, or train it "
            "where the windows are by jaxanon train."
        )
    if method.stages is None or method.update is not method.federation.algorithm.update:
        raise ValueError(
            f"{method.name} can't run on real devices, for its rounds do not come "
            "apart into messages of single clients; take fedavg, atlas or blinder, "
            "say, or simulate it by jaxanon train."
        )
    if method.name == "centralized":
        raise ValueError("centralized has no clients; take fedavg.")
    if method.name == "localized":
        raise ValueError("localized has clients that send nothing; take fedavg.")


def clients_of(method, data) -> list[int]:
    """Subjects by their clients' numbers, as ``jaxanon.train`` has them."""
    if method.predict is not None:
        return list(range(data.spec.num_classes("subject")))
    return np.unique(data.train.labels["subject"]).tolist()


def of_subject(windows: datasets.Windows, mine) -> datasets.Windows:
    """The windows at ``mine``, ``bool[N]``, with their labels."""
    labels = {name: label[mine] for name, label in windows.labels.items()}
    return datasets.Windows(windows.windows[mine], labels)


def terms(method, state, clients: list[int], rows: int, seed: int) -> dict:
    """All that has to be the same on every machine; JSON can say it.

    Args:
      method: ``Method``.
      state: that ``init`` made.
      clients: of ``clients_of``.
      rows: windows that every client is padded to, and none has more of.
      seed: the run's; clients whose noise is a guarantee's have keys of their own.
    """
    told = {
        "version": __version__,
        "protocol": PROTOCOL,
        "code": processes.code(),
        "method": method.name,
        "settings": dataclasses.asdict(method.config),
        "spec": json.loads(method.spec.to_json()),
        "architecture": checkpoint.architecture(exchange.broadcast_state(state)),
        "clients": clients,
        "rows": rows,
        "seed": seed,
    }
    return json.loads(json.dumps(told))


def digest(terms: dict) -> str:
    """16 letters that stand for terms.

    Example:
      >>> digest({"a": 1}) == digest({"a": 1}), len(digest({"a": 2}))
      (True, 16)
    """
    text = json.dumps(terms, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def agreed(terms: dict, own: datasets.Spec, expected: str | None):
    """The method that terms describe, if a client can go along with them.

    Args:
      terms: the server's.
      own: the client's windows' spec.
      expected: the digest that the client was told to expect; None takes any.

    Returns:
      ``Method``.

    Raises:
      ValueError: naming the version, the source, the digest or the part of the
        spec that differs.
    """
    theirs = terms.get("version"), terms.get("protocol")
    if theirs != (__version__, PROTOCOL):
        raise ValueError(
            f"the server is jaxanon {theirs[0]} (protocol {theirs[1]}) and this client "
            f"{__version__} (protocol {PROTOCOL}); install the same on both."
        )
    if terms.get("code") != processes.code():
        raise ValueError(
            "the source of jaxanon at the server is another than here, though both are "
            f"{__version__}; install the same on both."
        )
    if expected not in (None, digest(terms)):
        raise ValueError(
            f"the server's settings have the digest {digest(terms)}, and this client "
            f"was told to expect {expected}; ask who runs the server what changed."
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
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in terms["settings"].items()
    }
    method = registry.build(terms["method"], spec, **settings)
    # A shape needs no numbers.
    state = jax.eval_shape(method.init, jax.random.key(len(terms["clients"])))
    found = checkpoint.architecture(exchange.broadcast_state(state))
    if found != terms["architecture"]:
        raise ValueError(
            f"{terms['method']} has other arrays here than at the server, though both "
            f"are jaxanon {__version__}; install the same on both."
        )
    return method


def budget(path, guarantee) -> Budget | None:
    """Opens the file in which a client counts the rounds that it answered.

    Args:
      path: of the file, made if there is none; it belongs to one client's data.
      guarantee: of the method's noise.

    Returns:
      ``Budget``; None where nothing limits the rounds.

    Raises:
      Unfit: if there is no path, or the file cannot be used, is of another guarantee,
        or is spent.
    """
    if guarantee is None or guarantee.rounds is None:
        return None
    told = "its privacy budget does not allow it to take part."
    if path is None:
        raise Unfit(
            "budget must be a file, for noise protects this client in "
            f"{guarantee.rounds} rounds and no more, got none; pass --budget FILE, "
            "which counts them also when the client starts again.",
            told,
        )
    numbers = [x for x in jax.tree.leaves(guarantee) if not isinstance(x, str)]
    hidden = f"one client's windows, with noise of {numbers}"
    rounds = None if os.path.exists(path) else guarantee.rounds  # Known if it is there.
    try:
        found = Budget(path, rounds, hidden, unit="rounds")
        found.check(1)
    except (ImportError, OSError, ValueError) as error:  # No locks, no budget.
        raise Unfit(f"the budget cannot be used: {error}", told) from error
    return found


def _meaning(target):
    """What numbers are, with "" for what is not told; nothing where there are classes.

    Without a channel, samples are the default of a file that says neither.
    """
    if target is None:
        return ()
    return target.unit, target.channel, str(target.samples) if target.channel else ""


def _same(what, server, client, remedy=CHOICE):
    if server != client:
        raise Unfit(
            f"{what} must be {server!r}, as at the server, and this client's windows "
            f"have {client!r}; {remedy}.",
            f"{what} must be {server!r}, as at the server.",
        )


def own_windows(method, windows: datasets.Windows, client: int, terms: dict):
    """One client's windows as its round wants them, the only ones there are.

    Args:
      method: ``Method`` of ``agreed``.
      windows: all of them the client's.
      client: its number.
      terms: the server's.

    Raises:
      ValueError: if there are none, or more than ``terms["rows"]``.
    """
    count, rows = len(windows.windows), terms["rows"]
    if not 0 < count <= rows:
        raise Unfit(
            f"client {client} must have 1 to {rows} windows, got {count}; the most "
            "that a client may have is jaxanon serve's --rows.",
            f"it has no windows, or more than {rows} (--rows).",
        )
    subject = np.full(count, terms["clients"][client], np.int32)
    labels = windows.labels | {"subject": subject}
    stacked = datasets.by_client(windows._replace(labels=labels))
    grow = lambda leaf: np.pad(
        leaf, [(0, 0), (0, rows - count)] + [(0, 0)] * (leaf.ndim - 2)
    )
    prepared = method.prepare(jax.tree.map(grow, stacked))
    place = client if method.predict is not None else 0
    return jax.tree.map(lambda leaf: leaf[place : place + 1], prepared)
