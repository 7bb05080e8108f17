"""DEEProtect's named inferences: the directions that tell of them, and neighbours."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.methods.deeprotect_release import Apart, along, anything
from jaxanon.models import moments


class Named(NamedTuple):
    """What windows tell the private attributes by."""

    directions: jax.Array  # float32[r, inputs]
    apart: Apart  # of float32[]; how far windows along them are apart


def empty(spec, inputs: int) -> Named:
    """Before anything is learned; nothing is released by it in mode "named".

    Args:
      spec: ``jaxanon.datasets.Spec``.
      inputs: numbers of a window.
    """
    rank = sum(spec.num_classes(name) - 1 for name in spec.private)
    return Named(jnp.zeros((rank, inputs)), Apart(*map(jnp.float32, anything(inputs))))


def due(number, rounds: int):
    """Whether directions are learned after so many rounds: 1, 2, 4, 8, ... epochs.

    So that at least half of all batches have been seen, and edges of polytopes, which
    may take seconds, are tried a few times only.

    Args:
      number: of rounds so far, ``int32[]`` or a Python int, > 0.
      rounds: of an epoch.

    Example:
      >>> [epoch for epoch in range(1, 20) if due(10 * epoch, 10)]
      [1, 2, 4, 8, 16]
      >>> bool(due(11, 10))
      False
    """
    epoch = number // rounds
    return (number % rounds == 0) & (epoch & (epoch - 1) == 0)


def learn(spec, config, seen: moments.Moments, penalty, old: Named, now) -> Named:
    """The directions that linear classifiers of the windows so far read by.

    Of an attribute of C classes there are C - 1, by which one class's score differs
    from the first one's: the largest score says the class, and what all scores have in
    common says nothing.

    Args:
      spec, config: of the method.
      seen: moments of windows in [0, 1].
      penalty: of the ridge regression.
      old: what there is.
      now: ``bool[]``; where False, ``old`` is kept.
    """

    def anew():
        rows = [moments.ridge(seen, name, penalty) for name in spec.private]
        found = jnp.concatenate([each[1:] - each[:1] for each in rows])
        if config.mode == "everything":  # Holds for any directions.
            return old._replace(directions=found)
        return Named(found, along(found, now, old.apart))

    return jax.lax.cond(now, anew, lambda: old)


def apart(config, named: Named) -> Apart:
    """How far neighbouring windows are apart, by the method's mode.

    Args:
      config: ``DEEProtectConfig``.
      named: of the method's state.
    """
    if config.mode == "everything":
        return anything(named.directions.shape[1])
    return named.apart
