"""Means over clients: weighted per layer, trimmed, and the median."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import row_sums
from jaxanon.kernels.aggregation import stacks
from jaxanon.kernels.checks import known, whole
from jaxanon.kernels.precision import wide
from jaxanon.kernels.selection import sum_of_places


def layer_mean(updates, weights, *, sent=None, previous=None):
    """Weighted mean over clients, each layer over the clients that sent it.

    Args:
      updates: tree of ``float[clients, ...]``, the clients' values of each layer.
      weights: ``float[clients]``, >= 0; 0 leaves a client out. A value that is not
        sent, or has weight 0, may be NaN.
      sent: who sent which layer: a tree prefix of ``updates`` of ``bool[clients]``, so
        one array serves for all layers, or one for each. ``None`` is everybody.
      previous: tree like ``updates`` without the clients axis, the value of a layer
        that nobody sent; ``None`` is zeros.

    Returns:
      Tree like ``updates`` without the clients axis, in its dtypes; sums are taken in
      float32 at least.

    Raises:
      TypeError: if a leaf holds no floats: means of whole numbers would be cut off.
      ValueError: if a leaf has another number of clients than ``weights``, or ``sent``
        or ``previous`` does not fit the tree.

    Example:
      Nobody sent the head; the second client sent no body.

      >>> updates = {"body": jnp.array([2.0, 5.0, 6.0]), "head": jnp.ones(3)}
      >>> sent = {"body": jnp.array([True, False, True]), "head": jnp.zeros(3, bool)}
      >>> old = {"body": jnp.float32(0.0), "head": jnp.float32(9.0)}
      >>> layer_mean(updates, jnp.array([1.0, 1.0, 3.0]), sent=sent, previous=old)
      {'body': Array(5., dtype=float32), 'head': Array(9., dtype=float32)}

    References:
      Atlas, eq. 3.10, with weights; McMahan et al., AISTATS 2017, where all send all.
    """
    weights = jnp.asarray(weights)
    stacks.check(updates, weights, "weights")
    sent = stacks.per_leaf(sent, updates, weights)
    if previous is None:
        previous = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), updates)

    def one(leaf, here, old):
        weight = jnp.where(here, weights, 0).astype(wide(leaf.dtype))
        total = row_sums.weighted(weight, weight > 0, leaf)
        mass = jnp.sum(weight)
        mean = total / jnp.where(mass > 0, mass, 1)
        return jnp.where(mass > 0, mean, jnp.asarray(old)).astype(leaf.dtype)

    return jax.tree.map(one, updates, sent, previous)


def trimmed_mean(updates, num_trimmed, *, mask=None):
    """Mean of every coordinate without its smallest and largest values.

    Args:
      updates: tree of ``float[clients, ...]``. NaN counts as infinity; of an absent
        client all is ignored.
      num_trimmed: values dropped at either end, ``int``; may be traced. Where that
        would leave nothing, as many are dropped as leave one or two values, which
        makes it the median.
      mask: ``bool[clients]``, False for absent clients; ``None`` is all there.

    Returns:
      Tree like ``updates`` without the clients axis; zeros if nobody is there.

    Raises:
      TypeError: if a leaf holds no floats, or ``num_trimmed`` is a fraction.
      ValueError: if leaves differ in their number of clients, or ``num_trimmed`` is a
        number on the host and below 0.

    Example:
      >>> trimmed_mean({"w": jnp.array([1.0, 2.0, 4.0, 900.0])}, 1)
      {'w': Array(3., dtype=float32)}

    References:
      Yin et al., Byzantine-robust distributed learning, ICML 2018.
    """
    if known(num_trimmed) is not None:
        num_trimmed = whole("num_trimmed", num_trimmed, least=0)
    mask = stacks.present(updates, mask)
    count = jnp.sum(mask)
    trimmed = jnp.minimum(num_trimmed, jnp.maximum(count - 1, 0) // 2)

    def one(leaf):
        values = stacks.absent_infinite(leaf, mask)
        total = sum_of_places(values, trimmed, count - trimmed)
        return (total / jnp.maximum(count - 2 * trimmed, 1)).astype(leaf.dtype)

    return jax.tree.map(one, updates)


def coordinate_median(updates, *, mask=None):
    """Median of every coordinate; the mean of the two middle values if they are even.

    Args:
      updates: tree of ``float[clients, ...]``. NaN counts as infinity; of an absent
        client all is ignored.
      mask: ``bool[clients]``, False for absent clients; ``None`` is all there.

    Returns:
      Tree like ``updates`` without the clients axis; zeros if nobody is there.

    Raises:
      TypeError: if a leaf holds no floats.
      ValueError: if leaves differ in their number of clients.

    Example:
      >>> coordinate_median({"w": jnp.array([1.0, 2.0, 4.0, 900.0])})
      {'w': Array(3., dtype=float32)}

    References:
      Yin et al., Byzantine-robust distributed learning, ICML 2018.
    """
    mask = stacks.present(updates, mask)
    return trimmed_mean(updates, len(mask), mask=mask)
