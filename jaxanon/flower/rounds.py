"""What the server does with a round: asks, refuses what is bad, merges what is left."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.programs import state_is_finite
from jaxanon.federated.engine import exchange as engine_exchange
from jaxanon.flower.client import parts_of


class TooFew(ValueError):
    """Of a round that fewer clients answered well than it needs."""


class Bounds(NamedTuple):
    """What a round's messages must keep to, and how many it needs."""

    min_clients: int = 1
    max_norm: float | None = None  # None is ``exchange.FACTOR`` times the median.


MOST_INFO = 1e30  # Of a loss, say; a sum of those is finite still.


class Rounds(NamedTuple):
    """A method's rounds over clients elsewhere, see ``rounds``."""

    cohort: Callable  # (state) -> list[int]
    update: Callable  # (state, ask, refuse) -> (state, info, accepted)


def rounds(method, key, clients: list[int], rows: Any, bounds: Bounds) -> Rounds:
    """The rounds of a method over clients elsewhere.

    ``update(state, ask, refuse)`` is one round, that of ``method.update`` but for those
    who did not answer well. ``ask(ids, facts, arrays) -> {client: Letter}`` gets a
    letter to all of ``ids`` and gives the replies of those who answered; ``refuse(
    client, why)`` is told of every message that counts for nothing. ``accepted`` has
    the name of the last message of every client that did count.

    Args:
      method: ``Method``.
      key: the run's.
      clients: as ``terms.clients_of``.
      rows: one client's data, or its shapes.
      bounds: ``Bounds``.

    Raises:
      ValueError: if the server's part needs what clients keep.
      TooFew: from ``update``, if fewer than ``bounds.min_clients`` answered well.
      FloatingPointError: from it, if the state is no longer finite.
    """
    num_clients = len(clients)
    parts = parts_of(method)
    programs = [
        jax.jit(functools.partial(engine_exchange.merged, each))
        for each in parts.exchanges
    ]
    ways = [jax.jit(each.way) for each in parts.exchanges]
    legal = [jax.jit(each.legal) for each in parts.exchanges]
    end = jax.jit(parts.end)
    most_rows = int(np.asarray(jax.tree.leaves(rows)[0].shape)[1])

    @functools.cache
    def like(index):
        """A message's shapes, of an exchange."""
        state = jax.eval_shape(method.init, key)
        number = jax.ShapeDtypeStruct((), np.int32)
        own = jax.eval_shape(engine_exchange.first_own, state)
        sent = engine_exchange.sent_out(state)
        reply = parts.exchanges[index].reply
        return jax.eval_shape(reply, key, sent, number, number, rows, own)[0]

    _check(parts, key, jax.eval_shape(method.init, key), num_clients, like)

    def read(index, letter):
        """A client's message and weight; ValueError says what is wrong with it."""
        try:
            return _read(index, letter)
        except ValueError:
            raise
        except Exception as error:  # Whatever a stranger thought of.
            why = f"it can't be read ({type(error).__name__})."
            raise ValueError(why) from error

    def _read(index, letter):
        message = engine_exchange.unpacked(letter.arrays, like(index))
        weight = letter.facts.get("weight")
        if not isinstance(weight, (int, float)):
            raise ValueError(f"its weight must be a number, got {weight!r}.")
        engine_exchange.check_weight(weight, parts.exchanges[index].most(most_rows))
        for path, value in jax.tree_util.tree_leaves_with_path(message[1]):
            if not np.all(np.abs(value) <= MOST_INFO):
                raise ValueError(
                    f"its {jax.tree_util.keystr(path)} must be within {MOST_INFO:g} of "
                    f"0, got {value}."
                )
        if not legal[index](message[0]):
            raise ValueError(
                "its flags must be 0 or 1, and its arrays 0 where a flag is, and they "
                "are not."
            )
        return message, float(weight)

    def good(index, state, replies, refuse):
        """``{client: (message, weight)}`` of those who sent nothing bad."""
        found, norms = {}, {}
        for client, letter in sorted(replies.items()):
            try:
                found[client] = read(index, letter)
            except ValueError as error:
                refuse(client, str(error))
                continue
            if found[client][1] > 0:
                norms[client] = engine_exchange.norm(
                    ways[index](state, found[client][0][0])
                )
        for client, why in engine_exchange.too_far(norms, bounds.max_norm).items():
            refuse(client, why)
            del found[client]
        return found

    def exchange(index, step, state, ids, ask, refuse, accepted):
        name = f"{int(state.round)}.{index}.{step}"
        facts = {"name": name, "exchange": index, "step": step}
        arrays = engine_exchange.packed(engine_exchange.sent_out(state))
        found = good(index, state, ask(ids, facts, arrays), refuse)
        if len(found) < bounds.min_clients:
            raise TooFew(
                f"round {int(state.round) + 1} needs {bounds.min_clients} good answers "
                f"and got {len(found)} from the clients {ids}."
            )
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like(index))
        rows = [found.get(client, (zeros, 0.0)) for client in ids]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(m for m, _ in rows))
        weights = jnp.asarray([weight for _, weight in rows], jnp.result_type(float))
        state, info = programs[index](state, jnp.asarray(ids), stacked, weights)
        accepted.update(dict.fromkeys(found, name))
        return state, info

    def cohort(state):
        return np.asarray(parts.cohort(key, state, num_clients)).tolist()

    def update(state, ask, refuse):
        ids, accepted, told = cohort(state), {}, {}
        after = state
        for index, each in enumerate(parts.exchanges):
            for step in range(each.num):
                after, info = exchange(index, step, after, ids, ask, refuse, accepted)
                told = info if index == step == 0 else told
        after = end(after)
        told = {name: float(value) for name, value in told.items()}
        if not (np.isfinite([*told.values()]).all() and bool(state_is_finite(after))):
            raise FloatingPointError(
                f"the losses or parameters are no longer finite in round "
                f"{int(after.round)}; lower the step size, or --max-message-norm."
            )
        return after, told, accepted

    return Rounds(cohort, update)


def _check(parts, key, state, num_clients, like):
    """Traces the server's part before there is anything to lose."""
    ids = jax.eval_shape(lambda state: parts.cohort(key, state, num_clients), state)
    weight = jax.ShapeDtypeStruct((), jnp.result_type(float))
    for index, each in enumerate(parts.exchanges):
        jax.eval_shape(each.merge, state, ids, like(index), weight)
