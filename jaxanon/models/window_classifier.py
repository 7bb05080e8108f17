"""A classifier of windows whose features others compare: convolutions, two layers."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.classifier import drop_units
from jaxanon.models.unet_blocks import Convolution


class WindowClassifier(nn.Module):
    """Four convolutions with ReLU, each of which a mean of two samples follows.

    Then two dense layers; what the first of them says are the features.

    Example:
      >>> import jax
      >>> net = WindowClassifier(3, filters=(4, 4, 4, 4), features=8)
      >>> shapes = jax.eval_shape(
      ...     lambda key, x: net.init_with_output(key, x)[0],
      ...     jax.random.key(0), jnp.zeros((2, 64, 5)))
      >>> [found.shape for found in shapes]
      [(2, 3), (2, 8)]

    References:
      PrivateHub, section 4.3.3: four convolutions, ReLU, two fully connected layers;
      widths are not published.
    """

    num_classes: int
    filters: Sequence[int] = (32, 32, 32, 32)
    features: int = 64

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0):
        """Logits and features.

        Args:
          windows: ``float[batch, time, channels]``.
          key: typed key for dropout of features; None drops nothing.
          dropout: share of them that is dropped, in [0, 1).

        Returns:
          ``float[batch, num_classes]`` and ``float[batch, features]``, the latter
          before the ReLU, so that they may have any direction.
        """
        x = windows
        for number, filters in enumerate(self.filters):
            x = nn.relu(Convolution(filters, name=f"conv_{number}")(x))
            if x.shape[1] > 1:
                whole = x.shape[1] // 2 * 2
                x = x[:, :whole].reshape(len(x), -1, 2, filters).mean(axis=2)
        features = nn.Dense(self.features, name="dense_1")(x.reshape(len(x), -1))
        x = nn.relu(features)
        if key is not None:
            x = drop_units(key, x, dropout)
        return nn.Dense(self.num_classes, name="dense_2")(x), features


def unit(features):
    """Features scaled to length 1, float32; zeros stay, with a gradient of 0.

    Example:
      >>> unit(jnp.array([[3.0, 4.0], [0.0, 0.0]]))
      Array([[0.6, 0.8],
             [0. , 0. ]], dtype=float32)
    """
    square = jnp.sum(jnp.float32(features) ** 2, axis=-1, keepdims=True)
    some = square > 0
    return jnp.where(some, features / jnp.sqrt(jnp.where(some, square, 1)), 0)
