"""Agents that broadcast layers to one another, where messages get lost or are late."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import known, whole


def mix(mixing, params):
    """Every agent's weighted mean of all agents' parameters.

    Args:
      mixing: ``float[agents, agents]``, row i the weights of agent i.
      params: tree of arrays ``[agents, ...]``.

    Returns:
      The same tree; sums are taken in float32 or the leaf's wider type. Nothing, not
      even nan, comes from an agent of weight 0.

    Raises:
      ValueError: if a leaf is of another number of agents.

    Example:
      >>> half = jnp.array([[0.5, 0.5], [0.5, 0.5]])
      >>> mix(half, {"w": jnp.array([[2.0, 0.0], [4.0, 6.0]])})
      {'w': Array([[3., 3.],
             [3., 3.]], dtype=float32)}
    """
    return jax.tree.map(functools.partial(_mixed, mixing), params)


def base_layers(layers: Sequence[str], alpha) -> dict:
    """The first ``alpha`` of some layers are shared, the others stay at home.

    Args:
      layers: names, in the order in which inputs meet them.
      alpha: how many; a Python int, or ``int[]`` that may be traced, as in a sweep.

    Returns:
      name -> bool, for ``exchange``.

    Raises:
      ValueError: for a Python int out of ``[0, len(layers)]``.

    Example:
      >>> base_layers(("dense_1", "dense_2", "dense_3"), 2)
      {'dense_1': True, 'dense_2': True, 'dense_3': False}
    """
    if isinstance(alpha, int) and not 0 <= alpha <= len(layers):
        raise ValueError(
            f"alpha must lie in [0, {len(layers)}], the model's layers, got {alpha!r}."
        )
    return {name: place < alpha for place, name in enumerate(layers)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChannelConfig:
    """What becomes of a message, independently for every link and round.

    Raises:
      TypeError: for a probability that is no number, an age that is no whole one.
      ValueError: for probabilities that are none, a negative age, or one that no late
        message can have.

    Example:
      >>> ChannelConfig(lost=0.1, max_age=2)
      ChannelConfig(lost=0.1, late=0.0, max_age=2)
    """

    lost: float = setting(0.0, at_least=0, at_most=1, help="probability of a loss")
    late: float = setting(0.0, at_least=0, at_most=1, help="probability of a delay")
    max_age: int = setting(
        0,
        at_least=0,
        help="rounds that an agent goes on with the last message that arrived, at "
        "least 1 where some are late. Beyond that, or where none ever came, it takes "
        "its own layers in the place of others'",
    )

    def __post_init__(self):
        check(self)
        if self.lost + self.late > 1:
            raise ValueError(
                f"lost and late must be at most 1 together, got {self.lost!r} and "
                f"{self.late!r}."
            )
        if self.late and not self.max_age:
            raise ValueError(
                f"max_age must be >= 1 where messages are late ({self.late!r}), for "
                "they are a round old when they arrive, got 0; raise it, or count them "
                "as lost."
            )


class MessageBuffer(NamedTuple):
    """What was broadcast lately, and what of it each agent has."""

    round: jax.Array  # int32[]; broadcasts done
    sent: Any  # [max_age, agents, ...]; the latest first
    age: jax.Array  # int32[agents, agents]; of what the row's agent has of the column's
    under_way: jax.Array  # bool[agents, agents]; the latest arrives with the next


def empty_message_buffer(
    params, shared: dict, messages: ChannelConfig | None = None
) -> MessageBuffer:
    """The mailbox before the first broadcast.

    Args:
      params, shared, messages: see ``exchange``.

    Raises:
      ValueError: if ``shared`` and ``params`` have other layers.

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
    mailbox: MessageBuffer,
    params,
    mixing,
    *,
    shared,
    messages: ChannelConfig | None = None,
    numbers=None,
):
    """One broadcast: all send their shared layers, and mix what has arrived.

    An agent's place in its own mean is taken by what it has now. For each other it is
    the last message that arrived: this round's, or the last round's where that was
    late, or one of up to ``max_age`` rounds ago; else the weight falls to the agent's
    own layers. So rows always sum to 1; but where messages are lost the mean over
    agents does not stay what it was, for some are heard more than others.

    Args:
      key: typed PRNG key of the run; the round's is ``fold_in(key, mailbox.round)``.
      mailbox: of ``empty_message_buffer`` or the last broadcast.
      params: dict of layers, trees of arrays ``[agents, ...]``.
      mixing: ``float[agents, agents]``; ``check_mixing`` says whether it is one.
      shared: layer -> whether it is broadcast. Python bools leave other layers
        untouched; ``bool[]`` may be traced.
      messages: ``ChannelConfig``; None is that all arrive. The same at every call.
      numbers: ``int[agents]``, by which messages' fates are drawn; None is their
        places. Where parts of the agents are exchanged by themselves, theirs in the
        whole.

    Returns:
      The mailbox, and the params with shared layers mixed. With perfect messages that
      is ``mix(mixing, ...)`` of them. It may be jitted, scanned and vmapped.

    Raises:
      ValueError: if a leaf is of another number of agents than ``mixing``, or
        ``shared`` and ``params`` have other layers.

    Example:
      Agents of 2 and 4 meet halfway; ``v`` stays.

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
    fate = fates_now(key, mailbox, params, messages, numbers)
    return deliver(mailbox, params, mixing, *fate, shared=shared, messages=messages)


def exchange_every(
    period, key, mailbox, params, mixing, step, *, shared, messages=None, numbers=None
):
    """``exchange`` at the end of every ``period`` steps, and nothing else.

    Args:
      period: ``int[]`` >= 1, may be traced; 12 hours are 720 steps of a minute.
      key, mailbox, params, mixing, shared, messages, numbers: of ``exchange``.
      step: ``int[]``, of the step just done, from 0.

    Returns:
      The mailbox, and params.

    Raises:
      ValueError: for a Python period below 1; as ``exchange``.

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
    # Drawn beforehand: where periods are a sweep, both branches are computed.
    fate = fates_now(key, mailbox, params, messages, numbers)
    speak = functools.partial(deliver, shared=shared, messages=messages)
    silent = lambda mailbox, params, mixing, in_time, late: (mailbox, params)
    return jax.lax.cond(due, speak, silent, mailbox, params, mixing, *fate)


