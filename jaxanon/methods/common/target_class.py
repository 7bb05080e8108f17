"""Target private classes of anonymized windows."""

import jax.numpy as jnp

from jaxanon.kernels import portable

ANONYMIZATIONS = ("stochastic", "deterministic", "probabilistic")

AUTOMATIC = "automatic"

FLIPS = {"next": 1, "previous": -1}  # Index shift from the predicted class.


def shown_class(
    key,
    kind: str,
    predicted,
    num_classes: int,
    flip: float = 0.5,
    flip_direction: str = "next",
):
    """Returns the target private class of each window.

    - ``"stochastic"`` draws it uniformly from all classes, so it is independent of the
      wearer.
    - ``"deterministic"`` shifts the predicted class by one, which an attacker can
      invert.
    - ``"probabilistic"`` shifts the predicted class with probability ``flip`` and keeps
      it otherwise. With two classes and ``flip=0.5`` this is the uniform draw. With
      more classes it reveals that the wearer's class is the target or its neighbor.

    Args:
      key: typed PRNG key.
      kind: one of ``ANONYMIZATIONS``.
      predicted: predicted classes, ``int32[N]``.
      num_classes: number of classes of the attribute.
      flip: flip probability; 0.49 in the authors' program.
      flip_direction: key of ``FLIPS``; "previous" shifts 0 to 2, 1 to 0 and 2 to 1, as
        the authors' program does for MobiAct's weight.

    Returns:
      ``int32[N]``.

    Example:
      >>> import jax
      >>> shown_class(jax.random.key(0), "deterministic", jnp.array([0, 1, 2]), 3)
      Array([1, 2, 0], dtype=int32)

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge, 2021,
      section 5.3 (Modify).
    """
    if kind == "stochastic":
        return portable.randint(key, predicted.shape, 0, num_classes)
    other = (predicted + FLIPS[flip_direction]) % num_classes
    if kind == "deterministic":
        return other
    moves = portable.bernoulli(key, flip, predicted.shape)
    return jnp.where(moves, other, predicted)


def settled(kind: str, num_classes: int) -> str:
    """Resolves ``"automatic"`` to one of ``ANONYMIZATIONS``.

    ``"automatic"`` means ``"probabilistic"`` for two classes. For more classes it means
    ``"stochastic"``, because ``"probabilistic"`` narrows the wearer's class to two.

    Example:
      >>> settled("automatic", 2), settled("automatic", 3), settled("stochastic", 2)
      ('probabilistic', 'stochastic', 'stochastic')
    """
    if kind != AUTOMATIC:
        return kind
    return "probabilistic" if num_classes == 2 else "stochastic"


def shown_vector(key, count: int, num_classes: int):
    """Draws random class weights for a decoder that is conditioned on one-hot rows.

    Two classes get ``(r, 1 - r)`` with r uniform in [0, 1). More classes get uniform
    numbers divided by their sum. The rows are independent of the wearer and differ from
    the one-hot rows of training.

    Args:
      key: typed PRNG key.
      count: number of rows.
      num_classes: number of classes of the attribute, >= 2.

    Returns:
      ``float32[count, num_classes]``; each row sums to 1.

    Example:
      >>> import jax
      >>> rows = shown_vector(jax.random.key(0), 3, 2)
      >>> rows.shape, bool(jnp.allclose(rows.sum(axis=1), 1))
      ((3, 2), True)

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (third manipulation of
      the authors' programs, which by mistake do not normalise three weights).
    """
    if num_classes == 2:
        weight = portable.uniform(key, (count, 1))
        return jnp.concatenate([weight, 1 - weight], axis=1)
    weights = portable.uniform(key, (count, num_classes), low=1e-6)
    return weights / jnp.sum(weights, axis=1, keepdims=True)
