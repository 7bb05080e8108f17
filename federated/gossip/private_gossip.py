"""Broadcasts of which no single one says much: what changed, clipped, with noise."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.gossip import gossip
from jaxanon.federated.gossip.gossip import ChannelConfig, MessageBuffer
from jaxanon.kernels.bounds import finite
from jaxanon.kernels.clipping import clip_and_noise_per_client

NOISE = 2**31 - 1  # Keys of noise, apart from those of broadcasts' messages.


class NoisyMessageBuffer(NamedTuple):
    """What was broadcast lately, and what everybody knows of each agent by now."""

    mail: MessageBuffer
    public: Any  # [agents, ...]; shared layers as they were last broadcast


def empty_noisy_message_buffer(
    params, shared: dict, messages: ChannelConfig | None = None
) -> NoisyMessageBuffer:
    """The mailbox before the first broadcast; ``params`` are everybody's to know.

    That is so where all begin with the same networks, drawn without anybody's data.

    Args:
      params, shared, messages: see ``exchange``.

    Raises:
      ValueError: if ``shared`` and ``params`` have other layers.

    Example:
      >>> empty_noisy_message_buffer({"w": jnp.ones((2, 1))}, {"w": True}).public[
      ...     "w"
      ... ].shape
      (2, 1)
    """
    mail = gossip.empty_message_buffer(params, shared, messages)
    sent = {name: params[name] for name in params if shared[name] is not False}
    # Copies, for both may be donated.
    return NoisyMessageBuffer(mail, jax.tree.map(jnp.copy, sent))


def exchange_noisily(
    key,
    mailbox: NoisyMessageBuffer,
    params,
    mixing,
    *,
    shared,
    clip_norm,
    noise_multiplier,
    messages: ChannelConfig | None = None,
    numbers=None,
):
    """``exchange``, but all that leaves an agent is clipped and noisy.

    An agent sends what everybody knows of it, which is what it sent last, moved by
    what its shared layers have changed since: clipped to ``clip_norm`` altogether,
    with Gaussian noise of ``noise_multiplier`` times that on every number. Others mix
    that; in its own mean an agent is as it is, which nobody sees before the next noisy
    broadcast. So each broadcast is a Gaussian mechanism of an agent's whole past data,
    those before it known: of T broadcasts the cost is that of
    ``SampledGaussian(noise_multiplier=..., steps=T)``, for an agent that learns or
    sends nothing but noise. To hide which of two homes it is, count on half the
    multiplier.

    Args:
      key: typed PRNG key of the run.
      mailbox: of ``empty_noisy_message_buffer`` or the last broadcast.
      params, mixing, shared, messages: of ``exchange``.
      clip_norm: > 0.
      noise_multiplier: >= 0.
      numbers: ``int[agents]``, whose noise each draws, and by which messages' fates
        are; None is their places. Where parts of the agents are exchanged by themselves
        with one key, theirs in the whole: two that drew the same noise would tell the
        difference of what they sent.

    Returns:
      The mailbox, and the params with shared layers mixed.

    Raises:
      ValueError: same conditions as ``exchange``; for a clip norm or a multiplier out of range.

    Example:
      Of a change of 4, one leaves at most; the second agent's own mean has all of 8.

      >>> params, shared = {"w": jnp.array([[4.0], [8.0]])}, {"w": True}
      >>> mail = empty_noisy_message_buffer({"w": jnp.zeros((2, 1))}, shared)
      >>> mail, params = exchange_noisily(
      ...     jax.random.key(0), mail, params, jnp.full((2, 2), 0.5), shared=shared,
      ...     clip_norm=1.0, noise_multiplier=0.0)
      >>> params["w"].ravel(), mail.public["w"].ravel()
      (Array([2.5, 4.5], dtype=float32), Array([1., 1.], dtype=float32))

    References:
      McMahan et al., Learning differentially private recurrent language models, ICLR
      2018, for clipping what a client changed; here without a server to trust.
    """
    check_noise(clip_norm, noise_multiplier)
    messages = messages or ChannelConfig()
    fate = gossip.fates_now(key, mailbox.mail, params, messages, numbers)
    noise = shared, clip_norm, noise_multiplier
    numbers = jnp.arange(len(fate[0])) if numbers is None else numbers
    public = _told(key, mailbox, params, numbers, *noise)
    mail, params = gossip.deliver(
        mailbox.mail, params, mixing, *fate, shared=shared, messages=messages,
        told=public,
    )  # fmt: skip
    return NoisyMessageBuffer(mail, public), params


def exchange_noisily_every(period, key, mailbox, params, mixing, step, **settings):
    """``exchange_noisily`` at the end of every ``period`` steps, and nothing else.

    Args:
      period, step: of ``exchange_every``.
      key, mailbox, params, mixing: of ``exchange_noisily``.
      **settings: likewise.

    Raises:
      ValueError: for a Python period below 1; as ``exchange_noisily``.

    Example:
      >>> params, shared = {"w": jnp.array([[4.0], [8.0]])}, {"w": True}
      >>> mail = empty_noisy_message_buffer({"w": jnp.zeros((2, 1))}, shared)
      >>> _, same = exchange_noisily_every(
      ...     2, jax.random.key(0), mail, params, jnp.full((2, 2), 0.5), 0,
      ...     shared=shared, clip_norm=1.0, noise_multiplier=1.0)
      >>> same["w"].ravel()
      Array([4., 8.], dtype=float32)
    """
    speak = lambda mailbox, params, mixing: exchange_noisily(
        key, mailbox, params, mixing, **settings
    )
    silent = lambda mailbox, params, mixing: (mailbox, params)
    due = gossip.is_due(period, step)
    return jax.lax.cond(due, speak, silent, mailbox, params, mixing)


def check_noise(clip_norm, noise_multiplier) -> None:
    """Raises ValueError for a clip norm or a noise multiplier out of range.

    Example:
      >>> check_noise(1.0, 0.0)
    """
    finite(zero=False, clip_norm=clip_norm)
    if noise_multiplier:
        finite(zero=False, noise_multiplier=noise_multiplier)


def _told(key, mailbox, params, numbers, shared, clip_norm, noise_multiplier):
    """What everybody knows of each agent after this broadcast."""
    before = mailbox.public

    def change(name, now, last):
        return jnp.where(shared[name], now - last, 0)

    changed = {
        name: jax.tree.map(
            lambda now, last, name=name: change(name, now, last),
            params[name],
            before[name],
        )
        for name in before
    }
    key = jax.random.fold_in(jax.random.fold_in(key, NOISE), mailbox.mail.round)

    def alone(number, row):
        own_key = jax.random.fold_in(key, number)
        rows = jax.tree.map(lambda leaf: leaf[None], row)
        noisy = clip_and_noise_per_client(own_key, rows, clip_norm, noise_multiplier)
        return jax.tree.map(lambda leaf: leaf[0], noisy)

    noisy = jax.vmap(alone)(numbers, changed)
    # Noise on layers that stay at home is not broadcast either.
    add = lambda name: jax.tree.map(
        lambda last, step: jnp.where(shared[name], last + step, last),
        before[name],
        noisy[name],
    )
    return {name: add(name) for name in before}
