"""Classifiers of windows: dense, convolutional and recurrent networks."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.conv2d import PlaneConv, max_pool, to_planes
from jaxanon.models.layers import LSTM
from jaxanon.models.unet import Convolution


def drop_units(key, x, rate):
    """Applies dropout; ``rate`` (``float[]``, rounded to 1/256) may be traced."""
    words = jax.random.bits(key, (x.size // 4 + 1,), jnp.uint32)
    octets = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[: x.size]
    kept = octets.reshape(x.shape) >= jnp.round(256 * rate)
    return jnp.where(kept, x / (1 - rate), 0)


class Classifier(nn.Module):
    """Dense classifier of standardised windows.

    Dense layers of ``hidden`` units with ReLU, with dropout after the layers marked in
    ``drops``. The defaults are the evaluation network published for MotionSense, which
    has 363,732 parameters for 4 classes. Weights start Glorot-uniform and biases at
    zero, as in Keras.

    Example:
      >>> net = Classifier(num_classes=4)
      >>> params = net.init(jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(params))
      363732

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (official networks).
    """

    num_classes: int
    hidden: Sequence[int] = (512, 256, 256, 128, 16)
    drops: Sequence[bool] = (True, True, False, True, True)

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Returns logits.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel. They are
            flattened channel after channel, ``[gyro 128 | acc 128]``.
          key: typed key for dropout; ``None`` disables it.
          dropout: fraction of units dropped, ``float[]`` in [0, 1), rounded to 1/256.
          real: ignored; rows are independent.

        Returns:
          ``float[batch, num_classes]``.
        """
        del real
        x = jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)
        initial = nn.initializers.glorot_uniform()
        for layer, (units, drop) in enumerate(
            zip(self.hidden, self.drops, strict=True)
        ):
            x = nn.relu(nn.Dense(units, kernel_init=initial)(x))
            if drop and key is not None:
                x = drop_units(jax.random.fold_in(key, layer), x, dropout)
        return nn.Dense(self.num_classes, kernel_init=initial)(x)


