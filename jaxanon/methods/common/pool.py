"""Pooled training windows of all clients, for centrally trained methods."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.datasets.spec import attributes
from jaxanon.methods.common.alternating import BatchSource

# Reasons for ``check_counts``.
FOR_HIDING = "because other classes replace the hidden ones"

FOR_TELLING = "because the generator is conditioned on each class"


class Pool(NamedTuple):
    """Standardised windows on the device, indexed by public class."""

    windows: jax.Array  # float32[N, time, channels]
    labels: dict[str, jax.Array]  # int32[N], by attribute, including "subject"
    order: jax.Array  # int32[N]; window indices sorted by public class
    starts: jax.Array  # int32[classes]; start of each public class in ``order``
    counts: jax.Array  # int32[classes]; number of windows per public class


class Drawn(NamedTuple):
    """Batch of pooled windows."""

    windows: jax.Array  # float32[batch, time, channels], standardised
    labels: dict[str, jax.Array]  # int32[batch], by attribute
    index: jax.Array  # int32[batch]; indices into the pool


def pool(spec, clients, *, by_class: bool = False) -> Pool:
    """Standardises all real windows of stacked clients and moves them to the device.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      by_class: whether every public class must have at least two windows, for methods
        that train one model per class.

    Raises:
      ValueError: if the windows do not fit the spec, or ``by_class`` is set and a
        public class has fewer than two windows.

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
        check_counts(spec, counts, 2, "because each class has its own model")
    order = np.argsort(public, kind="stable")
    starts = np.cumsum(counts) - counts
    ints = lambda x: jnp.asarray(x, jnp.int32)
    return Pool(
        jnp.asarray(windows, jnp.float32),
        {name: ints(each) for name, each in labels.items()},
        *map(ints, (order, starts, counts)),
    )


def check_counts(spec, counts, least: int, why: str) -> None:
    """Raises an error if a public class has too few windows.

    Args:
      spec: the windows' ``Spec``.
      counts: number of training windows per class, ``int[classes]``.
      least: minimum number per class, 1 or 2.
      why: reason, appended to the requirement in the message.

    Raises:
      ValueError: if a class has fewer than ``least`` windows.
    """
    counts, names = np.asarray(counts), spec.classes[spec.public]
    if few := [names[c] for c in np.flatnonzero(counts < least)]:
        number = {1: "one training window", 2: "two training windows"}[least]
        raise ValueError(
            f"each class of {spec.public!r} must have at least {number} {why}, but "
            f"{few} have fewer; record more windows, or rebuild the dataset without "
            "these classes."
        )


def draw(key, data: Pool, size: int, public=None) -> Drawn:
    """Draws ``size`` windows uniformly with replacement, optionally by public class.

    Args:
      key: typed PRNG key.
      data: pooled windows.
      size: batch size.
      public: public class of all windows (``int32[]``) or of each (``int32[size]``);
        each class must have windows. None draws from all windows.
    """
    if public is None:
        index = jax.random.randint(key, (size,), 0, len(data.windows))
    else:
        offset = jax.random.randint(key, (size,), 0, data.counts[public])
        index = data.order[data.starts[public] + offset]
    labels = {name: each[index] for name, each in data.labels.items()}
    return Drawn(data.windows[index], labels, index)


def rounds_per_epoch(data: Pool, size: int, *, by_class: bool = False) -> int:
    """Returns the batches per pass over the pool, or over its largest public class."""
    windows = int(data.counts.max()) if by_class else len(data.windows)
    return max(1, round(windows / size))


def hold_out(spec, clients, share: float):
    """Splits windows into a training and a validation part.

    The validation part is the last windows of each client and public class in recorded
    order, so few windows overlap across the split.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      share: validation fraction per client and class, rounded down to whole windows, in
        (0, 1).

    Returns:
      ``(training, validation)``, both ``Clients`` with masks.

    Raises:
      ValueError: if the validation part is empty.

    Example:
      >>> from jaxanon import datasets
      >>> data = datasets.load("smartwatch")
      >>> clients = datasets.by_client(data.train)
      >>> training, validation = hold_out(data.spec, clients, 0.2)
      >>> bool((training.mask ^ validation.mask == clients.mask).all())
      True
      >>> bool(0.15 < validation.mask.sum() / clients.mask.sum() <= 0.2)
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
            f"validation_fraction must leave a validation window, got {share:g}; each "
            f"client has fewer than {math.ceil(1 / share - 1e-9)} training windows per "
            f"class of {spec.public!r}. Raise it, or set patience to 0."
        )
    return clients._replace(mask=clients.mask & ~held), clients._replace(mask=held)


class Weighed(NamedTuple):
    """Windows on the device with class weights for each attribute."""

    pool: Pool
    weights: dict[str, jax.Array]  # float32[classes]


class PoolBatch(NamedTuple):
    """Batch of pooled windows with class weights."""

    windows: jax.Array  # float32[batch, time, channels], standardised
    labels: dict[str, jax.Array]  # int32[batch], by attribute
    weights: dict[str, jax.Array]  # float32[batch]; 0 ignores the window
    index: jax.Array  # int32[batch]; indices into the pool


def weigh(spec, clients, kept: tuple[int, ...] | None = None) -> Weighed:
    """Pools stacked clients' windows and computes balanced class weights.

    A class's weight is proportional to its inverse frequency; the weights average 1
    over the weighted windows.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      kept: public classes with nonzero weight; None selects all.

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
        present = counts > 0
        each = counts.sum() / np.maximum(present.sum() * counts, 1)
        weights[name] = jnp.asarray(np.where(present, each, 0), jnp.float32)
    return Weighed(windows, weights)


def draw_weighed(key, data: Weighed, size: int) -> PoolBatch:
    """Draws ``size`` windows uniformly with replacement."""
    drawn = draw(key, data.pool, size)
    weights = {name: each[drawn.labels[name]] for name, each in data.weights.items()}
    return PoolBatch(drawn.windows, drawn.labels, weights, drawn.index)


def batch_source(spec, size: int) -> BatchSource:
    """Returns a source of class-weighted batches of ``size`` pooled windows."""
    return BatchSource(
        lambda clients: weigh(spec, clients),
        lambda key, data, copy: draw_weighed(key, data, size),
        lambda data: rounds_per_epoch(data.pool, size),
        size,
    )
