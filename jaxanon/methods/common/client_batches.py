"""Client batches for adversarial training, with all random numbers drawn up front."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.datasets.spec import attributes
from jaxanon.federated import Population, population
from jaxanon.federated.engine.local import visit, visiting_order
from jaxanon.models.blinder import BlinderBatch


class Balanced(NamedTuple):
    """All clients' windows on the device, with tables for balanced batches.

    SMOTE uses the joint class of the public and private labels, so it interpolates
    between two windows with the same labels.
    """

    windows: jax.Array  # float32[clients, n, time, channels], standardised
    table: kernels.BalanceTable  # with a leading clients axis


class Query(NamedTuple):
    """Batches for the loss of the outer loop."""

    batch: BlinderBatch
    extra: BlinderBatch  # for the classifiers, which need more windows
    key: jax.Array  # for the classifiers' dropout


def prepare(spec, clients, k_neighbors: int) -> Balanced:
    """Standardises stacked clients, moves them to the device and finds neighbours.

    Args:
      spec: the windows' ``Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      k_neighbors: k of SMOTE.

    Raises:
      ValueError: if the windows do not fit the spec, or a client has none.
    """
    windows = standardised(spec, clients)
    sizes = [spec.num_classes(name) for name in attributes(spec)]
    joint = np.zeros(clients.mask.shape, np.int32)
    for name, size in zip(attributes(spec), sizes, strict=True):
        joint = joint * size + clients.labels[name]

    @jax.jit
    def tables(windows, joint, mask):
        def one(client):
            rows, labels, real = client
            classes = math.prod(sizes)
            return kernels.balance_table(rows, labels, real, classes, k_neighbors)

        return jax.lax.map(one, (windows, joint, mask))

    table = tables(windows, jnp.asarray(joint), jnp.asarray(clients.mask))
    return Balanced(windows, table)


def standardised(spec, clients) -> jax.Array:
    """Returns standardised windows of stacked clients on the device; padding is 0.

    Raises:
      ValueError: if the windows do not fit the spec, or a client has none.
    """
    expected = (spec.time, len(spec.channels))
    if clients.windows.shape[2:] != expected:
        raise ValueError(
            f"clients' windows must be [clients, n, {expected[0]}, {expected[1]}] for "
            f"dataset {spec.name!r}, got shape {clients.windows.shape}."
        )
    empty = np.flatnonzero(~clients.mask.any(axis=1))
    if len(empty):
        raise ValueError(
            f"clients {empty.tolist()} have no windows; drop them before training."
        )
    mean, std = np.float32(spec.mean), np.float32(spec.std)
    windows = (clients.windows - mean) / std * clients.mask[..., None, None]
    return jnp.asarray(windows, jnp.float32)


def draw_batch(
    key, client, data: Balanced, spec, latent, per_class, size, *, rows_key=None
) -> BlinderBatch:
    """Draws ``size`` windows of one client, balanced over its classes.

    Args:
      key: typed PRNG key.
      client: client index, ``int32[]``.
      data: windows of all clients.
      spec: the windows' ``Spec``.
      latent: size of the latent representation.
      per_class: windows per class in the balanced set; SMOTE fills up smaller classes.
      size: number of windows.
      rows_key: separate key that selects the windows; None derives it from ``key``.

    Returns:
      ``BlinderBatch``; all weights are 0 if the client has no windows.
    """
    own_key, noise_key, renoise_key, shadow_key, shown_key = jax.random.split(key, 5)
    rows_key = own_key if rows_key is None else rows_key
    rows = kernels.draw_from_table(
        rows_key, data.windows, data.table, per_class, size, client=client
    )
    labels, rest = [], rows.labels
    for name in reversed(attributes(spec)):
        labels.append(rest % spec.num_classes(name))
        rest = rest // spec.num_classes(name)
    public, *private = reversed(labels)
    classes = [spec.num_classes(name) for name in spec.private]
    shadow_keys = jax.random.split(shadow_key, len(classes))
    shadow = [
        other_class(k, label, num)
        for k, label, num in zip(shadow_keys, private, classes, strict=True)
    ]
    shown_keys = jax.random.split(shown_key, len(classes))
    shown = [
        jax.random.randint(k, (size,), 0, num)
        for k, num in zip(shown_keys, classes, strict=True)
    ]
    hot = lambda labels: tuple(
        jax.nn.one_hot(label, num) for label, num in zip(labels, classes, strict=True)
    )
    return BlinderBatch(
        windows=rows.x,
        public=jax.nn.one_hot(public, spec.num_classes(spec.public)),
        private=hot(private),
        weights=rows.mask.astype(rows.x.dtype),
        noise=jax.random.normal(noise_key, (size, latent)),
        shadow=hot(shadow),
        renoise=jax.random.normal(renoise_key, (2 * size, latent)),
        target=hot(shown),
    )


def other_class(key, labels, num_classes: int):
    """Draws a class uniformly from all classes except each label; ``labels``' shape.

    Example:
      >>> other_class(jax.random.key(0), jnp.array([0, 1]), 2)
      Array([1, 0], dtype=int32)
    """
    shift = jax.random.randint(key, labels.shape, 1, num_classes)
    return (labels + shift) % num_classes


class ClientWindows(NamedTuple):
    """Windows of one client, or of all clients with a leading ``clients`` axis."""

    windows: jax.Array  # float32[n, time, channels], standardised; padding is 0
    labels: dict[str, jax.Array]  # int32[n], public and private attributes


def prepare_population(spec, clients) -> Population:
    """Moves stacked clients to the device as a population of ``ClientWindows`` rows.

    Raises:
      ValueError: if the windows do not fit the spec, or a client has none.
    """
    ints = lambda labels: jnp.asarray(labels, jnp.int32)
    labels = {name: ints(clients.labels[name]) for name in attributes(spec)}
    return population(ClientWindows(standardised(spec, clients), labels), clients.mask)


def class_counts(labels, mask, num_classes: int):
    """Returns the number of real rows per class, ``int32[classes]``.

    Example:
      >>> class_counts(jnp.array([2, 0, 2, 1]), jnp.array([True, True, True, False]), 3)
      Array([1, 0, 2], dtype=int32)
    """
    hot = (labels[:, None] == jnp.arange(num_classes)[None]) & mask[:, None]
    return jnp.sum(hot, axis=0, dtype=jnp.int32)


def in_turn(key, mask, size: int) -> Callable:
    """Returns a function that cycles through the real rows in random order.

    Returns:
      ``(key, step) -> (int32[size], bool[size])``, row indices and a mask. At most as
      many entries are unmasked as there are real rows.
    """
    order, num_real = visiting_order(key, mask, shuffle=True), jnp.sum(mask)

    def draw(key, step):
        del key
        return visit(order, num_real, size, step)

    return draw


def balanced(labels, mask, num_classes: int, size: int) -> Callable:
    """Returns a function that draws the client's classes with equal probability.

    It draws rows with replacement, weighted by the inverse frequency of their class.
    The result has the same form as that of ``in_turn``.
    """
    counts = class_counts(labels, mask, num_classes)
    order = jnp.argsort(jnp.where(mask, labels, num_classes))
    starts = jnp.cumsum(counts) - counts
    chances = jnp.where(counts > 0, 0.0, -jnp.inf)

    def draw(key, step):
        del step
        class_key, row_key = jax.random.split(key)
        classes = jax.random.categorical(class_key, chances, shape=(size,))
        most = jnp.maximum(counts[classes], 1)
        index = order[starts[classes] + jax.random.randint(row_key, (size,), 0, most)]
        return index, jnp.arange(size) < jnp.sum(mask)

    return draw


def batch_of(key, spec, data: ClientWindows, index, real, latent: int) -> BlinderBatch:
    """Returns the rows ``index`` as a ``BlinderBatch`` with noise for their latents.

    The fields for shadow samples and target classes are empty.
    """
    hot = lambda name: jax.nn.one_hot(data.labels[name][index], spec.num_classes(name))
    windows = data.windows[index]
    return BlinderBatch(
        windows=windows,
        public=hot(spec.public),
        private=tuple(hot(name) for name in spec.private),
        weights=real.astype(windows.dtype),
        noise=jax.random.normal(key, (len(index), latent)),
        shadow=(),
        renoise=jnp.zeros((0, latent)),
        target=(),
    )
