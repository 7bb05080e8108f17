"""First and second moments of windows and classes, gathered batch by batch."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Moments(NamedTuple):
    """Averages over batches of one size."""

    batches: jax.Array  # float32[]
    mean: jax.Array  # float32[inputs]
    square: jax.Array  # float32[inputs, inputs]; of products of two inputs
    shares: dict[str, jax.Array]  # float32[classes] of each attribute
    sums: dict[str, jax.Array]  # float32[classes, inputs]; inputs where it is that one


def empty(inputs: int, classes: Mapping[str, int]) -> Moments:
    """Moments of nothing.

    Args:
      inputs: numbers of a window.
      classes: how many each attribute has.

    Example:
      >>> empty(30, {"gender": 2}).sums["gender"].shape
      (2, 30)
    """
    return Moments(
        jnp.zeros(()),
        jnp.zeros(inputs),
        jnp.zeros((inputs, inputs)),
        {name: jnp.zeros(count) for name, count in classes.items()},
        {name: jnp.zeros((count, inputs)) for name, count in classes.items()},
    )


def add(moments: Moments, x, labels: Mapping[str, jax.Array]) -> Moments:
    """Moments with one more batch.

    Args:
      moments: so far.
      x: ``float32[batch, inputs]``; near 0, or squares lose digits.
      labels: ``int[batch]`` of each attribute.
    """
    hot = {
        name: jax.nn.one_hot(labels[name], len(share))
        for name, share in moments.shares.items()
    }
    batch = Moments(
        moments.batches,
        jnp.mean(x, axis=0),
        x.T @ x / len(x),
        {name: jnp.mean(one, axis=0) for name, one in hot.items()},
        {name: one.T @ x / len(x) for name, one in hot.items()},
    )
    batches = moments.batches + 1
    # Averages, not sums: a batch is not lost in what there is already.
    move = lambda old, new: old + (new - old) / batches
    return jax.tree.map(move, moments, batch)._replace(batches=batches)


def covariance(moments: Moments) -> jax.Array:
    """Of the inputs, ``float32[inputs, inputs]``.

    Example:
      >>> x = jnp.array([[1.0, -1.0], [-1.0, 1.0]])
      >>> covariance(add(empty(2, {}), x, {}))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    return moments.square - moments.mean[:, None] * moments.mean[None]


def ridge(moments: Moments, name: str, penalty) -> jax.Array:
    """How linear classifiers of one class against the rest weigh the inputs.

    Ridge regression of ±1 on inputs scaled to a variance of 1, with a bias: the
    minimiser of the mean of ``Σ (w·x + b - y)²`` plus ``penalty ‖w‖²``.

    Args:
      moments: of the windows.
      name: of the attribute.
      penalty: >= 0; above 0 where inputs depend on one another.

    Returns:
      ``float32[classes, inputs]``, weights of the inputs as they are.

    Example:
      The second input tells the class, the first does not.

      >>> x = jnp.array([[1.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]])
      >>> told = add(empty(2, {"side": 2}), x, {"side": jnp.array([1, 1, 0, 0])})
      >>> abs(ridge(told, "side", 0.0).round(3))
      Array([[0. , 0.5],
             [0. , 0.5]], dtype=float32)
    """
    spread = covariance(moments)
    size = jnp.sqrt(jnp.maximum(jnp.diagonal(spread), 1e-12))
    scaled = spread / (size[:, None] * size[None])
    # The covariance of y = 2 h - 1 with the inputs is twice that of h.
    share = moments.shares[name]
    told = 2 * (moments.sums[name] - share[:, None] * moments.mean[None]) / size[None]
    solid = scaled + penalty * jnp.eye(len(size))
    return jnp.linalg.solve(solid, told.T).T / size[None]
