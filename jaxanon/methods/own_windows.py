"""What a client draws from its own windows, as they are or balanced by class."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated import Population, population
from jaxanon.federated.local import visit, visiting_order
from jaxanon.methods.draws import attributes, standardised
from jaxanon.models.blinder import Batch


class Own(NamedTuple):
    """One client's windows; those of all of them with a leading ``clients`` axis."""

    windows: jax.Array  # float32[n, time, channels], standardised; padding is 0
    labels: dict[str, jax.Array]  # int32[n] of the public and the private attributes


def prepare(spec, clients) -> Population:
    """Stacked clients on the device, as rows ``Own``.

    Raises:
      ValueError: if the windows do not fit the spec, or a client has none.
    """
    ints = lambda labels: jnp.asarray(labels, jnp.int32)
    labels = {name: ints(clients.labels[name]) for name in attributes(spec)}
    return population(Own(standardised(spec, clients), labels), clients.mask)


def class_counts(labels, mask, num_classes: int):
    """``int32[classes]``, how many real rows each class has.

    Example:
      >>> class_counts(jnp.array([2, 0, 2, 1]), jnp.array([True, True, True, False]), 3)
      Array([1, 0, 2], dtype=int32)
    """
    hot = (labels[:, None] == jnp.arange(num_classes)[None]) & mask[:, None]
    return jnp.sum(hot, axis=0, dtype=jnp.int32)


def in_turn(key, mask, size: int) -> Callable:
    """Draws all real rows in random order, again from the start when they run out.

    Returns:
      ``(key, step) -> (int32[size], bool[size])``, which rows and which of them count;
      no more of them do than there are real rows.
    """
    order, num_real = visiting_order(key, mask, shuffle=True), jnp.sum(mask)

    def draw(key, step):
        del key
        return visit(order, num_real, size, step)

    return draw


def balanced(labels, mask, num_classes: int, size: int) -> Callable:
    """Draws classes that a client has equally often, and rows of a class alike.

    Rows come with replacement: the draw of every row with a weight of one over its
    class's count. The result is that of ``in_turn``.
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


def batch_of(key, spec, own: Own, index, real, latent: int) -> Batch:
    """The rows ``index`` as a ``Batch`` with noise for their latents.

    It has no shadow samples and shows no other classes: those fields are empty.
    """
    hot = lambda name: jax.nn.one_hot(own.labels[name][index], spec.num_classes(name))
    windows = own.windows[index]
    return Batch(
        windows=windows,
        public=hot(spec.public),
        private=tuple(hot(name) for name in spec.private),
        weights=real.astype(windows.dtype),
        noise=jax.random.normal(key, (len(index), latent)),
        shadow=(),
        renoise=jnp.zeros((0, latent)),
        shown=(),
    )
