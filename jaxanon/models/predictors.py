"""Networks that federated clients train: windows to logits, a dict of layers each."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels.checks import one_of
from jaxanon.models.images import VGG, ResNet, check_pixels
from jaxanon.models.recurrent import LSTM

REACH = 5  # Samples that a convolution sees.


class Predictor(NamedTuple):
    """``init(key) -> dict of layers``; ``apply(layers, windows) -> float[B, out]``.

    ``layers`` are their names, in the order in which windows meet them.
    """

    init: Callable
    apply: Callable
    layers: tuple[str, ...]


class Recurrent(nn.Module):
    """Layers of LSTM, the last state, dense layers with ReLU, the outputs.

    References:
      Atlas, section 3.4.2: 8 layers of LSTM and 3 dense ones; widths are not given.
    """

    outputs: int
    lstm_features: Sequence[int]
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, outputs]``."""
        x = windows
        for number, features in enumerate(self.lstm_features, 1):
            x = LSTM(features, name=f"lstm_{number}")(x)
        return _dense(x[:, -1], self.hidden, self.outputs)


class Perceptron(nn.Module):
    """Dense layers with ReLU on a window's numbers, then the outputs."""

    outputs: int
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, outputs]``."""
        x = windows.reshape(len(windows), -1)
        return _dense(x, self.hidden, self.outputs)


class Convolutional(nn.Module):
    """Convolutions over ``REACH`` samples with ReLU, each halved, then dense layers.

    A convolution is one product of neighbouring samples and a matrix: on a CPU that is
    twelve times as fast as ``nn.Conv``, and clipping finds every example's factors.
    """

    outputs: int
    filters: Sequence[int]
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, outputs]``."""
        x = windows
        for number, filters in enumerate(self.filters, 1):
            x = nn.relu(nn.Dense(filters, name=f"conv_{number}")(_neighbours(x)))
            half = x.shape[1] // 2
            if half:
                x = x[:, : 2 * half].reshape(len(x), half, 2, filters).mean(axis=2)
        return _dense(x.reshape(len(x), -1), self.hidden, self.outputs)


def _neighbours(x):
    """Every sample with those around it, ``float[batch, time, REACH * channels]``."""
    time, side = x.shape[1], REACH // 2
    padded = jnp.pad(x, ((0, 0), (side, side), (0, 0)))
    return jnp.concatenate([padded[:, i : i + time] for i in range(REACH)], axis=2)


def _dense(x, hidden, outputs):
    for number, units in enumerate(hidden, 1):
        x = nn.relu(nn.Dense(units, name=f"dense_{number}")(x))
    return nn.Dense(outputs, name=f"dense_{len(hidden) + 1}")(x)


KINDS = ("cnn", "lstm", "mlp", "resnet32", "vgg16")
IMAGES = KINDS[3:]  # Kinds that see a window as an image.


def predictor(
    kind: str,
    time: int,
    channels: int,
    outputs: int,
    *,
    hidden: Sequence[int],
    filters: Sequence[int] = (),
    lstm_features: Sequence[int] = (),
) -> Predictor:
    """A network for standardised windows, whose layers are the entries of a dict.

    Layers are called ``lstm_1``, ..., ``conv_1``, ..., ``dense_1``, ..., the last of
    which are the outputs.

    Args:
      kind: one of ``KINDS``; "resnet32" and "vgg16" see the square image whose pixels
        a window holds row by row, and their widths are their own.
      time, channels: of a window.
      outputs: classes, or numbers to predict.
      hidden: widths of the dense layers before the outputs, of the other kinds.
      filters: of the convolutions, of "cnn".
      lstm_features: widths of the layers of LSTM, of "lstm".

    Raises:
      ValueError: for another kind, or windows that are no images of one.

    Example:
      >>> net = predictor("cnn", 32, 3, 4, hidden=(8,), filters=(6, 6))
      >>> layers = net.init(jax.random.key(0))
      >>> net.layers, sorted(layers) == sorted(net.layers)
      (('conv_1', 'conv_2', 'dense_1', 'dense_2'), True)
      >>> net.apply(layers, jnp.zeros((5, 32, 3))).shape
      (5, 4)
    """
    modules = {
        "cnn": lambda: Convolutional(outputs, tuple(filters), tuple(hidden)),
        "lstm": lambda: Recurrent(outputs, tuple(lstm_features), tuple(hidden)),
        "mlp": lambda: Perceptron(outputs, tuple(hidden)),
        "resnet32": lambda: ResNet(outputs),
        "vgg16": lambda: VGG(outputs),
    }
    one_of("model", kind, KINDS)
    if kind in IMAGES:
        check_pixels(kind, time)
    module = modules[kind]()
    blank = jnp.zeros((1, time, channels), jnp.float32)

    @jax.jit  # Operation by operation, networks take seconds to set up.
    def init(key):
        return module.init(key, blank)["params"]

    before = {"lstm": len(lstm_features), "cnn": len(filters), "mlp": 0}
    before |= {"resnet32": 31, "vgg16": 13}
    word = "lstm" if kind == "lstm" else "conv"
    names = [f"{word}_{number}" for number in range(1, before[kind] + 1)]
    dense = 1 if kind in IMAGES else 1 + len(hidden)
    names += [f"dense_{number}" for number in range(1, dense + 1)]
    apply = lambda layers, x: module.apply({"params": layers}, x)
    return Predictor(init, apply, tuple(names))
