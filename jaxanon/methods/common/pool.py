"""All clients' training windows in one pool, for methods trained in one place."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.datasets.spec import attributes
from jaxanon.methods.common.alternating import BatchSource

# Why classes must have windows.
FOR_HIDING = "to be compared with, and shown in place of those to hide"

FOR_TELLING = "for the generator is told any of them"


class Pool(NamedTuple):
    """Windows on the device, standardised, with tables to draw from by class."""

    windows: jax.Array  # float32[N, time, channels]
    labels: dict[str, jax.Array]  # int32[N] of each attribute, "subject" included
    order: jax.Array  # int32[N]; windows sorted by public class
    starts: jax.Array  # int32[classes]; where a public class begins in ``order``
    counts: jax.Array  # int32[classes]; windows of a public class


class Drawn(NamedTuple):
    """A batch of a pool."""

    windows: jax.Array  # float32[batch, time, channels], standardised
    labels: dict[str, jax.Array]  # int32[batch] of each attribute
    index: jax.Array  # int32[batch]; which windows of the pool they are


def pool(spec, clients, *, by_class: bool = False) -> Pool:
    """Standardises all real windows of stacked clients and moves them to the device.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      by_class: whether every public class must have windows, for a method that trains
        a model on each class's own.

    Raises:
      ValueError: if the windows do not fit the spec, or a public class has fewer than
        two windows though ``by_class`` is set.

    Example:
      >>> from jaxanon import datasets
      >>> data = datasets.load("smartwatch")
      >>> found = pool(data.spec, datasets.by_client(data.train))
      >>> len(found.windows) == len(data.train.windows) == int(found.counts.sum())
      True
    """
    expected = (spec.time, len(spec.channels))
    if clients.windows.shape[2:] != expected:
        raise ValueError(
            f"clients' windows must be [clients, n, {expected[0]}, {expected[1]}] for "
            f"dataset {spec.name!r}, got shape {clients.windows.shape}."
        )
    mean, std = np.float32(spec.mean), np.float32(spec.std)
    windows = (clients.windows[clients.mask] - mean) / std
    labels = {name: each[clients.mask] for name, each in clients.labels.items()}
    public = labels[spec.public]
    counts = np.bincount(public, minlength=spec.num_classes(spec.public))
    if by_class:
        check_counts(spec, counts, 2, "for it has a model of its own")
    order = np.argsort(public, kind="stable")
    starts = np.cumsum(counts) - counts
    ints = lambda x: jnp.asarray(x, jnp.int32)
    return Pool(
        jnp.asarray(windows, jnp.float32),
        {name: ints(each) for name, each in labels.items()},
        *map(ints, (order, starts, counts)),
    )


def check_counts(spec, counts, least: int, why: str) -> None:
    """Refuses public classes that have too few windows.

    Args:
      spec: the windows' ``Spec``.
      counts: ``int[classes]``, training windows of each.
      least: as many as each must have.
      why: what they are needed for, to end a sentence.

    Raises:
      ValueError: naming classes that have fewer.
    """
    counts, names = np.asarray(counts), spec.classes[spec.public]
    if few := [names[c] for c in np.flatnonzero(counts < least)]:
        number = {1: "a training window", 2: "two training windows"}[least]
        raise ValueError(
            f"each class of {spec.public!r} must have {number} at least, {why}; {few} "
            "have fewer. Record more of them, or make the data anew without their "
            "windows and their names."
        )


def draw(key, data: Pool, size: int, public=None) -> Drawn:
    """``size`` windows drawn uniformly with replacement, of public classes if given.

    Args:
      key: typed PRNG key.
      data: the pool.
      size: windows of the batch.
      public: ``int32[]``, a public class that has windows, or ``int32[size]``, one for
        each window; None is all of them.
    """
    if public is None:
        index = jax.random.randint(key, (size,), 0, len(data.windows))
    else:
        place = jax.random.randint(key, (size,), 0, data.counts[public])
        index = data.order[data.starts[public] + place]
    labels = {name: each[index] for name, each in data.labels.items()}
    return Drawn(data.windows[index], labels, index)


def rounds_per_epoch(data: Pool, size: int, *, by_class: bool = False) -> int:
    """Batches of ``size`` in a pass over the pool, or over its largest public class."""
    windows = int(data.counts.max()) if by_class else len(data.windows)
    return max(1, round(windows / size))


def hold_out(spec, clients, share: float):
    """Parts windows into some to learn from and some to judge by.

    Held out are the last ones, as they came, of each client's windows of each public
    class, so that hardly any that overlap lie on both sides.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      share: of each client's windows of a class, rounded down, in (0, 1).

    Returns:
      ``Clients`` twice, with the masks of either part.

    Raises:
      ValueError: if none are held out.

    Example:
      >>> from jaxanon import datasets
      >>> data = datasets.load("smartwatch")
      >>> clients = datasets.by_client(data.train)
      >>> learned, held = hold_out(data.spec, clients, 0.2)
      >>> bool((learned.mask ^ held.mask == clients.mask).all())
      True
      >>> bool(0.15 < held.mask.sum() / clients.mask.sum() <= 0.2)
      True
    """
    public = clients.labels[spec.public]
    held = np.zeros_like(clients.mask)
    for client, mask in enumerate(clients.mask):
        for label in np.unique(public[client][mask]):
            rows = np.flatnonzero(mask & (public[client] == label))
            held[client, rows[len(rows) - int(share * len(rows) + 1e-9) :]] = True
    if not held.any():
        raise ValueError(
            f"held_out {share:g} leaves no window to judge by, for nobody has "
            f"{math.ceil(1 / share - 1e-9)} training windows of one {spec.public}; "
            "raise held_out, or set patience to 0."
        )
    return clients._replace(mask=clients.mask & ~held), clients._replace(mask=held)


class Weighed(NamedTuple):
    """Windows on the device, and for each attribute a weight for each class."""

    pool: Pool
    weights: dict[str, jax.Array]  # float32[classes]


class PoolBatch(NamedTuple):
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
    windows, weights = pool(spec, clients), {}
    for name in attributes(spec):
        labels = np.asarray(windows.labels[name])
        counts = np.bincount(labels, minlength=spec.num_classes(name))
        if name == spec.public and kept is not None:
            counts = np.where(np.isin(np.arange(len(counts)), kept), counts, 0)
        there = counts > 0
        each = counts.sum() / np.maximum(there.sum() * counts, 1)
        weights[name] = jnp.asarray(np.where(there, each, 0), jnp.float32)
    return Weighed(windows, weights)


def draw_weighed(key, data: Weighed, size: int) -> PoolBatch:
    """``size`` windows drawn uniformly with replacement."""
    drawn = draw(key, data.pool, size)
    weights = {name: each[drawn.labels[name]] for name, each in data.weights.items()}
    return PoolBatch(drawn.windows, drawn.labels, weights, drawn.index)


def batch_source(spec, size: int) -> BatchSource:
    """Where a system trains on weighed batches of ``size`` of all windows."""
    return BatchSource(
        lambda clients: weigh(spec, clients),
        lambda key, data, copy: draw_weighed(key, data, size),
        lambda data: rounds_per_epoch(data.pool, size),
        size,
    )
