"""Q-networks: what an agent sees, to the worth of everything that it can do."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.predictors import Predictor

HIDDEN = (100,) * 8


class QNetwork(nn.Module):
    """Dense layers with ReLU, then a number for every action.

    Hidden layers start He-normal: through eight of them Flax's default would shrink
    what comes in to a sixteenth.

    References:
      Chapter 2, section 2.2.4, for 8 layers of 100; He et al., Delving deep into
      rectifiers, ICCV 2015.
    """

    num_actions: int
    hidden: Sequence[int] = HIDDEN

    @nn.compact
    def __call__(self, observed):
        """``float[batch, observed] -> float[batch, actions]``."""
        x = observed
        for number, units in enumerate(self.hidden, 1):
            initial = nn.initializers.he_normal()
            x = nn.relu(nn.Dense(units, kernel_init=initial, name=f"dense_{number}")(x))
        return nn.Dense(self.num_actions, name=f"dense_{len(self.hidden) + 1}")(x)


def q_network(
    num_observed: int, num_actions: int, hidden: Sequence[int] = HIDDEN
) -> Predictor:
    """A Q-network whose layers are the entries of a dict.

    Args:
      num_observed: numbers of an observation.
      num_actions: what can be done.
      hidden: widths.

    Returns:
      ``Predictor``; layers are ``dense_1``, ..., the last of which gives the worths.

    Example:
      >>> net = q_network(2, 3)
      >>> layers = net.init(jax.random.key(0))
      >>> len(net.layers), sum(leaf.size for leaf in jax.tree.leaves(layers))
      (9, 71303)
    """
    module = QNetwork(num_actions, tuple(hidden))

    @jax.jit  # Operation by operation, networks take seconds to set up.
    def init(key):
        return module.init(key, jnp.zeros((1, num_observed)))["params"]

    apply = lambda layers, observed: module.apply({"params": layers}, observed)
    names = tuple(f"dense_{number}" for number in range(1, len(hidden) + 2))
    return Predictor(init, apply, names)
