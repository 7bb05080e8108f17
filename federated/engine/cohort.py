"""Populations of stacked clients, and sampling of cohorts."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import fits, whole


class Population(NamedTuple):
    """Stacked rows of all clients; padding is zero and False in ``mask``."""

    rows: Any  # tree of arrays [clients, n, ...]
    mask: Any  # bool[clients, n]


def population(rows, mask) -> Population:
    """Checks stacked rows and moves them to the default device.

    Args:
      rows: tree of arrays ``[clients, n, ...]``.
      mask: ``bool[clients, n]``, False where a row is padding.

    Raises:
      ValueError: if shapes differ, a client has no rows, or JAX would change numbers,
        such as integers beyond int32.

    Example:
      >>> population({"x": np.ones((2, 3, 4))}, np.ones((2, 3), bool)).mask.shape
      (2, 3)
    """
    mask = np.asarray(mask, bool)
    if mask.ndim != 2:
        raise ValueError(f"mask must be bool[clients, n], got shape {mask.shape}.")
    for path, leaf in jax.tree_util.tree_leaves_with_path(rows):
        if np.shape(leaf)[:2] != mask.shape:
            raise ValueError(
                f"rows{jax.tree_util.keystr(path)} must have the leading axes "
                f"[clients, n] of mask, {mask.shape}, got shape {np.shape(leaf)}."
            )
        fits(f"rows{jax.tree_util.keystr(path)}", leaf)
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty) or not len(mask):
        raise ValueError(
            "every client must have at least one row, got none for clients "
            f"{empty.tolist()} of {len(mask)}; drop them before stacking."
        )
    return Population(jax.tree.map(jnp.asarray, rows), jnp.asarray(mask))


def stack(clients) -> Population:
    """Pads clients of unequal size and stacks them.

    Args:
      clients: non-empty sequence of equal trees of arrays ``[n_c, ...]``.

    Raises:
      ValueError: if a client has no rows, its arrays differ in length, or JAX would
        change numbers, such as integers beyond int32.

    Example:
      >>> stack([np.array([1.0, 2.0]), np.array([3.0])]).rows
      Array([[1., 2.],
             [3., 0.]], dtype=float32)
    """
    sizes = []
    for client, rows in enumerate(clients):
        found = {len(leaf) for leaf in jax.tree.leaves(rows)}
        if len(found) != 1:
            raise ValueError(
                f"arrays of client {client} must have the same number of rows, got "
                f"{sorted(found)}."
            )
        sizes.append(found.pop())
    longest = max(sizes, default=0)

    def padded(leaf):
        leaf = np.asarray(leaf)
        gap = [(0, longest - len(leaf))] + [(0, 0)] * (leaf.ndim - 1)
        return np.pad(leaf, gap)

    mask = np.arange(longest)[None] < np.array(sizes, int)[:, None]
    if not sizes:
        return population({}, mask)  # Raises the error.
    rows = jax.tree.map(lambda *leaves: np.stack([*map(padded, leaves)]), *clients)
    return population(rows, mask)


def check_num_clients(found: int, made_for: int) -> None:
    """Checks the size of a population.

    Raises:
      ValueError: if an algorithm was built for another number of clients.

    Example:
      >>> check_num_clients(3, 3)
    """
    if found != made_for:
        raise ValueError(
            f"population must have {made_for} clients as the algorithm, got {found}; "
            "build the algorithm with that number."
        )


def sample_cohort(key, round_, num_clients, size, *, rounds_per_cohort=1):
    """Samples the clients of a round without replacement; may be jitted.

    Args:
      key: typed PRNG key of the run.
      round_: ``int32[]``, completed rounds.
      num_clients: N, a Python int.
      size: m, a Python int in ``[1, N]``. With m = N all clients are returned in order.
      rounds_per_cohort: rounds before a new cohort is drawn, a Python int >= 1. Blinder
        uses one epoch.

    Returns:
      ``int32[m]``, distinct indices below N.

    Raises:
      TypeError: if a number is not an integer.
      ValueError: if a number is out of range.

    Example:
      >>> sample_cohort(jax.random.key(0), 0, 3, 3)
      Array([0, 1, 2], dtype=int32)
    """
    num_clients = whole("num_clients", num_clients, least=1)
    if not 1 <= size <= num_clients:
        raise ValueError(
            f"cohort_size must be in [1, {num_clients}], the number of clients, got "
            f"{size!r}."
        )
    size = whole("cohort_size", size, least=1)
    rounds_per_cohort = whole("rounds_per_cohort", rounds_per_cohort, least=1)
    if size == num_clients:
        return jnp.arange(num_clients, dtype=jnp.int32)
    first = round_ - round_ % rounds_per_cohort  # The round that drew this cohort.
    cohort_key, _ = jax.random.split(jax.random.fold_in(key, first))
    if num_clients <= SORTED:
        return jax.random.permutation(cohort_key, num_clients)[:size].astype(jnp.int32)
    places = jnp.arange(size, dtype=jnp.int32)
    return keyed_permutation(cohort_key, places, num_clients)


SORTED = 4096  # A population of at most this size is permuted as a whole.

_FEISTEL_ROUNDS = 12


def keyed_permutation(key, places, num: int):
    """Returns entries of a random permutation of ``range(num)``.

    It needs time and memory for the requested entries only. A Feistel network permutes
    the smallest power of 4 that is at least ``num``, and entries outside the range are
    permuted again (cycle walking).

    Args:
      key: typed PRNG key of the permutation.
      places: ``int32[m]`` in ``[0, num)``; equal places have equal entries.
      num: Python int in [1, 2^31].

    Returns:
      ``int32[m]`` below ``num``; distinct for distinct places.

    Raises:
      ValueError: for ``num`` out of range.

    Example:
      >>> ids = keyed_permutation(jax.random.key(0), jnp.arange(5), 5)
      >>> sorted(ids.tolist())
      [0, 1, 2, 3, 4]

    References:
      Luby and Rackoff, How to construct pseudorandom permutations from pseudorandom
      functions, SIAM Journal on Computing 1988; Black and Rogaway, Ciphers with
      arbitrary finite domains, CT-RSA 2002, for cycle walking.
    """
    num = whole("num", num, least=1)
    if num > 1 << 31:
        raise ValueError(f"num must be <= 2^31, got {num}; entries are int32.")
    half = max(1, -(-(num - 1).bit_length() // 2))
    low = jnp.uint32((1 << half) - 1)
    # Words, because every application of a round's function uses its key again.
    impl = jax.random.key_impl(key)
    words = jax.random.key_data(jax.random.split(key, _FEISTEL_ROUNDS))

    def exchange(halves, key):
        left, right = halves
        draw = lambda value: jax.random.bits(
            jax.random.fold_in(key, value), dtype=jnp.uint32
        )
        return (right, left ^ (jax.vmap(draw)(right) & low)), None

    def permuted(values):
        halves = values >> half, values & low
        keys = jax.random.wrap_key_data(words, impl=impl)
        (left, right), _ = jax.lax.scan(exchange, halves, keys)
        return (left << half) | right

    walk = lambda values: jnp.where(values >= num, permuted(values), values)
    start = permuted(jnp.asarray(places).astype(jnp.uint32))
    outside = lambda values: jnp.any(values >= num)
    return jax.lax.while_loop(outside, walk, start).astype(jnp.int32)


def cohort_size(config, num_clients: int) -> int:
    """Returns the cohort size as a fraction of all clients, rounded, at least 1."""
    return max(1, round(config.client_fraction * num_clients))