class WindowClassifier(nn.Module):
    """Convolutional classifier of windows that also returns features.

    Each convolution is followed by ReLU and average pooling over two samples. Two dense
    layers follow; the output of the first are the features.

    Example:
      >>> import jax
      >>> net = WindowClassifier(3, filters=(4, 4, 4, 4), features=8)
      >>> shapes = jax.eval_shape(
      ...     lambda key, x: net.init_with_output(key, x)[0],
      ...     jax.random.key(0), jnp.zeros((2, 64, 5)))
      >>> [output.shape for output in shapes]
      [(2, 3), (2, 8)]

    References:
      PrivateHub, section 4.3.3: four convolutions, ReLU, two fully connected layers.
      The widths are unpublished.
    """

    num_classes: int
    filters: Sequence[int] = (32, 32, 32, 32)
    features: int = 64

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0):
        """Returns logits and features.

        Args:
          windows: ``float[batch, time, channels]``.
          key: typed key for dropout of features; None disables it.
          dropout: fraction of features dropped, in [0, 1).

        Returns:
          ``float[batch, num_classes]`` and ``float[batch, features]``, the latter
          before the ReLU, so that features may have any sign.
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
    """Scales features to length 1 in float32; zero rows stay zero, with zero gradient.

    Example:
      >>> unit(jnp.array([[3.0, 4.0], [0.0, 0.0]]))
      Array([[0.6, 0.8],
             [0. , 0. ]], dtype=float32)
    """
    square = jnp.sum(jnp.float32(features) ** 2, axis=-1, keepdims=True)
    nonzero = square > 0
    return jnp.where(nonzero, features / jnp.sqrt(jnp.where(nonzero, square, 1)), 0)


class ConvClassifier(nn.Module):
    """Convolutional classifier of standardised windows.

    The evaluation network "DC" of the ObscureNet family. Each entry of ``filters`` is a
    convolution over 2 neighbouring channels and 5 samples, followed by ReLU, batch
    normalisation, max pooling over two samples and dropout. Dense layers of ``hidden``
    units with ReLU, batch normalisation and dropout follow.

    The defaults are the network for MobiAct: 458,932 numbers for 4 classes and windows
    of 128 samples by 6 channels. The network for MotionSense has
    ``filters=(128, 64, 32), hidden=(128, 32, 16)``: 241,445 numbers for 5 classes and 2
    channels. These counts include the moving averages of batch statistics.

    Example:
      >>> net = ConvClassifier(num_classes=4)
      >>> windows = jnp.zeros((1, 128, 6))
      >>> variables = jax.eval_shape(net.init, jax.random.key(0), windows)
      >>> sum(leaf.size for leaf in jax.tree.leaves(variables))
      458932

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (official networks);
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.2.1.
    """

    num_classes: int
    filters: Sequence[int] = (64, 64, 32)
    hidden: Sequence[int] = (128, 16)

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Returns logits.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel.
          key: typed key for dropout in training; ``None`` disables dropout and
            normalises by moving averages instead of batch statistics.
          dropout: fraction of units dropped after a dense layer, ``float[]`` in [0, 1),
            rounded to 1/256; half of it after a convolution. The official network has
            0.5 and 0.25.
          real: ``bool[batch]``, rows included in batch statistics; None is all.

        Returns:
          ``float[batch, num_classes]``.
        """
        initial = nn.initializers.glorot_uniform()
        drop = lambda x, layer, rate: (
            x if key is None else drop_units(jax.random.fold_in(key, layer), x, rate)
        )
        settle = lambda x: _batch_norm(nn.relu(x), key is not None, real)
        x = to_planes(windows)
        for layer, filters in enumerate(self.filters):
            x = settle(PlaneConv(filters)(x))
            x = drop(max_pool(x, 2, rest=True), layer, dropout / 2)
        x = x.reshape(x.shape[0], -1)
        for layer, units in enumerate(self.hidden, len(self.filters)):
            x = settle(nn.Dense(units, kernel_init=initial)(x))
            x = drop(x, layer, dropout)
        return nn.Dense(self.num_classes, kernel_init=initial)(x)


def _batch_norm(x, train, real):
    """Batch normalisation over real rows; over all rows of a batch without any."""
    mask = None
    if train and real is not None:
        mask = (real | ~jnp.any(real)).reshape(-1, *[1] * (x.ndim - 1))
    # With the published 0.99, the initial averages dominate for hundreds of steps.
    layer = nn.BatchNorm(momentum=0.9, epsilon=1e-3)
    return layer(x, use_running_average=not train, mask=mask)


class RecurrentClassifier(nn.Module):
    """Recurrent classifier of standardised windows.

    An LSTM layer takes ``frame`` samples per step. Its last state and the mean of its
    states feed a dense layer with ReLU and dropout, then the logits.

    Example:
      >>> net = RecurrentClassifier(num_classes=2)
      >>> params = net.init(jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> net.apply(params, jnp.zeros((3, 128, 2))).shape
      (3, 2)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 5.1, attacks with such a network of
      unpublished sizes; the defaults are ours.
    """

    num_classes: int
    features: int = 64
    hidden: int = 64
    frame: int = 4

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Returns logits.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel. The last
            frame is padded with zeros, the mean of the data.
          key: typed key for dropout; ``None`` disables it.
          dropout: fraction of units dropped, ``float[]`` in [0, 1), rounded to 1/256.
          real: ignored; rows are independent.

        Returns:
          ``float[batch, num_classes]``.
        """
        del real
        spare = -windows.shape[1] % self.frame
        x = jnp.pad(windows, ((0, 0), (0, spare), (0, 0)))
        x = x.reshape(x.shape[0], x.shape[1] // self.frame, -1)
        states = LSTM(self.features)(x)
        x = jnp.concatenate([states[:, -1], states.mean(1)], axis=-1)
        initial = nn.initializers.glorot_uniform()
        x = nn.relu(nn.Dense(self.hidden, kernel_init=initial)(x))
        if key is not None:
            x = drop_units(key, x, dropout)
        return nn.Dense(self.num_classes, kernel_init=initial)(x)
