"""The contract of a method: a core of pure functions, and optional capabilities."""

import dataclasses
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxanon.core import registry
from jaxanon.kernels.bounds import declared


class Schedule(NamedTuple):
    """Rounds and phases of a method's training.

    ``phases`` names the settings that give the lengths of the phases before the last
    one, which begins after ``min_epochs - 1`` epochs and ``min_rounds`` rounds.
    """

    rounds_per_epoch: Callable  # (data) -> int
    work_per_round: Callable  # (data) -> int, in ``unit``
    unit: str = "client updates"  # of the work, and of the speed that is reported
    phases: tuple[str, ...] = ()
    min_epochs: int = 1
    min_rounds: int = 0  # where phases are counted in rounds
    # (history, *, ended) -> None; raises if further training is useless or, at the end,
    # if the run is.
    check_history: Callable | None = None
    round_name: str = "round"
    epochs: int | None = None  # that the settings ask for; None leaves it to ``train``


class Prediction(NamedTuple):
    """Capability of a learner: each client's model predicts the public attribute."""

    # (key, state, data, client) -> layers that client number ``client`` predicts with,
    # given what ``prepare`` made of training windows.
    model: Callable
    network: Any  # ``network.apply(layers, standardised)``: logits, or the target


class Generation(NamedTuple):
    """Capability of a generator: windows of given classes."""

    # (key, state, {attribute: int32[n]}, samples=None, avoid=None) -> windows, or
    # streams of ``samples``; ``avoid`` holds classes that guidance leads away from.
    sample: Callable
    # (state, {attribute: int[n]}) -> None; raises if those cannot be sampled.
    check: Callable | None = None
    # (key, state, windows, labels) -> {name: float[n]}, losses of each window.
    losses: Callable | None = None
    # (Clients) -> bool[clients, n], the windows that training uses; None: all.
    learned: Callable | None = None


class Federation(NamedTuple):
    """Capability of a method that trains by a federated algorithm."""

    algorithm: Any  # ``FederatedAlgorithm``
    # (state) -> (loss_fn, params): what a client's steps on its public classifier take
    # gradients of, as ``attacks.invert_gradient`` takes it.
    client_loss: Callable | None = None
    pads: bool = False  # whether more padding of clients changes no draw


class Adjustable(NamedTuple):
    """Names that ``Run.adjusted`` may change after training."""

    hyper: tuple[str, ...] = ()  # hyper-parameters that only rewriting uses
    # Settings of which the same is true; changing them takes a registered method.
    settings: tuple[str, ...] = ()


class Release(NamedTuple):
    """Capability of a method whose released windows have a local guarantee.

    ``epsilon`` is that of each window, ``None`` without noise. The arithmetic in which
    the guarantee holds is part of the claim.
    """

    epsilon: float | None
    # (state) -> words for the windows that a release does not distinguish; raises
    # ValueError if nothing is guaranteed.
    neighbours: Callable
    # (windows) -> words for what was clipped to the public range.
    clipped: Callable
    before: str = ""  # what precedes the claim, such as a caveat
    after: str = ""  # what follows it


class OwnData(NamedTuple):
    """Capability of a method that learns from other data than windows of clients.

    ``prepare`` takes the data themselves, which have a ``spec``.
    """

    check: Callable  # (data) -> None; raises if the method cannot learn from them
    arrays: Callable  # (data) -> list of all their arrays, for a fingerprint


class DevicePlacement(NamedTuple):
    """Where a run's rounds are computed."""

    call: Callable  # (key, state, data, num) -> (state, mean info, bad)
    data: Any  # what it reads
    put: Callable  # (tree) -> tree, of a key or a state, where ``call`` wants it
    collect: Callable = lambda tree: tree  # what ``put`` did to a state undone


class StateByLeaves:
    """Base of states of which a checkpoint holds ``(round, leaves)``, none empty."""


