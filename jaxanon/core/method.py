"""The method contract: a core of pure functions and optional capabilities."""

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

    ``phases`` names the settings that hold the lengths of all phases but the last. The
    last phase begins after ``min_epochs - 1`` epochs and ``min_rounds`` rounds.
    """

    rounds_per_epoch: Callable  # (data) -> int
    work_per_round: Callable  # (data) -> int, in ``unit``
    unit: str = "client updates"  # unit of the work and of the reported speed
    phases: tuple[str, ...] = ()
    min_epochs: int = 1
    min_rounds: int = 0  # if phases are counted in rounds
    # (history, *, ended) -> None; raises if further training cannot help, or if the
    # finished run is useless.
    check_history: Callable | None = None
    round_name: str = "round"
    epochs: int | None = None  # fixed by the settings; None leaves it to ``train``


class Prediction(NamedTuple):
    """Capability of a learner: each client's model predicts the public attribute."""

    # (key, state, data, client) -> layers of the model of client index ``client``;
    # ``data`` is the result of ``prepare``.
    model: Callable
    network: Any  # ``network.apply(layers, standardized)``: logits or target values


class Generation(NamedTuple):
    """Capability of a generator: windows of given classes."""

    # (key, state, {attribute: int32[n]}, samples=None, avoid=None) -> windows, or
    # streams of ``samples``; negative guidance steers away from the classes ``avoid``.
    sample: Callable
    # (state, {attribute: int[n]}) -> None; raises if a class cannot be sampled.
    check: Callable | None = None
    # (key, state, windows, labels) -> {name: float[n]}, losses per window.
    losses: Callable | None = None
    # (Clients) -> bool[clients, n], mask of the training windows; None: all.
    learned: Callable | None = None


class Federation(NamedTuple):
    """Capability of a method that trains by a federated algorithm."""

    algorithm: Any  # ``FederatedAlgorithm``
    # (state) -> (loss_fn, params) of a client's steps on its public classifier, in the
    # form that ``attacks.invert_gradient`` expects.
    client_loss: Callable | None = None
    pads: bool = False  # whether extra client padding leaves all draws unchanged


class Adjustable(NamedTuple):
    """Names that ``Run.adjusted`` may change after training."""

    hyper: tuple[str, ...] = ()  # hyper-parameters used only to anonymize
    # Settings used only to anonymize; changing them requires a registered method.
    settings: tuple[str, ...] = ()


class Release(NamedTuple):
    """Capability of a method whose released windows have a local guarantee.

    ``epsilon`` is the ε of each window, ``None`` without noise. The claim includes the
    arithmetic in which the guarantee holds.
    """

    epsilon: float | None
    # (state) -> description of the windows that a release makes indistinguishable;
    # raises ValueError without a guarantee.
    neighbours: Callable
    # (windows) -> description of the values clipped to the public range.
    clipped: Callable
    before: str = ""  # text before the claim, such as a caveat
    after: str = ""  # text after the claim


class OwnData(NamedTuple):
    """Capability of a method that learns from data other than client windows.

    ``prepare`` receives the data object itself, which has a ``spec``.
    """

    check: Callable  # (data) -> None; raises if the method cannot learn from the data
    arrays: Callable  # (data) -> list of all arrays, for a fingerprint


class DevicePlacement(NamedTuple):
    """The devices that compute a run's rounds."""

    call: Callable  # (key, state, data, num) -> (state, mean info, bad)
    data: Any  # training data, placed for ``call``
    place: Callable  # (tree) -> tree; places a key or a state for ``call``
    collect: Callable = lambda tree: tree  # inverse of ``place`` for a state


class StateByLeaves:
    """Base of states that a checkpoint stores as ``(round, non-empty leaves)``."""


