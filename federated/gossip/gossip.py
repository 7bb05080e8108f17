"""Decentralised averaging between agents, with lost and late messages."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import known, whole


def mix(mixing, params):
    """Computes every agent's weighted mean of all agents' parameters.

    Args:
      mixing: ``float[agents, agents]``; row i holds the weights of agent i.
      params: tree of arrays ``[agents, ...]``.

    Returns:
      The mixed tree, summed in at least float32. Agents of weight 0 have no effect,
      even if their parameters are NaN.

    Raises:
      ValueError: if a leaf has another number of agents.

    Example:
      >>> half = jnp.array([[0.5, 0.5], [0.5, 0.5]])
      >>> mix(half, {"w": jnp.array([[2.0, 0.0], [4.0, 6.0]])})
      {'w': Array([[3., 3.],
             [3., 3.]], dtype=float32)}
    """
    return jax.tree.map(functools.partial(_mixed, mixing), params)


def base_layers(layers: Sequence[str], alpha) -> dict:
    """Marks the first ``alpha`` layers as shared.

    Args:
      layers: names of the layers from input to output.
      alpha: number of shared layers, a Python int or ``int[]``; may be traced.

    Returns:
      Dict from name to bool, for ``exchange``.

    Raises:
      ValueError: for a Python int outside ``[0, len(layers)]``.

    Example:
      >>> base_layers(("dense_1", "dense_2", "dense_3"), 2)
      {'dense_1': True, 'dense_2': True, 'dense_3': False}
    """
    if isinstance(alpha, int) and not 0 <= alpha <= len(layers):
        raise ValueError(
            f"alpha must be in [0, {len(layers)}], the number of layers, got {alpha!r}."
        )
    return {name: place < alpha for place, name in enumerate(layers)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChannelConfig:
    """Loss and delay of messages, independent for every link and round.

    Raises:
      TypeError: for a probability that is not a number, or an age that is not an
        integer.
      ValueError: for invalid probabilities, a negative age, or age 0 with late
        messages.

    Example:
      >>> ChannelConfig(drop_probability=0.1, max_age=2)
      ChannelConfig(drop_probability=0.1, delay_probability=0.0, max_age=2)
    """

    drop_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a loss"
    )
    delay_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a delay"
    )
    max_age: int = setting(
        0,
        at_least=0,
        help="maximum age of a received message in rounds, at least 1 if messages can "
        "be late. An agent uses its own layers in place of older or missing messages",
    )

    def __post_init__(self):
        check(self)
        if self.drop_probability + self.delay_probability > 1:
            raise ValueError(
                "drop_probability + delay_probability must be <= 1, got "
                f"{self.drop_probability!r} and {self.delay_probability!r}."
            )
        if self.delay_probability and not self.max_age:
            raise ValueError(
                "max_age must be >= 1 with delay_probability "
                f"{self.delay_probability!r}, got 0; "
                "late messages are one round old on arrival."
            )


class MessageBuffer(NamedTuple):
    """Recent broadcasts, and the age of the messages that each agent has received."""

    round: jax.Array  # int32[]; completed broadcasts
    sent: Any  # [max_age, agents, ...]; the latest first
    age: jax.Array  # int32[agents, agents]; age of the column's message at the row
    under_way: jax.Array  # bool[agents, agents]; the latest message arrives next round


def empty_message_buffer(
    params, shared: dict, messages: ChannelConfig | None = None
) -> MessageBuffer:
    """Returns the message buffer before the first broadcast.

    Args:
      params, shared, messages: see ``exchange``.

    Raises:
      ValueError: if ``shared`` and ``params`` differ in their layers.

    Example:
      >>> empty_message_buffer({"w": jnp.zeros((2, 3))}, {"w": True}).age
      Array([[0, 1],
             [1, 0]], dtype=int32)
    """
    depth = (messages or ChannelConfig()).max_age
    sent, _ = _parted(params, shared)
    agents = _agents(params)
    blank = lambda leaf: jnp.zeros((depth, *leaf.shape), leaf.dtype)
    others = ~jnp.eye(agents, dtype=bool)
    return MessageBuffer(
        round=jnp.zeros((), jnp.int32),
        sent=jax.tree.map(blank, sent),
        age=jnp.where(others, depth + 1, 0).astype(jnp.int32),
        under_way=jnp.zeros((agents, agents), bool),
    )


def exchange(
    key,
    buffer: MessageBuffer,
    params,
    mixing,
    *,
    shared,
    messages: ChannelConfig | None = None,
    numbers=None,
):
    """Broadcasts the shared layers of all agents and mixes the received messages.

    Each agent mixes its current layers with the last received message of each other
    agent. The message may be from this round, from the last round if it was late, or up
    to ``max_age`` rounds old. Otherwise its weight goes to the agent's own layers. Rows
    therefore always sum to 1. With lost messages the mean over agents is not preserved.

    Args:
      key: typed PRNG key of the run. The round uses ``fold_in(key, buffer.round)``.
      buffer: result of ``empty_message_buffer`` or of the last broadcast.
      params: dict of layers, trees of arrays ``[agents, ...]``.
      mixing: ``float[agents, agents]``; see ``check_mixing``.
      shared: dict from layer to bool, True if it is broadcast. Python bools skip other
        layers; ``bool[]`` may be traced.
      messages: ``ChannelConfig``, the same at every call. None is a perfect channel.
      numbers: ``int[agents]``, seeds of message losses and delays. None is the
        position. For exchanges of a subset of agents, pass their indices in the whole.

    Returns:
      The message buffer, and the params with shared layers mixed. With a perfect
      channel this equals ``mix(mixing, ...)``. It may be jitted, scanned and vmapped.

    Raises:
      ValueError: if a leaf and ``mixing`` differ in the number of agents, or
        ``shared`` and ``params`` in their layers.

    Example:
      Agents at 2 and 4 meet halfway; ``v`` is unchanged.

      >>> params = {"w": jnp.array([2.0, 4.0]), "v": jnp.array([5.0, 7.0])}
      >>> shared = {"w": True, "v": False}
      >>> _, params = exchange(
      ...     jax.random.key(0), empty_message_buffer(params, shared), params,
      ...     jnp.full((2, 2), 0.5), shared=shared)
      >>> params["w"], params["v"]
      (Array([3., 3.], dtype=float32), Array([5., 7.], dtype=float32))

    References:
      Lian et al., Can decentralized algorithms outperform centralized algorithms?
      (D-PSGD), NeurIPS 2017.
    """
    messages = messages or ChannelConfig()
    fate = fates_now(key, buffer, params, messages, numbers)
    return deliver(buffer, params, mixing, *fate, shared=shared, messages=messages)


def exchange_every(
    period, key, buffer, params, mixing, step, *, shared, messages=None, numbers=None
):
    """Calls ``exchange`` at the end of every ``period`` steps.

    Args:
      period: ``int[]`` >= 1, may be traced; 12 hours are 720 steps of a minute.
      key, buffer, params, mixing, shared, messages, numbers: see ``exchange``.
      step: ``int[]``, index of the completed step, from 0.

    Returns:
      The message buffer and the params.

    Raises:
      ValueError: for a Python period below 1; also the conditions of ``exchange``.

    Example:
      >>> params, shared = {"w": jnp.array([2.0, 4.0])}, {"w": True}
      >>> mail, half = empty_message_buffer(params, shared), jnp.full((2, 2), 0.5)
      >>> for step in range(2):
      ...     mail, params = exchange_every(
      ...         2, jax.random.key(0), mail, params, half, step, shared=shared)
      ...     print(params["w"])
      [2. 4.]
      [3. 3.]
    """
    due = is_due(period, step)
    messages = messages or ChannelConfig()
    # Sampled outside the branch: in a sweep over periods both branches are computed.
    fate = fates_now(key, buffer, params, messages, numbers)
    speak = functools.partial(deliver, shared=shared, messages=messages)
    silent = lambda buffer, params, mixing, in_time, late: (buffer, params)
    return jax.lax.cond(due, speak, silent, buffer, params, mixing, *fate)


def is_due(period, step):
    """Returns ``bool[]``, whether a step ends a period.

    Raises:
      TypeError: for a period on the host that is not an integer.
      ValueError: for one below 1.
    """
    if known(period) is not None:
        whole("period", period, least=1)
    return (jnp.asarray(step) + 1) % period == 0


def fates_now(key, buffer, params, messages, numbers):
    """Samples the delivery of this broadcast's messages."""
    agents = _agents(params) if numbers is None else numbers
    return sample_delivery(jax.random.fold_in(key, buffer.round), agents, messages)


