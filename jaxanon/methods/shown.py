"""Which private class an anonymized window shows."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.setting_checks import finite

ANONYMIZATIONS = ("stochastic", "deterministic", "probabilistic")


def shown_class(key, kind: str, predicted, num_classes: int, flip: float = 0.5):
    """The private class that each window is made to show.

    ``"stochastic"`` draws it uniformly from all classes, the wearer's among them, so
    that it says nothing of the wearer. ``"deterministic"`` shows the class after the
    predicted one, which whoever knows this undoes. ``"probabilistic"`` does so with
    probability ``flip`` and leaves the others as they are: with two classes and
    ``flip=0.5`` it is the uniform draw; with more it says that the wearer's class is
    the one shown, or the one before.

    Args:
      key: typed PRNG key.
      kind: one of ``ANONYMIZATIONS``.
      predicted: ``int32[N]``.
      num_classes: of the attribute.
      flip: probability; the published program's is 0.49.

    Returns:
      ``int32[N]``.

    Example:
      >>> shown_class(jax.random.key(0), "deterministic", jnp.array([0, 1, 2]), 3)
      Array([1, 2, 0], dtype=int32)

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge, 2021,
      section 5.3 (Modify).
    """
    if kind == "stochastic":
        return jax.random.randint(key, predicted.shape, 0, num_classes)
    after = (predicted + 1) % num_classes
    if kind == "deterministic":
        return after
    moves = jax.random.bernoulli(key, flip, predicted.shape)
    return jnp.where(moves, after, predicted)


def check_flip(flip: float) -> None:
    """ValueError unless ``flip`` is a probability."""
    finite(zero=True, flip=flip)
    if flip > 1:
        raise ValueError(f"flip must be a probability, got {flip!r}.")