class Method(NamedTuple):
    """A system for the windows of one data set, in the manner of Optax.

    The first seven fields are the core, which training needs; each later field is a
    capability, ``None`` where a method lacks it. An anonymizer has ``anonymize``, a
    learner ``predict``, a controller ``own_data``.

    The state is a tree of arrays with ``round`` (``int32[]``, rounds done), ``params``,
    ``average`` (their running mean, or None) and ``hyper`` (dict of ``float[]``).
    ``init`` and ``update`` may be vmapped over keys and hyper-parameters, so seeds and
    a grid are one program. ``anonymize`` draws by ``jaxanon.kernels.portable``, or it
    cannot be exported. A method of a registered name can be pickled.
    """

    name: str
    config: Any  # frozen dataclass of static settings, JSON-able; None without any
    spec: Any  # ``jaxanon.datasets.Spec`` of the windows
    prepare: Callable  # (Clients) -> data on the device, once
    init: Callable  # (key, **hyper) -> state
    update: Callable  # (key, state, data) -> (state, info), one round; key of the run
    schedule: Schedule
    # (key, state, windows) -> windows, both in physical units.
    anonymize: Callable | None = None
    predict: Prediction | None = None
    generate: Generation | None = None
    federation: Federation | None = None
    adjustable: Adjustable = Adjustable()
    guarantee: Any = None  # of ``privacy.guarantee``, by noise in training
    release: Release | None = None
    own_data: OwnData | None = None
    place: Callable | None = None  # (data, devices) -> ``DevicePlacement``
    tokens: bool = False  # whether windows may hold tokens of events
    recipe: str = registry.RECOMMENDED  # whose settings ``config`` began from

    @property
    def stages(self):
        """Stages of a round, which several devices may share; None without them."""
        return None if self.federation is None else self.federation.algorithm.stages

    def __reduce__(self):
        """Pickles name, spec, config and recipe, from which the registry rebuilds it.

        A method that the registry does not build so is pickled field by field, which
        takes functions that can be pickled.
        """
        parts = self.name, self.spec, self.config, self.recipe
        try:
            if _functions(registry.rebuild(*parts)) == _functions(self):
                return registry.rebuild, parts
        except (TypeError, ValueError):
            pass
        return Method._make, (tuple(self),)


def _functions(part):
    """The code of every function of a method and its capabilities, and plain values.

    Functions of the same code that close over other values count as the same.
    """
    if isinstance(part, tuple):
        return tuple(map(_functions, part))
    plain = isinstance(part, str | int | float | None)
    return part if plain else getattr(part, "__code__", None)


class Incompatible(ValueError):
    """Of settings that may each be, and not together; a sweep leaves them out."""


def generation(method) -> Generation:
    """Returns the generation capability; raises TypeError for a method without it.

    Example:
      >>> import jaxanon as ja
      >>> generation(ja.methods.orf(ja.load("smartwatch").spec))
      Traceback (most recent call last):
      TypeError: orf cannot generate windows; train privatehub.
    """
    if method.generate is None:
        raise TypeError(f"{method.name} cannot generate windows; train privatehub.")
    return method.generate


def check_measured(method) -> None:
    """Refuses to rewrite windows whose numbers stand for something.

    Raises:
      ValueError: if ``method`` anonymizes, its spec has ``tokens``, and it does not say
        that it takes them.
    """
    if method.anonymize is None or method.tokens:
        return
    if method.spec.tokens:
        raise ValueError(
            f"{method.name} rewrites what was measured, and windows of "
            f"{method.spec.name} ({method.spec.preset}) hold numbers that stand for "
            "events; train a learner such as fedavg on them."
        )


def epochs_needed(method, rounds: int | None = None) -> int:
    """How many epochs it takes for a method's last phase to begin.

    Args:
      method: ``Method``.
      rounds: of an epoch, where they are known: phases may be counted in rounds.
    """
    schedule = method.schedule
    if rounds is None:
        return schedule.min_epochs
    return max(schedule.min_epochs, 1 + schedule.min_rounds // rounds)


def warn_of_epochs(method, epochs: int, rounds: int | None = None) -> None:
    """Warns where training ends before a method's last phase begins.

    Args:
      method: ``Method``.
      epochs: that were asked for.
      rounds: of an epoch, where they are known: phases may be counted in rounds.
    """
    least = epochs_needed(method, rounds)
    if epochs < least:
        names = ", ".join(method.schedule.phases)
        warnings.warn(
            f"{method.name} trains in phases, and the last one begins after epoch "
            f"{least - 1}; until epoch {epochs} it learns nothing of it: ask for more, "
            f"or make the phases before it shorter ({names}).",
            UserWarning,
            stacklevel=4,  # Behind who called what called this, and ``single``.
        )


def check_hyper(method: Method, hyper: dict) -> None:
    """Refuses hyper-parameters as the method's settings of the same names would be.

    Raises:
      ValueError: for a value that is no finite number, or out of its range.
    """
    checked = set() if method.config is None else declared(type(method.config))
    known = {}
    for name, value in hyper.items():
        scalar = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
        if not scalar or not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}.")
        if name in checked:
            known[name] = np.asarray(value).item()
    if known and method.config is not None:
        dataclasses.replace(method.config, **known)