def deliver(buffer, params, mixing, in_time, late, *, shared, messages, public=None):
    """Returns the message buffer and params after a broadcast with given delivery.

    ``public``, if given, is sent to other agents in place of an agent's layers.
    """
    own, kept = _parted(params, shared)
    sent = own if public is None else public
    forgotten = messages.max_age + 1
    older = jnp.where(buffer.under_way, 1, buffer.age + 1)
    age = jnp.where(in_time, 0, jnp.minimum(older, forgotten)).astype(jnp.int32)
    have = lambda rounds: jnp.where(age == rounds, mixing, 0)
    alone = jnp.diag(jnp.sum(have(forgotten), axis=1))
    itself = jnp.diag(jnp.diag(have(0)))

    def received(own, now, before):
        if public is None:
            total = _mixed(have(0) + alone, own)
        else:
            total = _mixed(itself + alone, own) + _mixed(have(0) - itself, now)
        for back in range(messages.max_age):
            total = total + _mixed(have(back + 1), before[back])
        return total

    after = jax.tree.map(received, own, sent, buffer.sent)
    traced = lambda name, leaf, own: jnp.where(shared[name], leaf, own)
    after = {
        name: jax.tree.map(functools.partial(traced, name), after[name], own[name])
        for name in after
    }
    recent = lambda now, before: jnp.concatenate([now[None], before])[
        : messages.max_age
    ]
    buffer = MessageBuffer(
        round=buffer.round + 1,
        sent=jax.tree.map(recent, sent, buffer.sent),
        age=age,
        under_way=late,
    )
    return buffer, {name: (kept | after)[name] for name in params}


