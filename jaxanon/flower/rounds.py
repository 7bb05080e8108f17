"""Rounds of a server: requests, validation of replies, and aggregation."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.programs import state_is_finite
from jaxanon.federated.engine import exchange as engine_exchange
from jaxanon.flower.client import split_algorithm


class TooFew(ValueError):
    """Too few clients sent valid replies."""


class Bounds(NamedTuple):
    """Limits on the messages of a round."""

    min_replies: int = 1
    max_message_norm: float | None = None  # None: ``exchange.FACTOR`` x the median


MOST_INFO = 1e30  # Bound on reported losses, so that their sum is finite.


class Rounds(NamedTuple):
    """Rounds of a method over remote clients; see ``rounds``."""

    cohort: Callable  # (state) -> list[int]
    update: Callable  # (state, ask, refuse) -> (state, info, accepted)


def rounds(method, key, clients: list[int], rows: Any, bounds: Bounds) -> Rounds:
    """Builds the rounds of a method over remote clients.

    ``update(state, ask, refuse)`` computes one round of ``method.update`` over the
    clients with valid replies. ``ask(ids, facts, arrays) -> {client: Payload}`` sends a
    payload to each client in ``ids`` and returns the replies. ``refuse(client, why)``
    is called for each rejected message. ``accepted`` maps each client with a valid
    reply to the name of its last message.

    Args:
      method: ``Method``.
      key: PRNG key of the run.
      clients: subjects from ``terms.clients_of``.
      rows: one client's data, or its shapes.
      bounds: ``Bounds``.

    Raises:
      ValueError: if the server's part of a round reads state that clients keep.
      TooFew: from ``update``, if fewer than ``bounds.min_replies`` replies are valid.
      FloatingPointError: from ``update``, if the state is no longer finite.
    """
    num_clients = len(clients)
    parts = split_algorithm(method)
    programs = [
        jax.jit(functools.partial(engine_exchange.merge_messages, each))
        for each in parts.exchanges
    ]
    ways = [jax.jit(each.direction) for each in parts.exchanges]
    legal = [jax.jit(each.is_valid) for each in parts.exchanges]
    end = jax.jit(parts.end)
    max_windows = int(np.asarray(jax.tree.leaves(rows)[0].shape)[1])

    @functools.cache
    def like(index):
        """Returns the shapes of an exchange's message."""
        state = jax.eval_shape(method.init, key)
        number = jax.ShapeDtypeStruct((), np.int32)
        own = jax.eval_shape(engine_exchange.initial_own, state)
        sent = engine_exchange.broadcast_state(state)
        reply = parts.exchanges[index].reply
        return jax.eval_shape(reply, key, sent, number, number, rows, own)[0]

    _check(parts, key, jax.eval_shape(method.init, key), num_clients, like)

    def read(index, payload):
        """Returns a client's message and weight; raises ValueError if invalid."""
        try:
            return _read(index, payload)
        except ValueError:
            raise
        except Exception as error:  # Untrusted input can raise anything.
            why = f"it cannot be read ({type(error).__name__})."
            raise ValueError(why) from error

    def _read(index, payload):
        message = engine_exchange.unpack(payload.arrays, like(index))
        weight = payload.facts.get("weight")
        if not isinstance(weight, (int, float)):
            raise ValueError(f"its weight must be a number, got {weight!r}.")
        limit = parts.exchanges[index].max_weight(max_windows)
        engine_exchange.check_weight(weight, limit)
        for path, value in jax.tree_util.tree_leaves_with_path(message[1]):
            if not np.all(np.abs(value) <= MOST_INFO):
                raise ValueError(
                    f"its {jax.tree_util.keystr(path)} must be within {MOST_INFO:g} of "
                    f"0, got {value}."
                )
        if not legal[index](message[0]):
            raise ValueError(
                "its flags must be 0 or 1, and its arrays must be 0 where a flag is 0."
            )
        return message, float(weight)

    def valid_messages(index, state, replies, refuse):
        """Returns ``{client: (message, weight)}`` of the valid replies."""
        valid, norms = {}, {}
        for client, payload in sorted(replies.items()):
            try:
                valid[client] = read(index, payload)
            except ValueError as error:
                refuse(client, str(error))
                continue
            if valid[client][1] > 0:
                norms[client] = engine_exchange.norm(
                    ways[index](state, valid[client][0][0])
                )
        too_far = engine_exchange.find_oversized(norms, bounds.max_message_norm)
        for client, why in too_far.items():
            refuse(client, why)
            del valid[client]
        return valid

    def exchange(index, step, state, ids, ask, refuse, accepted):
        name = f"{int(state.round)}.{index}.{step}"
        facts = {"name": name, "exchange": index, "step": step}
        arrays = engine_exchange.pack(engine_exchange.broadcast_state(state))
        valid = valid_messages(index, state, ask(ids, facts, arrays), refuse)
        if len(valid) < bounds.min_replies:
            raise TooFew(
                f"round {int(state.round) + 1} needs {bounds.min_replies} valid "
                f"replies, got {len(valid)} from clients {ids}."
            )
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like(index))
        rows = [valid.get(client, (zeros, 0.0)) for client in ids]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(m for m, _ in rows))
        weights = jnp.asarray([weight for _, weight in rows], jnp.result_type(float))
        state, info = programs[index](state, jnp.asarray(ids), stacked, weights)
        accepted.update(dict.fromkeys(valid, name))
        return state, info

    def cohort(state):
        return np.asarray(parts.cohort(key, state, num_clients)).tolist()

    def update(state, ask, refuse):
        ids, accepted, first_info = cohort(state), {}, {}
        after = state
        for index, each in enumerate(parts.exchanges):
            for step in range(each.num):
                after, info = exchange(index, step, after, ids, ask, refuse, accepted)
                first_info = info if index == step == 0 else first_info
        after = end(after)
        losses = {name: float(value) for name, value in first_info.items()}
        if not (np.isfinite([*losses.values()]).all() and bool(state_is_finite(after))):
            raise FloatingPointError(
                "losses and parameters must be finite, got NaN or infinity in round "
                f"{int(after.round)}; lower the learning rate, or --max-message-norm."
            )
        return after, losses, accepted

    return Rounds(cohort, update)


def _check(parts, key, state, num_clients, like):
    """Traces the server's part so that errors appear before the run folder exists."""
    ids = jax.eval_shape(lambda state: parts.cohort(key, state, num_clients), state)
    weight = jax.ShapeDtypeStruct((), jnp.result_type(float))
    for index, each in enumerate(parts.exchanges):
        jax.eval_shape(each.merge, state, ids, like(index), weight)
