"""What a method is: a tuple of pure functions."""

import dataclasses
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple


class Method(NamedTuple):
    """An anonymizer for the windows of one dataset, in the manner of Optax.

    The state is a tree of arrays with ``round`` (``int32[]``, rounds done), ``params``,
    ``average`` (their running mean, or None) and ``hyper`` (dict of ``float[]``);
    ``init`` and ``update`` may be vmapped over keys and hyper-parameters, so ten seeds
    and a grid are one program.
    """

    name: str
    config: Any  # frozen dataclass of static settings; JSON-able
    spec: Any  # jaxanon.datasets.Spec of the windows
    prepare: Callable  # (Clients) -> data on the device, once
    init: Callable  # (key, **hyper) -> state
    update: Callable  # (key, state, data) -> (state, info), one round; key of the run
    anonymize: Callable  # (key, state, windows) -> windows, both in physical units
    rounds_per_epoch: Callable  # (data) -> int
    work_per_round: Callable  # (data) -> int, how many of ``work``
    work: str = "client updates"  # what a round is counted in, and its speed told
    # (key, state, {attribute: int32[n]}, samples=None, avoid=None) -> windows of such
    # classes, made from nothing, or streams of so many samples; ``avoid`` has classes
    # to lead away from.
    sample: Callable | None = None
    # (state, {attribute: int[n]}) -> None; raises where those cannot be sampled.
    check_sample: Callable | None = None
    # (Clients) -> bool[clients, n], the windows that it learns from: others, held out,
    # say when to stop. None: all.
    learned_fn: Callable | None = None
    # (history, *, ended) -> None; raises where what the rounds so far told makes going
    # on useless, or, at the end, the run.
    check_history: Callable | None = None
    takes_tokens: bool = False  # whether windows' numbers may stand for something
    least_epochs: int = 1  # that its last phase of training needs to begin
    least_rounds: int = 0  # before that phase, where phases are counted in rounds
    phases: tuple[str, ...] = ()  # settings that say how long those before it are
    # (key, state, windows, labels) -> {what: float[n]}, how badly a generator explains
    # each window, in one or more ways.
    losses: Callable | None = None
    # ``privacy.guarantee.Guarantee`` of the noise in its training; None without.
    guarantee: Any = None
    takes_padding: bool = False  # whether more padding of clients changes no draw
    # Hyper-parameters that rewriting heeds and training does not: they may be set anew.
    at_release: tuple[str, ...] = ()
    # Settings of which the same is true; the method is built anew for them.
    settings_at_release: tuple[str, ...] = ()
    # ``FederatedAlgorithm`` that it trains by; None where all windows are in one place.
    algorithm: Any = None
    # (state) -> (loss_fn, params): what a client's steps on its public classifier take
    # gradients of, as ``attacks.invert_gradient`` takes it.
    client_loss: Callable | None = None

    @property
    def acts(self):
        """Of a round, which many devices may share; None where one has to do it."""
        return None if self.algorithm is None else self.algorithm.acts


class Incompatible(ValueError):
    """Of settings that may each be, and not together; a sweep leaves them out."""


def sampler(method) -> Callable:
    """What makes windows from nothing; TypeError for a method that makes none.

    Example:
      >>> import jaxanon as ja
      >>> sampler(ja.methods.orf(ja.load("smartwatch").spec))
      Traceback (most recent call last):
      TypeError: orf makes no windows from nothing; train privatehub, which does.
    """
    found = getattr(method, "sample", None)
    if found is None:
        raise TypeError(
            f"{method.name} makes no windows from nothing; train privatehub, which "
            "does."
        )
    return found


def check_measured(method) -> None:
    """Refuses to rewrite windows whose numbers stand for something.

    Raises:
      ValueError: if ``method`` anonymizes, its spec has ``tokens``, and it does not say
        that it takes them.
    """
    if not hasattr(method, "anonymize") or method.takes_tokens:
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
      method: ``Method``, or a ``Learner``, which has one phase.
      rounds: of an epoch, where they are known: phases may be counted in rounds.
    """
    least = getattr(method, "least_epochs", 1)
    if rounds is not None:
        least = max(least, 1 + getattr(method, "least_rounds", 0) // rounds)
    return least


def warn_of_epochs(method, epochs: int, rounds: int | None = None) -> None:
    """Warns where training ends before a method's last phase begins.

    Args:
      method: ``Method``, or a ``Learner``, which has one phase.
      epochs: that were asked for.
      rounds: of an epoch, where they are known: phases may be counted in rounds.
    """
    least = epochs_needed(method, rounds)
    if epochs < least:
        names = ", ".join(method.phases)
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
    fields = dataclasses.fields(method.config)
    checked = {field.name for field in fields if field.type is float}
    known = {}
    for name, value in hyper.items():
        scalar = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
        if not scalar or not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}.")
        if name in checked:
            known[name] = float(value)
    dataclasses.replace(method.config, **known)