def is_due(period, step):
    """``bool[]``, whether a step is the last of ``period`` of them.

    Raises:
      TypeError: for a period on the host that is not an integer.
      ValueError: for one below 1.
    """
    if known(period) is not None:
        whole("period", period, least=1)
    return (jnp.asarray(step) + 1) % period == 0


def fates_now(key, mailbox, params, messages, numbers):
    """``sample_delivery`` of this broadcast's messages."""
    agents = _agents(params) if numbers is None else numbers
    return sample_delivery(jax.random.fold_in(key, mailbox.round), agents, messages)


def deliver(mailbox, params, mixing, in_time, late, *, shared, messages, told=None):
    """The mailbox and the params after a broadcast whose messages have these fates.

    ``told``, if it is not None, is what others get in the place of an agent's layers.
    """
    own, kept = _parted(params, shared)
    sent = own if told is None else told
    forgotten = messages.max_age + 1
    older = jnp.where(mailbox.under_way, 1, mailbox.age + 1)
    age = jnp.where(in_time, 0, jnp.minimum(older, forgotten)).astype(jnp.int32)
    have = lambda rounds: jnp.where(age == rounds, mixing, 0)
    alone = jnp.diag(jnp.sum(have(forgotten), axis=1))
    itself = jnp.diag(jnp.diag(have(0)))

    def received(own, now, before):
        if told is None:
            total = _mixed(have(0) + alone, own)
        else:
            total = _mixed(itself + alone, own) + _mixed(have(0) - itself, now)
        for back in range(messages.max_age):
            total = total + _mixed(have(back + 1), before[back])
        return total

    after = jax.tree.map(received, own, sent, mailbox.sent)
    traced = lambda name, leaf, own: jnp.where(shared[name], leaf, own)
    after = {
        name: jax.tree.map(functools.partial(traced, name), after[name], own[name])
        for name in after
    }
    recent = lambda now, before: jnp.concatenate([now[None], before])[
        : messages.max_age
    ]
    mailbox = MessageBuffer(
        round=mailbox.round + 1,
        sent=jax.tree.map(recent, sent, mailbox.sent),
        age=age,
        under_way=late,
    )
    return mailbox, {name: (kept | after)[name] for name in params}


def _mixed(mixing, leaf):
    if jnp.ndim(leaf) < 1 or len(leaf) != len(mixing):
        raise ValueError(
            f"params must have a leading axis of {len(mixing)} agents, as mixing has, "
            f"got an array of shape {jnp.shape(leaf)}."
        )
    wide = leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))
    flat = wide.reshape(len(leaf), -1)
    mixing = jnp.asarray(mixing, flat.dtype)
    broken = ~jnp.all(jnp.isfinite(flat), axis=1)  # 0 * nan would be everybody's.
    whole_ones = jnp.where(broken[:, None], 0, flat)
    product = jnp.matmul(mixing, whole_ones, precision=jax.lax.Precision.HIGHEST)
    spoilt = jnp.any((mixing != 0) & broken[None], axis=1)
    product = jnp.where(spoilt[:, None], jnp.nan, product)
    return product.reshape(leaf.shape).astype(leaf.dtype)


def _parted(params, shared):
    """Layers that may be broadcast, and those that certainly are not."""
    if set(shared) != set(params):
        raise ValueError(
            f"shared must say of each layer whether it is broadcast: it names "
            f"{sorted(shared)}, the params have {sorted(params)}."
        )
    sent = {name: params[name] for name in params if shared[name] is not False}
    return sent, {name: params[name] for name in params if name not in sent}


def _agents(params):
    return len(jax.tree.leaves(params)[0])


def sample_delivery(key, agents, messages: ChannelConfig):
    """Which of a round's messages are in time, and which come a round later.

    Args:
      key: typed PRNG key, the round's own.
      agents: how many, a Python int >= 1; or ``int[agents]``, their numbers. A fate is
        drawn by the numbers of the two: some agents of a whole have, among themselves,
        the fates that they have in it.
      messages: ``ChannelConfig``.

    Returns:
      Two ``bool[agents, agents]``, row the receiver; nobody is late to oneself.

    Example:
      >>> in_time, late = sample_delivery(jax.random.key(0), 2, ChannelConfig(lost=1.0))
      >>> in_time
      Array([[ True, False],
             [False,  True]], dtype=bool)
    """
    if isinstance(agents, int):
        agents = jnp.arange(whole("agents", agents, least=1))
    count, lost = len(agents), messages.lost
    beyond = lost + messages.late
    if not beyond:
        return jnp.ones((count, count), bool), jnp.zeros((count, count), bool)

    def draw(receiver, sender):
        own_key = jax.random.fold_in(jax.random.fold_in(key, receiver), sender)
        return jax.random.uniform(own_key)

    draws = jax.vmap(lambda number: jax.vmap(draw, (None, 0))(number, agents))(agents)
    oneself = jnp.eye(count, dtype=bool)
    late = (draws >= lost) & (draws < beyond) & ~oneself
    return (draws >= beyond) | oneself, late
