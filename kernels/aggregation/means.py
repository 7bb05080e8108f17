"""Means over clients: weighted per layer, trimmed, and the median."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import row_sums
from jaxanon.kernels.aggregation import stacks
from jaxanon.kernels.checks import as_array, known, number_like, tree_numeric, whole
from jaxanon.kernels.precision import wide
from jaxanon.kernels.selection import sum_of_places


def layer_mean(updates, weights, *, sent=None, previous=None):
    """Averages each layer over the clients that sent it, with weights.

    Args:
      updates: tree of ``float[clients, ...]``, the clients' values of each layer.
      weights: ``float[clients]``, >= 0; 0 excludes a client. Values that are not sent
        or have weight 0 may be NaN.
      sent: tree prefix of ``updates`` of ``bool[clients]``, True if a client sent the
        layer. One array can serve all layers. None means that all clients sent it.
      previous: tree like ``updates`` without the clients axis, used for layers that
        no client sent. None is zeros.

    Returns:
      Tree like ``updates`` without the clients axis, in its dtypes. Sums are computed
      in at least float32.

    Raises:
      TypeError: if a leaf does not hold floats.
      ValueError: if a leaf and ``weights`` differ in the number of clients, or ``sent``
        or ``previous`` does not fit the tree.

    Example:
      No client sent the head, and the second client did not send the body.

      >>> updates = {"body": jnp.array([2.0, 5.0, 6.0]), "head": jnp.ones(3)}
      >>> sent = {"body": jnp.array([True, False, True]), "head": jnp.zeros(3, bool)}
      >>> old = {"body": jnp.float32(0.0), "head": jnp.float32(9.0)}
      >>> layer_mean(updates, jnp.array([1.0, 1.0, 3.0]), sent=sent, previous=old)
      {'body': Array(5., dtype=float32), 'head': Array(9., dtype=float32)}

    References:
      Atlas, eq. 3.10, with weights; McMahan et al., AISTATS 2017, for complete updates.
    """
    weights = as_array("weights", weights)
    stacks.check(updates, weights, "weights")
    sent = stacks.per_leaf(sent, updates, weights)
    if previous is None:
        previous = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), updates)
    tree_numeric(previous=previous)
    shapes = jax.tree.map(lambda leaf: leaf.shape[1:], updates)
    if jax.tree.map(jnp.shape, previous) != shapes:
        raise ValueError(
            "previous must be a tree like updates without the clients axis, shapes "
            f"{shapes}, got {jax.tree.map(jnp.shape, previous)}."
        )

    def one(leaf, here, old):
        weight = jnp.where(here, weights, 0).astype(wide(leaf.dtype))
        total = row_sums.weighted(weight, weight > 0, leaf)
        mass = jnp.sum(weight)
        mean = total / jnp.where(mass > 0, mass, 1)
        return jnp.where(mass > 0, mean, jnp.asarray(old)).astype(leaf.dtype)

    return jax.tree.map(one, updates, sent, previous)


def trimmed_mean(updates, num_trimmed, *, mask=None):
    """Averages each coordinate without its smallest and largest values.

    Args:
      updates: tree of ``float[clients, ...]``. NaN counts as infinity. Values of absent
        clients are ignored.
      num_trimmed: number of values dropped at each end, ``int``; may be traced. If too
        few values would remain, one or two are kept, which gives the median.
      mask: ``bool[clients]``, False for absent clients. None means all are present.

    Returns:
      Tree like ``updates`` without the clients axis; zeros if all clients are absent.

    Raises:
      TypeError: if a leaf does not hold floats, or ``num_trimmed`` is a fraction.
      ValueError: if leaves differ in their number of clients, or ``num_trimmed`` on the
        host is below 0.

    Example:
      >>> trimmed_mean({"w": jnp.array([1.0, 2.0, 4.0, 900.0])}, 1)
      {'w': Array(3., dtype=float32)}

    References:
      Yin et al., Byzantine-robust distributed learning, ICML 2018.
    """
    if known(num_trimmed) is not None:
        num_trimmed = whole("num_trimmed", num_trimmed, least=0)
    number_like("num_trimmed", num_trimmed)
    mask = stacks.present(updates, mask)
    count = jnp.sum(mask)
    trimmed = jnp.minimum(num_trimmed, jnp.maximum(count - 1, 0) // 2)

    def one(leaf):
        values = stacks.absent_infinite(leaf, mask)
        total = sum_of_places(values, trimmed, count - trimmed)
        return (total / jnp.maximum(count - 2 * trimmed, 1)).astype(leaf.dtype)

    return jax.tree.map(one, updates)


def coordinate_median(updates, *, mask=None):
    """Computes the median of each coordinate.

    An even number of clients gives the mean of the two middle values.

    Args:
      updates: tree of ``float[clients, ...]``. NaN counts as infinity. Values of absent
        clients are ignored.
      mask: ``bool[clients]``, False for absent clients. None means all are present.

    Returns:
      Tree like ``updates`` without the clients axis; zeros if all clients are absent.

    Raises:
      TypeError: if a leaf does not hold floats.
      ValueError: if leaves differ in their number of clients.

    Example:
      >>> coordinate_median({"w": jnp.array([1.0, 2.0, 4.0, 900.0])})
      {'w': Array(3., dtype=float32)}

    References:
      Yin et al., Byzantine-robust distributed learning, ICML 2018.
    """
    mask = stacks.present(updates, mask)
    return trimmed_mean(updates, len(mask), mask=mask)
