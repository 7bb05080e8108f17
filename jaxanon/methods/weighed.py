"""A pool of training windows with weights that make rare classes count as others."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.methods import pool
from jaxanon.methods.central import Room
from jaxanon.methods.draws import attributes


class Weighed(NamedTuple):
    """Windows on the device, and for each attribute a weight for each class."""

    pool: pool.Pool
    weights: dict[str, jax.Array]  # float32[classes]


class Batch(NamedTuple):
    """Windows drawn, standardised, with their classes and the weights of those."""

    windows: jax.Array  # float32[batch, time, channels]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute
    weights: dict[str, jax.Array]  # float32[batch]; 0: the class does not count
    index: jax.Array  # int32[batch]; which windows of the pool they are


def weigh(spec, clients, kept: tuple[int, ...] | None = None) -> Weighed:
    """Stacked clients' windows on the device.

    A class weighs as one over its windows, 1 on average over the windows that count.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      kept: public classes that count; None is all of them.

    Example:
      >>> from jaxanon import datasets
      >>> data = datasets.load("smartwatch", public="exercise", private=["side"])
      >>> found = weigh(data.spec, datasets.by_client(data.train))
      >>> labels = found.pool.labels["side"]
      >>> round(float(found.weights["side"][labels].mean()), 4)
      1.0
    """
    windows, weights = pool.pool(spec, clients), {}
    for name in attributes(spec):
        labels = np.asarray(windows.labels[name])
        counts = np.bincount(labels, minlength=spec.num_classes(name))
        if name == spec.public and kept is not None:
            counts = np.where(np.isin(np.arange(len(counts)), kept), counts, 0)
        there = counts > 0
        each = counts.sum() / np.maximum(there.sum() * counts, 1)
        weights[name] = jnp.asarray(np.where(there, each, 0), jnp.float32)
    return Weighed(windows, weights)


def draw(key, data: Weighed, size: int) -> Batch:
    """``size`` windows drawn uniformly with replacement."""
    drawn = pool.draw(key, data.pool, size)
    weights = {name: each[drawn.labels[name]] for name, each in data.weights.items()}
    return Batch(drawn.windows, drawn.labels, weights, drawn.index)


def room(spec, size: int) -> Room:
    """Where a system trains on weighed batches of ``size`` of all windows."""
    return Room(
        lambda clients: weigh(spec, clients),
        lambda key, data, copy: draw(key, data, size),
        lambda data: pool.rounds_per_epoch(data.pool, size),
        size,
    )
