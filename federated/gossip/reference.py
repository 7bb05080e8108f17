"""Reference implementation of gossip with explicit messages in plain loops."""

import jax
import numpy as np

from jaxanon.federated.gossip.gossip import sample_delivery


def gossip(key, params, mixing, num_rounds, *, shared, messages, train_fn):
    """Runs rounds of training and broadcasts, agent by agent and message by message.

    Args:
      key: typed PRNG key of the run, as for ``exchange``.
      params: list of every agent's dict of layers, NumPy arrays.
      mixing: ``float[agents, agents]``.
      num_rounds: number of broadcasts.
      shared: dict from layer to bool.
      messages: ``ChannelConfig``.
      train_fn: ``(agent, params) -> params``, called before each broadcast.

    Returns:
      The list of params after the last broadcast.
    """
    agents = range(len(params))
    boxes = [{} for _ in agents]  # receiver -> sender -> (round, layers)
    delayed = []  # (receiver, sender, round, layers)
    for t in range(num_rounds):
        params = [train_fn(n, params[n]) for n in agents]
        in_time, late = sample_delivery(
            jax.random.fold_in(key, t), len(params), messages
        )
        for receiver, sender, when, layers in delayed:
            boxes[receiver][sender] = when, layers
        delayed = []
        for receiver in agents:
            for sender in agents:
                if in_time[receiver, sender]:
                    boxes[receiver][sender] = t, params[sender]
                if late[receiver, sender]:
                    delayed.append((receiver, sender, t, params[sender]))
        params = [
            {
                name: _mean(n, name, params[n], boxes[n], mixing[n], t, messages)
                if shared[name]
                else params[n][name]
                for name in params[n]
            }
            for n in agents
        ]
    return params


def _mean(agent, name, own, box, weights, now, messages):
    """Computes one agent's mean of one layer."""
    parts = []
    for sender, weight in enumerate(weights):
        when, layers = box.get(sender, (-1, own))
        known = sender != agent and when >= max(0, now - messages.max_age)
        layer = (layers if known else own)[name]
        parts.append(jax.tree.map(lambda leaf, w=weight: w * np.asarray(leaf), layer))
    return jax.tree.map(lambda *leaves: sum(leaves), *parts)
