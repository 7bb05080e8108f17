"""What a method is: a tuple of pure functions."""

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
    clients_per_round: Callable  # (data) -> int
