"""Layout of clients on a device: in parallel, sequential or in chunks."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from jaxanon.kernels.bounds import check, setting

_BUDGET_BYTES = 4 << 30  # Memory for weights held at once on an accelerator.

_MAX_UNROLLED = 40  # Networks with more arrays are not unrolled.

HEADER_BYTES = 4  # Identifier of a layer that is sent separately.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A performance setting, which changes results only by rounding.

    Example:
      >>> Layout(chunk_size=1, unroll=5)
      Layout(chunk_size=1, unroll=5)
    """

    chunk_size: int | None = setting(
        None,
        at_least=1,
        remedy="None takes all clients",
        help="clients computed in parallel (``vmap``). ``None`` is all clients; 1 is "
        "sequential (``scan``), which keeps a client's weights in cache. Chunks run in "
        "sequence and only a running sum of their results is kept",
    )
    unroll: int = setting(1, at_least=1, help="local steps unrolled in the program")

    __post_init__ = check


def default_layout(
    params, num_clients, *, num_steps=1, example_bytes=0, backend=None
) -> Layout:
    """Chooses the layout for given shapes and backend.

    On a CPU, clients run sequentially with up to 8 unrolled steps, so a client's
    weights stay in cache. Networks of more than 40 arrays are not unrolled, because
    compilation would take minutes. On other backends all clients run in parallel, or as
    many as fit into 4 GiB of weights, gradients, updates and per-example gradients.

    Args:
      params: tree of arrays or shapes, one client's weights.
      num_clients: number of clients in a cohort.
      num_steps: local steps of a client.
      example_bytes: bytes of a client's per-example gradients held at once.
      backend: ``"cpu"``, ``"gpu"``, ... None is JAX's default.

    Example:
      >>> default_layout(jnp.zeros(10), 64, num_steps=5, backend="cpu")
      Layout(chunk_size=1, unroll=5)
      >>> default_layout(jnp.zeros(10), 64, backend="gpu")
      Layout(chunk_size=None, unroll=1)
    """
    leaves = jax.tree.leaves(params)
    unroll = min(num_steps, 8) if len(leaves) <= _MAX_UNROLLED else 1
    if (backend or jax.default_backend()) == "cpu":
        return Layout(chunk_size=1, unroll=unroll)
    alive = 3 * num_bytes(params) + example_bytes
    fits = max(1, int(_BUDGET_BYTES // max(alive, 1)))
    return Layout(chunk_size=None if fits >= num_clients else fits, unroll=unroll)


def num_bytes(tree) -> int:
    """Returns the bytes of a tree of arrays or shapes.

    Example:
      >>> num_bytes({"w": jnp.zeros((2, 3)), "b": jnp.zeros(3)})
      36
    """
    leaves = jax.tree.leaves(tree)
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def sum_over_clients(fn, clients, weights, layout):
    """Returns the sum of ``weights[c] * fn(client c)``; see ``mean_over_clients``."""
    return sum_and_keep(lambda client: (fn(client), ()), clients, weights, layout)[0]


def sum_and_keep(fn, clients, weights, layout):
    """Computes a weighted sum over clients and one result per client.

    Args:
      fn: one client's tree to ``(summed, kept)``, trees of arrays.
      clients, weights, layout: see ``mean_over_clients``.

    Returns:
      The sum of ``weights[c] * summed``, and ``kept`` with a leading clients axis, also
      for clients of weight 0.

    Example:
      >>> x, weights = jnp.array([1.0, 2.0, 5.0]), jnp.array([1.0, 1.0, 2.0])
      >>> sum_and_keep(lambda c: (c, c + 1), x, weights, Layout(chunk_size=2))
      (Array(13., dtype=float32), Array([2., 3., 6.], dtype=float32))
    """
    first = lambda clients: fn(jax.tree.map(lambda leaf: leaf[0], clients))[1]
    room = lambda leaf: jnp.zeros((len(weights), *leaf.shape), leaf.dtype)
    kept = jax.tree.map(room, jax.eval_shape(first, clients))
    return sum_and_change(lambda client, _: fn(client), clients, kept, weights, layout)


def sum_and_change(fn, clients, own, weights, layout):
    """Computes a weighted sum over clients and updates a per-client state.

    With sequential clients the state is updated in place, without a copy if ``own`` is
    donated (``donate_argnums``).

    Args:
      fn: ``(client, own) -> (summed, own)``, trees of arrays.
      clients, weights, layout: see ``mean_over_clients``.
      own: tree of arrays ``[clients, ...]``.

    Returns:
      The sum of ``weights[c] * summed``, and the updated ``own``, also for clients of
      weight 0.

    Example:
      >>> fn = lambda client, own: (client, own + client)
      >>> x, own = jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])
      >>> sum_and_change(fn, x, own, jnp.array([1.0, 3.0]), Layout(chunk_size=1))
      (Array(7., dtype=float32), Array([11., 22.], dtype=float32))
    """
    num = len(weights)
    chunk = num if layout.chunk_size is None else min(layout.chunk_size, num)

    def side_by_side(clients, own, weights):
        summed, own = jax.vmap(fn)(clients, own)
        weigh = lambda leaf: jnp.sum(_weigh(weights, leaf), axis=0)
        return jax.tree.map(weigh, summed), own

    def alone(client, own, weight):
        summed, own = fn(client, own)
        return jax.tree.map(functools.partial(_weigh, weight), summed), own

    if chunk == num:
        return side_by_side(clients, own, weights)
    of_part, index = alone, jnp.arange(num)
    if chunk > 1:
        # The last chunk is padded by repeating its last client with weight 0. Repeated
        # clients give the same state.
        place = jnp.arange(-(-num // chunk) * chunk).reshape(-1, chunk)
        index = jnp.minimum(place, num - 1)
        weights = jnp.where(place < num, weights[index], 0)
        clients = jax.tree.map(lambda leaf: leaf[index], clients)
        of_part = side_by_side

    def put(all_, index, new):
        new = new.astype(all_.dtype)
        if chunk > 1:
            return all_.at[index].set(new)
        return jax.lax.dynamic_update_index_in_dim(all_, new, index, 0)

    def add(carry, part):
        total, own = carry
        index, clients, weights = part
        before = jax.tree.map(lambda leaf: leaf[index], own)
        summed, after = of_part(clients, before, weights)
        own = jax.tree.map(lambda all_, x: put(all_, index, x), own, after)
        return (jax.tree.map(jnp.add, total, summed), own), None

    def first(parts, own):
        index, clients, weights = jax.tree.map(lambda leaf: leaf[0], parts)
        before = jax.tree.map(lambda leaf: leaf[index], own)
        return of_part(clients, before, weights)[0]

    parts = index, clients, weights
    zeros = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(first, parts, own),
    )
    return jax.lax.scan(add, (zeros, own), parts)[0]


def _weigh(weight, leaf):
    """Returns ``weight * leaf``, and 0 for weight 0, even if the leaf is NaN."""
    dtype = jnp.promote_types(leaf.dtype, jnp.float32)
    shape = weight.shape + (1,) * (leaf.ndim - weight.ndim)
    weight = weight.astype(dtype).reshape(shape)
    return jnp.where(weight == 0, 0, weight * leaf.astype(dtype))


def divide(total, weight):
    """Returns ``total / weight``, or 0 if the weight is 0."""
    safe = jnp.where(weight > 0, weight, 1)
    return jax.tree.map(lambda leaf: leaf / safe.astype(leaf.dtype), total)


def mean_over_clients(fn, clients, weights, layout):
    """Computes the weighted mean of ``fn`` over clients.

    With ``layout.chunk_size`` = k, memory holds the results of at most k clients and
    one running sum.

    Args:
      fn: one client's tree to a tree of arrays.
      clients: tree of arrays or typed keys ``[clients, ...]``.
      weights: ``float[clients]``, >= 0. Clients of weight 0 have no effect, even if
        their result is NaN. If all weights are 0, the mean is 0.
      layout: ``Layout``.

    Returns:
      The mean, in at least float32.

    Example:
      >>> x, weights = jnp.array([1.0, 2.0, 5.0]), jnp.array([1.0, 1.0, 2.0])
      >>> mean_over_clients(lambda c: {"y": 2 * c}, x, weights, Layout(chunk_size=2))
      {'y': Array(6.5, dtype=float32)}
    """
    weights = jnp.asarray(weights)
    total = sum_over_clients(fn, clients, weights, layout)
    return divide(total, jnp.sum(weights))
