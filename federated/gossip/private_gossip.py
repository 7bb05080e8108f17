"""Private gossip: broadcasts of clipped and noised changes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.gossip import gossip
from jaxanon.federated.gossip.gossip import ChannelConfig, MessageBuffer
from jaxanon.kernels.bounds import finite
from jaxanon.kernels.clipping import clip_and_noise_per_client

NOISE = 2**31 - 1  # Separates noise keys from those of message delivery.


class NoisyMessageBuffer(NamedTuple):
    """Recent broadcasts, and the public layers of each agent."""

    mail: MessageBuffer
    public: Any  # [agents, ...]; shared layers as last broadcast


def empty_noisy_message_buffer(
    params, shared: dict, messages: ChannelConfig | None = None
) -> NoisyMessageBuffer:
    """Returns the buffer before the first broadcast; ``params`` must be public.

    They are public if all agents start from the same data-independent networks.

    Args:
      params, shared, messages: see ``exchange``.

    Raises:
      ValueError: if ``shared`` and ``params`` differ in their layers.

    Example:
      >>> empty_noisy_message_buffer({"w": jnp.ones((2, 1))}, {"w": True}).public[
      ...     "w"
      ... ].shape
      (2, 1)
    """
    mail = gossip.empty_message_buffer(params, shared, messages)
    sent = {name: params[name] for name in params if shared[name] is not False}
    # Copies, because both may be donated.
    return NoisyMessageBuffer(mail, jax.tree.map(jnp.copy, sent))


def exchange_noisily(
    key,
    buffer: NoisyMessageBuffer,
    params,
    mixing,
    *,
    shared,
    clip_norm,
    noise_multiplier,
    messages: ChannelConfig | None = None,
    numbers=None,
):
    """Runs ``exchange`` with clipped and noised messages.

    An agent sends its public layers plus the change of its shared layers since the last
    broadcast. The change is clipped to ``clip_norm`` as a whole and gets Gaussian noise
    of ``noise_multiplier`` times the clip norm. Other agents mix these messages. In its
    own mean an agent uses its exact layers, which stay hidden until the next noisy
    broadcast. Each broadcast is therefore a Gaussian mechanism on an agent's past data,
    given the earlier broadcasts. T broadcasts cost as much as
    ``SampledGaussian(noise_multiplier=..., steps=T)``, for an agent that participates
    or sends only noise. To hide which of two homes an agent is, account with half the
    multiplier.

    Args:
      key: typed PRNG key of the run.
      buffer: result of ``empty_noisy_message_buffer`` or of the last broadcast.
      params, mixing, shared, messages: see ``exchange``.
      clip_norm: clip norm > 0.
      noise_multiplier: noise multiplier >= 0.
      numbers: ``int[agents]``, seeds of noise and delivery. None is the position. For
        exchanges of a subset of agents with one key, pass their indices in the whole:
        agents with the same noise would reveal the difference of their messages.

    Returns:
      The message buffer, and the params with shared layers mixed.

    Raises:
      ValueError: under the conditions of ``exchange``, or for a clip norm or a
        multiplier out of range.

    Example:
      A change of 4 is clipped to 1; the second agent's own mean uses its exact 8.

      >>> params, shared = {"w": jnp.array([[4.0], [8.0]])}, {"w": True}
      >>> mail = empty_noisy_message_buffer({"w": jnp.zeros((2, 1))}, shared)
      >>> mail, params = exchange_noisily(
      ...     jax.random.key(0), mail, params, jnp.full((2, 2), 0.5), shared=shared,
      ...     clip_norm=1.0, noise_multiplier=0.0)
      >>> params["w"].ravel(), mail.public["w"].ravel()
      (Array([2.5, 4.5], dtype=float32), Array([1., 1.], dtype=float32))

    References:
      McMahan et al., Learning differentially private recurrent language models, ICLR
      2018, for clipping a client's change; here without a trusted server.
    """
    check_noise(clip_norm, noise_multiplier)
    messages = messages or ChannelConfig()
    fate = gossip.fates_now(key, buffer.mail, params, messages, numbers)
    noise = shared, clip_norm, noise_multiplier
    numbers = jnp.arange(len(fate[0])) if numbers is None else numbers
    public = _public_layers(key, buffer, params, numbers, *noise)
    mail, params = gossip.deliver(
        buffer.mail, params, mixing, *fate, shared=shared, messages=messages,
        public=public,
    )  # fmt: skip
    return NoisyMessageBuffer(mail, public), params


def exchange_noisily_every(period, key, buffer, params, mixing, step, **settings):
    """Calls ``exchange_noisily`` at the end of every ``period`` steps.

    Args:
      period, step: see ``exchange_every``.
      key, buffer, params, mixing, settings: see ``exchange_noisily``.

    Raises:
      ValueError: for a Python period below 1; also the conditions of
        ``exchange_noisily``.

    Example:
      >>> params, shared = {"w": jnp.array([[4.0], [8.0]])}, {"w": True}
      >>> mail = empty_noisy_message_buffer({"w": jnp.zeros((2, 1))}, shared)
      >>> _, same = exchange_noisily_every(
      ...     2, jax.random.key(0), mail, params, jnp.full((2, 2), 0.5), 0,
      ...     shared=shared, clip_norm=1.0, noise_multiplier=1.0)
      >>> same["w"].ravel()
      Array([4., 8.], dtype=float32)
    """
    speak = lambda buffer, params, mixing: exchange_noisily(
        key, buffer, params, mixing, **settings
    )
    silent = lambda buffer, params, mixing: (buffer, params)
    due = gossip.is_due(period, step)
    return jax.lax.cond(due, speak, silent, buffer, params, mixing)


def check_noise(clip_norm, noise_multiplier) -> None:
    """Raises ValueError for a clip norm or a noise multiplier out of range.

    Example:
      >>> check_noise(1.0, 0.0)
    """
    finite(zero=False, clip_norm=clip_norm)
    if noise_multiplier:
        finite(zero=False, noise_multiplier=noise_multiplier)


def _public_layers(key, buffer, params, numbers, shared, clip_norm, noise_multiplier):
    """Returns the public layers of each agent after this broadcast."""
    before = buffer.public

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
    key = jax.random.fold_in(jax.random.fold_in(key, NOISE), buffer.mail.round)

    def alone(number, row):
        own_key = jax.random.fold_in(key, number)
        rows = jax.tree.map(lambda leaf: leaf[None], row)
        noisy = clip_and_noise_per_client(own_key, rows, clip_norm, noise_multiplier)
        return jax.tree.map(lambda leaf: leaf[0], noisy)

    noisy = jax.vmap(alone)(numbers, changed)
    # Layers that are not shared are not broadcast, not even as noise.
    add = lambda name: jax.tree.map(
        lambda last, step: jnp.where(shared[name], last + step, last),
        before[name],
        noisy[name],
    )
    return {name: add(name) for name in before}
