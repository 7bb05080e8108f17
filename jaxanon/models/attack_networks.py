"""The other networks that attack windows: convolutional and recurrent."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.classifier import drop_units
from jaxanon.models.convolution import patches
from jaxanon.models.recurrent import LSTM


class PairConv(nn.Module):
    """A convolution over 2 neighbouring channels and 5 samples, with zeros around.

    As ``nn.Conv(features, (2, 5))`` with Glorot-uniform weights, written as a product:
    inside a loop, where classifiers train, XLA's convolution on a CPU is some 20 times
    slower.
    """

    features: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, channels, time, d]`` to the same with ``features``."""
        batch, channels, time, d = x.shape
        initial = nn.initializers.glorot_uniform()
        kernel = self.param("kernel", initial, (2, 5, d, self.features))
        bias = self.param("bias", nn.initializers.zeros, (self.features,))
        padded = jnp.pad(x, ((0, 0), (0, 0), (2, 2), (0, 0)))
        rows = patches(padded.reshape(batch * channels, time + 4, d), 5)
        # What a channel gives to itself, and what to the one before it.
        both = jnp.concatenate(kernel.reshape(2, 5 * d, self.features), axis=1)
        given = (rows @ both).reshape(batch, channels, time, 2 * self.features)
        own, before = jnp.split(given, 2, axis=3)
        before = jnp.pad(before[:, 1:], ((0, 0), (0, 1), (0, 0), (0, 0)))
        return own + before + bias[None, None, None]


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
      >>> variables = net.init(jax.random.key(0), jnp.zeros((1, 128, 6)))
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
        x = jnp.swapaxes(windows, -1, -2)[..., None]
        for layer, filters in enumerate(self.filters):
            x = settle(PairConv(filters)(x))
            x = drop(_halved(x), layer, dropout / 2)
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
    layer = nn.BatchNorm(momentum=0.99, epsilon=1e-3)
    return layer(x, use_running_average=not train, mask=mask)


def _halved(x):
    """The larger of every two samples; one that is left over stays."""
    x = jnp.pad(x, ((0, 0), (0, 0), (0, x.shape[2] % 2), (0, 0)), mode="edge")
    # Not a max over an axis: its gradient looks for the value that won, and finds none
    # where the compiler computed it twice with different rounding.
    return jnp.maximum(x[:, :, ::2], x[:, :, 1::2])


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
