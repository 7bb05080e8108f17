"""How clients are laid out on a device: side by side, in turn, or in chunks."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from jaxanon.kernels.bounds import check, setting

_BUDGET_BYTES = 4 << 30  # Weights that may be alive at once on an accelerator.

_MOST_UNROLLED = 40  # Arrays of a network.

HEADER_BYTES = 4  # Of a layer that is sent by itself: which one it is.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A performance setting: it changes no result beyond rounding.

    Example:
      >>> Layout(chunk=1, unroll=5)
      Layout(chunk=1, unroll=5)
    """

    chunk: int | None = setting(
        None,
        at_least=1,
        remedy="None takes all clients",
        help="clients computed side by side (``vmap``). ``None`` is all of them; 1 is "
        "one after another (``scan``), where a client's weights stay in cache; the "
        "rest wait their turn, and only a running sum of their results is kept",
    )
    unroll: int = setting(1, at_least=1, help="local steps written one by one")

    __post_init__ = check


def default_layout(
    params, num_clients, *, num_steps=1, example_bytes=0, backend=None
) -> Layout:
    """The layout for these shapes on this backend.

    On a CPU one client after another, its steps unrolled (up to 8): a client's weights
    stay in cache. Networks of more than 40 arrays are not unrolled, for they would take
    minutes to compile. Elsewhere all side by side, or as many as 4 GiB of weights,
    gradients and updates allow, and of what is held of single examples.

    Args:
      params: tree of arrays or shapes, one client's weights.
      num_clients: clients in a cohort.
      num_steps: local steps of a client.
      example_bytes: of gradients of a client's single examples, alive at once.
      backend: ``"cpu"``, ``"gpu"``, ...; ``None`` is the one that JAX uses.

    Example:
      >>> default_layout(jnp.zeros(10), 64, num_steps=5, backend="cpu")
      Layout(chunk=1, unroll=5)
      >>> default_layout(jnp.zeros(10), 64, backend="gpu")
      Layout(chunk=None, unroll=1)
    """
    leaves = jax.tree.leaves(params)
    unroll = min(num_steps, 8) if len(leaves) <= _MOST_UNROLLED else 1
    if (backend or jax.default_backend()) == "cpu":
        return Layout(chunk=1, unroll=unroll)
    alive = 3 * num_bytes(params) + example_bytes
    fits = max(1, int(_BUDGET_BYTES // max(alive, 1)))
    return Layout(chunk=None if fits >= num_clients else fits, unroll=unroll)


def num_bytes(tree) -> int:
    """What the arrays of a tree take, or would by their shapes.

    Example:
      >>> num_bytes({"w": jnp.zeros((2, 3)), "b": jnp.zeros(3)})
      36
    """
    leaves = jax.tree.leaves(tree)
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def sum_over_clients(fn, clients, weights, layout):
    """The sum of ``weights[c] * fn(client c)``; see ``mean_over_clients``."""
    return sum_and_keep(lambda client: (fn(client), ()), clients, weights, layout)[0]


def sum_and_keep(fn, clients, weights, layout):
    """The weighted sum of one thing over clients, and another of each of them.

    Args:
      fn: one client's tree to ``(summed, kept)``, trees of arrays.
      clients, weights, layout: see ``mean_over_clients``.

    Returns:
      The sum of ``weights[c] * summed``, and ``kept`` with a leading axis of clients,
      those of weight 0 too.

    Example:
      >>> x, weights = jnp.array([1.0, 2.0, 5.0]), jnp.array([1.0, 1.0, 2.0])
      >>> sum_and_keep(lambda c: (c, c + 1), x, weights, Layout(chunk=2))
      (Array(13., dtype=float32), Array([2., 3., 6.], dtype=float32))
    """
    first = lambda clients: fn(jax.tree.map(lambda leaf: leaf[0], clients))[1]
    room = lambda leaf: jnp.zeros((len(weights), *leaf.shape), leaf.dtype)
    kept = jax.tree.map(room, jax.eval_shape(first, clients))
    return sum_and_change(lambda client, _: fn(client), clients, kept, weights, layout)


def sum_and_change(fn, clients, own, weights, layout):
    """The weighted sum of one thing over clients, while something of each changes.

    One after another, each client's own is changed where it lies, and nothing is copied
    where the program may have ``own`` (``donate_argnums``).

    Args:
      fn: ``(client, own) -> (summed, own)``, trees of arrays.
      clients, weights, layout: see ``mean_over_clients``.
      own: tree of arrays ``[clients, ...]``.

    Returns:
      The sum of ``weights[c] * summed``, and ``own`` as it is now, of clients of weight
      0 too.

    Example:
      >>> fn = lambda client, own: (client, own + client)
      >>> x, own = jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])
      >>> sum_and_change(fn, x, own, jnp.array([1.0, 3.0]), Layout(chunk=1))
      (Array(7., dtype=float32), Array([11., 22.], dtype=float32))
    """
    num = len(weights)
    chunk = num if layout.chunk is None else min(layout.chunk, num)

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
        # The last chunk may be ragged: it is filled up by its last client, whose
        # repetitions weigh nothing and end in what it ends in.
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
    """``weight * leaf``; nothing, not even nan, comes from a client of weight 0."""
    dtype = jnp.promote_types(leaf.dtype, jnp.float32)
    shape = weight.shape + (1,) * (leaf.ndim - weight.ndim)
    weight = weight.astype(dtype).reshape(shape)
    return jnp.where(weight == 0, 0, weight * leaf.astype(dtype))


def divide(total, weight):
    """``total / weight``, and 0 where the weight is 0."""
    safe = jnp.where(weight > 0, weight, 1)
    return jax.tree.map(lambda leaf: leaf / safe.astype(leaf.dtype), total)


def mean_over_clients(fn, clients, weights, layout):
    """The weighted mean of ``fn`` over clients; per-client results are not kept.

    With ``layout.chunk`` = k at most k clients' results are alive at once, beside one
    running sum.

    Args:
      fn: one client's tree to a tree of arrays.
      clients: tree of arrays ``[clients, ...]``; typed keys too.
      weights: ``float[clients]``, not negative. A client of weight 0 changes nothing,
        whatever its result; if all are 0 the mean is 0.
      layout: a ``Layout``.

    Returns:
      The mean, in float32 or the wider type of the result.

    Example:
      >>> x, weights = jnp.array([1.0, 2.0, 5.0]), jnp.array([1.0, 1.0, 2.0])
      >>> mean_over_clients(lambda c: {"y": 2 * c}, x, weights, Layout(chunk=2))
      {'y': Array(6.5, dtype=float32)}
    """
    weights = jnp.asarray(weights)
    total = sum_over_clients(fn, clients, weights, layout)
    return divide(total, jnp.sum(weights))
