"""Networks that judge and attack windows: perceptron, convolutional, recurrent."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.conv2d import PlaneConv, max_pool, to_planes
from jaxanon.models.layers import LSTM
from jaxanon.models.unet import Convolution


def drop_units(key, x, rate):
    """Dropout whose ``rate`` (float[], a multiple of 1/256) may be traced."""
    words = jax.random.bits(key, (x.size // 4 + 1,), jnp.uint32)
    octets = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[: x.size]
    kept = octets.reshape(x.shape) >= jnp.round(256 * rate)
    return jnp.where(kept, x / (1 - rate), 0)


class Classifier(nn.Module):
    """Standardised windows to the logits of one attribute.

    Dense layers of ``hidden`` units with ReLU, dropout after those marked in
    ``drops``, and a last layer of ``num_classes`` logits. The defaults are the
    evaluation network published for MotionSense, where it counts 363,732 parameters
    with 4 classes; weights start Glorot-uniform, biases at zero, as in Keras.

    Example:
      >>> net = Classifier(num_classes=4)
      >>> params = net.init(jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(params))
      363732

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (released networks).
    """

    num_classes: int
    hidden: Sequence[int] = (512, 256, 256, 128, 16)
    drops: Sequence[bool] = (True, True, False, True, True)

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Logits, not normalised.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel; a row
            is laid out channel after channel, ``[gyro 128 | acc 128]``.
          key: typed key for dropout; ``None`` drops nothing.
          dropout: share of units dropped, ``float[]`` in [0, 1), to 1/256.
          real: not used; rows do not meet.

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


class ConvClassifier(nn.Module):
    """Standardised windows to the logits of one attribute, by convolutions over time.

    The evaluation network "DC" of the ObscureNet family. For each of ``filters`` a
    convolution over 2 neighbouring channels and 5 samples, ReLU, batch normalisation,
    the larger of every two samples, dropout; then dense layers of ``hidden`` units with
    ReLU, batch normalisation and dropout, and the logits. The defaults are those of
    MobiAct, 458,932 numbers with 4 classes for windows of 128 samples of 6 channels; of
    MotionSense's, ``filters=(128, 64, 32), hidden=(128, 32, 16)``, 241,445 with 5
    classes of 2 channels. Moving averages of the batch statistics count among them.

    Example:
      >>> net = ConvClassifier(num_classes=4)
      >>> windows = jnp.zeros((1, 128, 6))
      >>> variables = jax.eval_shape(net.init, jax.random.key(0), windows)
      >>> sum(leaf.size for leaf in jax.tree.leaves(variables))
      458932

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (released networks);
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.2.1.
    """

    num_classes: int
    filters: Sequence[int] = (64, 64, 32)
    hidden: Sequence[int] = (128, 16)

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Logits, not normalised.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel.
          key: typed key for dropout, in training; ``None`` drops nothing and normalises
            by the moving averages in place of the batch.
          dropout: share of units dropped after a dense layer, ``float[]`` in [0, 1), to
            1/256; after a convolution half of it. Published are 0.5 and 0.25.
          real: ``bool[batch]``, rows whose statistics count in training; None is all.

        Returns:
          ``float[batch, num_classes]``.
        """
        initial = nn.initializers.glorot_uniform()
        drop = lambda x, layer, rate: (
            x if key is None else drop_units(jax.random.fold_in(key, layer), x, rate)
        )
        settle = lambda x: _normalised(nn.relu(x), key is not None, real)
        x = to_planes(windows)
        for layer, filters in enumerate(self.filters):
            x = settle(PlaneConv(filters)(x))
            x = drop(max_pool(x, 2, rest=True), layer, dropout / 2)
        x = x.reshape(x.shape[0], -1)
        for layer, units in enumerate(self.hidden, len(self.filters)):
            x = settle(nn.Dense(units, kernel_init=initial)(x))
            x = drop(x, layer, dropout)
        return nn.Dense(self.num_classes, kernel_init=initial)(x)


def _normalised(x, train, real):
    """``x`` by mean and deviation of the real rows, or by their moving averages.

    A batch without a real row, which no loss sees, is normalised by all that it has.
    """
    mask = None
    if train and real is not None:
        mask = (real | ~jnp.any(real)).reshape(-1, *[1] * (x.ndim - 1))
    # By 0.99, as published, the averages are those of the start for hundreds of steps.
    layer = nn.BatchNorm(momentum=0.9, epsilon=1e-3)
    return layer(x, use_running_average=not train, mask=mask)


class RecurrentClassifier(nn.Module):
    """Standardised windows to the logits of one attribute, read from first to last.

    ``frame`` samples at a time enter one layer of long short-term memory; its last
    state and the mean of its states go through a dense layer with ReLU and dropout to
    the logits.

    Example:
      >>> net = RecurrentClassifier(num_classes=2)
      >>> params = net.init(jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> net.apply(params, jnp.zeros((3, 128, 2))).shape
      (3, 2)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 5.1, has such a network among its
      attackers, of sizes that it does not tell; these are our own.
    """

    num_classes: int
    features: int = 64
    hidden: int = 64
    frame: int = 4

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Logits, not normalised.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel; the last
            frame is filled up with zeros, the mean of the data.
          key: typed key for dropout; ``None`` drops nothing.
          dropout: share of units dropped, ``float[]`` in [0, 1), to 1/256.
          real: not used; rows do not meet.

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
