"""Networks that federated clients train, each a dict of layers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels.checks import one_of
from jaxanon.models.images import VGG, ResNet, check_pixels
from jaxanon.models.layers import LSTM

REACH = 5  # kernel size of convolutions, in samples


class Predictor(NamedTuple):
    """Network with ``init(key) -> params`` and ``apply(params, x) -> float[B, out]``.

    Parameters are a dict of layers; ``layers`` has their names, from input to output.
    """

    init: Callable
    apply: Callable
    layers: tuple[str, ...]


class Recurrent(nn.Module):
    """LSTM layers, then dense layers with ReLU on the last state.

    References:
      Atlas, section 3.4.2: 8 LSTM layers and 3 dense layers of unpublished widths.
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
    """Dense layers with ReLU on flattened windows."""

    outputs: int
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, outputs]``."""
        x = windows.reshape(len(windows), -1)
        return _dense(x, self.hidden, self.outputs)


class Convolutional(nn.Module):
    """Convolutions with ReLU and average pooling over two samples, then dense layers.

    A convolution is one matrix product with neighbouring samples. On a CPU, this is
    twelve times as fast as ``nn.Conv``, and per-example clipping can use its factors.
    """

    outputs: int
    filters: Sequence[int]
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, outputs]``."""
        x = windows
        for number, filters in enumerate(self.filters, 1):
            x = nn.relu(nn.Dense(filters, name=f"conv_{number}")(_neighbors(x)))
            half = x.shape[1] // 2
            if half:
                x = x[:, : 2 * half].reshape(len(x), half, 2, filters).mean(axis=2)
        return _dense(x.reshape(len(x), -1), self.hidden, self.outputs)


def _neighbors(x):
    """Gathers neighbours of samples, ``float[batch, time, REACH * channels]``."""
    time, side = x.shape[1], REACH // 2
    padded = jnp.pad(x, ((0, 0), (side, side), (0, 0)))
    return jnp.concatenate([padded[:, i : i + time] for i in range(REACH)], axis=2)


def _dense(x, hidden, outputs):
    for number, units in enumerate(hidden, 1):
        x = nn.relu(nn.Dense(units, name=f"dense_{number}")(x))
    return nn.Dense(outputs, name=f"dense_{len(hidden) + 1}")(x)


KINDS = ("cnn", "lstm", "mlp", "resnet32", "vgg16")

IMAGES = KINDS[3:]  # Kinds that treat a window as an image.


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
    """Builds a network for standardised windows.

    Layers are named ``lstm_1``, ..., ``conv_1``, ..., ``dense_1``, ...; the last dense
    layer is the output.

    Args:
      kind: one of ``KINDS``. "resnet32" and "vgg16" treat a window as a square image in
        row-major order and have fixed widths.
      time: samples per window.
      channels: sensor channels.
      outputs: number of classes, or of values to predict.
      hidden: widths of the hidden dense layers; ignored for images.
      filters: filters of the convolutions of "cnn".
      lstm_features: widths of the LSTM layers of "lstm".

    Raises:
      ValueError: for an unknown kind, or if windows have the wrong length for an image.

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

    @jax.jit  # Without jit, initialization takes seconds.
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


HIDDEN = (100,) * 8


class QNetwork(nn.Module):
    """Dense layers with ReLU, then one value per action.

    Hidden layers start He-normal. With Flax's default, eight of them would shrink the
    signal to a sixteenth.

    References:
      Chapter 2, section 2.2.4, for 8 layers of 100; He et al., Delving deep into
      rectifiers, ICCV 2015.
    """

    num_actions: int
    hidden: Sequence[int] = HIDDEN

    @nn.compact
    def __call__(self, observed):
        """``float[batch, observed] -> float[batch, actions]``."""
        x = observed
        for number, units in enumerate(self.hidden, 1):
            initial = nn.initializers.he_normal()
            x = nn.relu(nn.Dense(units, kernel_init=initial, name=f"dense_{number}")(x))
        return nn.Dense(self.num_actions, name=f"dense_{len(self.hidden) + 1}")(x)


def q_network(
    num_observed: int, num_actions: int, hidden: Sequence[int] = HIDDEN
) -> Predictor:
    """Builds a Q-network with layers ``dense_1``, ...; the last one gives Q-values.

    Args:
      num_observed: size of an observation.
      num_actions: number of actions.
      hidden: widths of the hidden layers.

    Example:
      >>> net = q_network(2, 3)
      >>> layers = net.init(jax.random.key(0))
      >>> len(net.layers), sum(leaf.size for leaf in jax.tree.leaves(layers))
      (9, 71303)
    """
    module = QNetwork(num_actions, tuple(hidden))

    @jax.jit  # Without jit, initialization takes seconds.
    def init(key):
        return module.init(key, jnp.zeros((1, num_observed)))["params"]

    apply = lambda layers, observed: module.apply({"params": layers}, observed)
    names = tuple(f"dense_{number}" for number in range(1, len(hidden) + 2))
    return Predictor(init, apply, names)


LAYER = "embed_1"


def add_embedding(network: Predictor, tokens: int, features: int) -> Predictor:
    """Adds an embedding of tokens as the first layer of a network.

    Token 0 is padding: its vector is zero and is not trained.

    Args:
      network: a network for windows ``float[batch, time, features]``.
      tokens: number of tokens, including 0.
      features: size of a vector.

    Returns:
      ``Predictor`` for windows ``float[batch, time, 1]`` of integers below ``tokens``.

    Example:
      >>> reads = lambda layers, x: x[:, -1] @ layers["dense_1"]
      >>> init = lambda key: {"dense_1": jnp.ones((4, 2))}
      >>> net = Predictor(init, reads, ("dense_1",))
      >>> net = add_embedding(net, tokens=9, features=4)
      >>> layers = net.init(jax.random.key(0))
      >>> net.layers, layers["embed_1"]["embedding"].shape
      (('embed_1', 'dense_1'), (9, 4))
      >>> net.apply(layers, jnp.array([[[3.0], [0.0]]]))  # The last one is padding.
      Array([[0., 0.]], dtype=float32)
    """

    def init(key):
        table_key, network_key = jax.random.split(key)
        table = jax.random.normal(table_key, (tokens, features))
        return {LAYER: {"embedding": table}, **network.init(network_key)}

    def apply(layers, windows):
        index = jnp.round(windows[..., 0]).astype(jnp.int32)
        x = layers[LAYER]["embedding"][index] * (index > 0)[..., None]
        return network.apply({name: layers[name] for name in network.layers}, x)

    return Predictor(init, apply, (LAYER, *network.layers))