class Method(NamedTuple):
    """A system for the windows of one data set, in the manner of Optax.

    Training needs the first seven fields, the core. Each later field is a capability,
    ``None`` if the method lacks it. An anonymizer has ``anonymize``, a learner
    ``predict``, a controller ``own_data``.

    The state is a tree of arrays with ``round`` (``int32[]``, completed rounds),
    ``params``, ``average`` (running mean of ``params``, or None), ``own`` (personal
    parameters of clients, or None) and ``hyper`` (dict of ``float[]``), such as
    ``jaxanon.federated.State`` or ``PersonalState``. ``init`` and ``update`` can be
    vmapped over keys and hyper-parameters, so that one program trains a grid of seeds.
    Export requires that ``anonymize`` draws by ``jaxanon.kernels.portable``. Registered
    methods can be pickled.
    """

    name: str
    config: Any  # frozen JSON-able dataclass of static settings, or None
    spec: Any  # ``jaxanon.datasets.Spec`` of the windows
    prepare: Callable  # (Clients) -> data on the device, once
    init: Callable  # (key, **hyper) -> state
    update: Callable  # (run key, state, data) -> (state, info), one round
    schedule: Schedule
    # (key, state, windows) -> windows, both in physical units.
    anonymize: Callable | None = None
    predict: Prediction | None = None
    generate: Generation | None = None
    federation: Federation | None = None
    adjustable: Adjustable = Adjustable()
    guarantee: Any = None  # from ``privacy.guarantee``, for noise in training
    release: Release | None = None
    own_data: OwnData | None = None
    place: Callable | None = None  # (data, devices) -> ``DevicePlacement``
    tokens: bool = False  # whether windows may contain event tokens
    recipe: str = registry.RECOMMENDED  # name of the recipe that ``config`` began from

    @property
    def stages(self):
        """Stages of a round for several devices; None if rounds cannot be shared."""
        return None if self.federation is None else self.federation.algorithm.stages

    def __reduce__(self):
        """Pickles name, spec, config and recipe if the registry rebuilds the method.

        Other methods are pickled field by field, which requires picklable functions.
        """
        parts = self.name, self.spec, self.config, self.recipe
        try:
            if _functions(registry.rebuild(*parts)) == _functions(self):
                return registry.rebuild, parts
        except (TypeError, ValueError):
            pass
        return Method._make, (tuple(self),)


def _functions(part):
    """Returns the code of a method's functions and its plain values, recursively.

    Functions with the same code compare equal even if their closures differ.
    """
    if isinstance(part, tuple):
        return tuple(map(_functions, part))
    plain = isinstance(part, str | int | float | None)
    return part if plain else getattr(part, "__code__", None)


class Incompatible(ValueError):
    """Raised for settings that are valid separately but not together.

    A sweep skips such combinations.
    """


def generation(method) -> Generation:
    """Returns the generation capability, or raises TypeError without one.

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
    """Checks that an anonymizer's windows are measurements, not event tokens.

    Raises:
      ValueError: if ``method`` anonymizes, its spec has ``tokens``, and the method does
        not declare ``tokens=True``.
    """
    if method.anonymize is None or method.tokens:
        return
    if method.spec.tokens:
        raise ValueError(
            f"data must be measurements for {method.name}, got {method.spec.name} "
            f"({method.spec.preset}), whose numbers stand for events; train a learner "
            "such as fedavg on it."
        )


def epochs_needed(method, rounds: int | None = None) -> int:
    """Returns the number of epochs that reaches a method's last phase.

    Args:
      method: ``Method``.
      rounds: rounds per epoch, if known; some phases are counted in rounds.
    """
    schedule = method.schedule
    if rounds is None:
        return schedule.min_epochs
    return max(schedule.min_epochs, 1 + schedule.min_rounds // rounds)


def warn_of_epochs(method, epochs: int, rounds: int | None = None) -> None:
    """Warns if training ends before a method's last phase begins.

    Args:
      method: ``Method``.
      epochs: requested number of epochs.
      rounds: rounds per epoch, if known; some phases are counted in rounds.
    """
    least = epochs_needed(method, rounds)
    if epochs < least:
        names = ", ".join(method.schedule.phases)
        warnings.warn(
            f"epochs should be >= {least} for {method.name}, got {epochs}: training "
            f"ends before its last phase begins, after epoch {least - 1}; raise epochs "
            f"or shorten the earlier phases ({names}).",
            UserWarning,
            stacklevel=4,  # The caller of ``train``, behind ``single``.
        )


def check_hyper(method: Method, hyper: dict) -> None:
    """Checks hyper-parameters by the bounds of the settings of the same names.

    Raises:
      ValueError: if a value is not a finite number or is out of range.
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
