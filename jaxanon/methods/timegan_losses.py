"""TimeGAN's losses, as its authors weigh them."""

import jax
import jax.numpy as jnp

RECOVERY, SUPERVISED_IN_EMBEDDER = 10.0, 0.1
SUPERVISED, MOMENTS = 100.0, 100.0
ENOUGH = 0.15  # A critic whose loss is not above this rests.
LEAST = 1e-6  # Added to variances, whose root has no slope at 0.


def recovery(x, rebuilt):
    """Ten times the root of the mean squared error.

    Example:
      >>> recovery(jnp.zeros((1, 2, 1)), jnp.full((1, 2, 1), 0.5))
      Array(5., dtype=float32)
    """
    return RECOVERY * root(jnp.mean((x - rebuilt) ** 2))


def supervised(latent, foreseen):
    """Mean squared error of each step as foreseen at the one before.

    Args:
      latent: ``float[batch, time, d]``.
      foreseen: the same shape; what step ``t`` says of step ``t + 1``.

    Example:
      >>> told = jnp.array([[[1.0], [2.0], [3.0]]])
      >>> supervised(told, told + 1), supervised(told, told)
      (Array(0., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.mean((latent[:, 1:] - foreseen[:, :-1]) ** 2)


def moments(x, made):
    """How far means and deviations over a batch lie apart, over steps and channels.

    Example:
      >>> x = jnp.array([[[0.0]], [[2.0]]])
      >>> moments(x, x), moments(x, x + 3)
      (Array(0., dtype=float32), Array(3., dtype=float32))
    """
    spread = lambda x: jnp.sqrt(jnp.var(x, axis=0) + LEAST)
    means = jnp.mean(jnp.abs(x.mean(axis=0) - made.mean(axis=0)))
    return means + jnp.mean(jnp.abs(spread(x) - spread(made)))


def real(logits):
    """Cross-entropy of saying that all are real.

    Example:
      >>> real(jnp.zeros(2))
      Array(0.6931472, dtype=float32)
    """
    return jnp.mean(jax.nn.softplus(-logits))


def made_up(logits):
    """Cross-entropy of saying that none is.

    Example:
      >>> bool(made_up(jnp.array([-9.0])) < 1e-3)
      True
    """
    return jnp.mean(jax.nn.softplus(logits))


def root(square):
    """The square root; at 0 its slope is 0, not infinite.

    Example:
      >>> value, slope = jax.value_and_grad(root)(0.0)
      >>> float(value), float(slope)
      (0.0, 0.0)
    """
    some = square > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)