def _mixed(mixing, leaf):
    if jnp.ndim(leaf) < 1 or len(leaf) != len(mixing):
        raise ValueError(
            f"params must have a leading axis of {len(mixing)} agents as mixing, got "
            f"an array of shape {jnp.shape(leaf)}."
        )
    wide = leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))
    flat = wide.reshape(len(leaf), -1)
    mixing = jnp.asarray(mixing, flat.dtype)
    broken = ~jnp.all(jnp.isfinite(flat), axis=1)  # 0 * NaN is NaN.
    whole_ones = jnp.where(broken[:, None], 0, flat)
    product = jnp.matmul(mixing, whole_ones, precision=jax.lax.Precision.HIGHEST)
    spoilt = jnp.any((mixing != 0) & broken[None], axis=1)
    product = jnp.where(spoilt[:, None], jnp.nan, product)
    return product.reshape(leaf.shape).astype(leaf.dtype)


def _parted(params, shared):
    """Splits layers into those that may be broadcast and the others."""
    if set(shared) != set(params):
        raise ValueError(
            f"shared must have one entry per layer, {sorted(params)}, got "
            f"{sorted(shared)}."
        )
    sent = {name: params[name] for name in params if shared[name] is not False}
    return sent, {name: params[name] for name in params if name not in sent}


def _agents(params):
    return len(jax.tree.leaves(params)[0])


def sample_delivery(key, agents, messages: ChannelConfig):
    """Samples which messages of a round arrive in time, and which a round late.

    Args:
      key: typed PRNG key of the round.
      agents: number of agents, a Python int >= 1, or ``int[agents]``, their indices.
        The result depends only on the indices of the two agents, so it is the same for
        a subset of agents.
      messages: ``ChannelConfig``.

    Returns:
      Two ``bool[agents, agents]``, rows are receivers. An agent's message to itself is
      always in time.

    Example:
      >>> channel = ChannelConfig(drop_probability=1.0)
      >>> in_time, late = sample_delivery(jax.random.key(0), 2, channel)
      >>> in_time
      Array([[ True, False],
             [False,  True]], dtype=bool)
    """
    if isinstance(agents, int):
        agents = jnp.arange(whole("agents", agents, least=1))
    count, lost = len(agents), messages.drop_probability
    beyond = lost + messages.delay_probability
    if not beyond:
        return jnp.ones((count, count), bool), jnp.zeros((count, count), bool)

    def draw(receiver, sender):
        own_key = jax.random.fold_in(jax.random.fold_in(key, receiver), sender)
        return jax.random.uniform(own_key)

    draws = jax.vmap(lambda number: jax.vmap(draw, (None, 0))(number, agents))(agents)
    oneself = jnp.eye(count, dtype=bool)
    late = (draws >= lost) & (draws < beyond) & ~oneself
    return (draws >= beyond) | oneself, late
