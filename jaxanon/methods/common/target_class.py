"""Which private class an anonymized window shows."""

import jax.numpy as jnp

from jaxanon.kernels import portable

ANONYMIZATIONS = ("stochastic", "deterministic", "probabilistic")

AUTOMATIC = "automatic"

FLIPS = {"next": 1, "previous": -1}  # Which class is shown instead, by its number.


def shown_class(
    key,
    kind: str,
    predicted,
    num_classes: int,
    flip: float = 0.5,
    flip_direction: str = "next",
):
    """The private class that each window is made to show.

    ``"stochastic"`` draws it uniformly from all classes, the wearer's among them, so
    that it says nothing of the wearer. ``"deterministic"`` shows the class next to the
    predicted one, which whoever knows this undoes. ``"probabilistic"`` does so with
    probability ``flip_probability`` and leaves the others as they are: with two classes
    and ``flip_probability=0.5`` it is the uniform draw; with more it says that the
    wearer's class is the one shown, or one next to it.

    Args:
      key: typed PRNG key.
      kind: one of ``ANONYMIZATIONS``.
      predicted: ``int32[N]``.
      num_classes: of the attribute.
      flip: probability; the published program's is 0.49.
      flip_direction: of ``FLIPS``; "previous" shows the class before, not after,
        as the published program does with MobiAct's weight (0 to 2, 1 to 0, 2 to 1).

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
    """The one of ``ANONYMIZATIONS`` that ``kind`` stands for.

    ``"automatic"`` is ``"probabilistic"`` with two classes. With more that would say
    that the wearer's class is one of two, so it is ``"stochastic"``.

    Example:
      >>> settled("automatic", 2), settled("automatic", 3), settled("stochastic", 2)
      ('probabilistic', 'stochastic', 'stochastic')
    """
    if kind != AUTOMATIC:
        return kind
    return "probabilistic" if num_classes == 2 else "stochastic"


def shown_vector(key, count: int, num_classes: int):
    """Random weights of all classes, for a decoder that is told one as a one-hot row.

    Two classes have ``(r, 1 - r)`` with r uniform in [0, 1); more have uniform numbers
    over their sum. A row says nothing of the wearer, and is no class that a decoder has
    seen in training.

    Args:
      key: typed PRNG key.
      count: rows.
      num_classes: of the attribute, >= 2.

    Returns:
      ``float32[count, num_classes]``, each row of sum 1.

    Example:
      >>> import jax
      >>> rows = shown_vector(jax.random.key(0), 3, 2)
      >>> rows.shape, bool(jnp.allclose(rows.sum(axis=1), 1))
      ((3, 2), True)

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the released programs'
      third manipulation, whose three weights are left unnormalised by a slip).
    """
    if num_classes == 2:
        share = portable.uniform(key, (count, 1))
        return jnp.concatenate([share, 1 - share], axis=1)
    weights = portable.uniform(key, (count, num_classes), low=1e-6)
    return weights / jnp.sum(weights, axis=1, keepdims=True)
