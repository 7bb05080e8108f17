"""Numbers that stand for something turned into vectors that a network can read."""

import jax
import jax.numpy as jnp

from jaxanon.models.predictors import Predictor

LAYER = "embed_1"


def embedded(network: Predictor, tokens: int, features: int) -> Predictor:
    """A network of vectors made into one of tokens, by a table with a row for each.

    The table is its first layer. Token 0 stands for nothing: its vector is zero and
    learns nothing.

    Args:
      network: for windows ``float[batch, time, features]``.
      tokens: of the table, 0 included.
      features: of a vector.

    Returns:
      ``Predictor`` of windows ``float[batch, time, 1]`` of whole numbers below
      ``tokens``.

    Example:
      >>> reads = lambda layers, x: x[:, -1] @ layers["dense_1"]
      >>> init = lambda key: {"dense_1": jnp.ones((4, 2))}
      >>> net = embedded(Predictor(init, reads, ("dense_1",)), tokens=9, features=4)
      >>> layers = net.init(jax.random.key(0))
      >>> net.layers, layers["embed_1"]["embedding"].shape
      (('embed_1', 'dense_1'), (9, 4))
      >>> net.apply(layers, jnp.array([[[3.0], [0.0]]]))  # The last stands for nothing.
      Array([[0., 0.]], dtype=float32)
    """

    def init(key):
        own_key, network_key = jax.random.split(key)
        table = jax.random.normal(own_key, (tokens, features))
        return {LAYER: {"embedding": table}, **network.init(network_key)}

    def apply(layers, windows):
        index = jnp.round(windows[..., 0]).astype(jnp.int32)
        x = layers[LAYER]["embedding"][index] * (index > 0)[..., None]
        return network.apply({name: layers[name] for name in network.layers}, x)

    return Predictor(init, apply, (LAYER, *network.layers))
