"""What a device will take in each of the next minutes, by four kinds of model."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.energy.modes import FLOOR_W
from jaxanon.energy.saving import DAY
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import predictor

KINDS = ("lr", "svm", "bp", "lstm")
_CHANNELS = 5  # Power thrice, and the time of day as sine and cosine.
_LOG_SCALE = 3.0  # Of the logarithm: standby of 1 W is 0.6, 1 kW 2.8.
_SLOWER = 200  # Steps after which they are shorter by √2.


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForecastConfig:
    """A kind of forecaster. The chapter gives the kinds, and no size.

    Raises:
      TypeError: for a setting of another type.
      ValueError: for another kind, a number below 1, a rest, or a tolerance or penalty
        that is no finite number >= 0.

    Example:
      >>> ForecastConfig(kind="lr").ahead
      60
    """

    kind: str = setting(
        "lstm",
        choices=KINDS,
        help='"lr" is linear regression on squared errors; "svm" linear support vector '
        "regression, whose errors below ``tolerance`` count for nothing and whose "
        'weights have a ``penalty``; "bp" a perceptron and "lstm" a recurrent network, '
        "both on absolute errors, whose best answer is the median",
    )
    lookback: int = setting(120, at_least=1, help="minutes that are seen")
    every: int = setting(5, at_least=1, help="minutes of a mean; divides lookback")
    ahead: int = setting(60, at_least=1, help="minutes that are predicted one by one")
    hidden_sizes: tuple[int, ...] = setting(
        (64,), at_least=1, help='widths of "bp", and of what follows the LSTM of "lstm"'
    )
    features: int = setting(32, at_least=1, help="of the LSTM")
    tolerance: float = setting(0.01, at_least=0, help="of svm, in the device's scale")
    penalty: float = setting(1e-4, at_least=0, help="weight decay of svm")

    def __post_init__(self):
        check(self)
        if self.lookback % self.every:
            raise ValueError(
                f"every must divide lookback, got {self.every} and {self.lookback}."
            )


class Trace(NamedTuple):
    """What one device took, from a midnight on."""

    power: jax.Array  # float[minutes], W
    scale: jax.Array  # float[]; W that make a 1 for the network


class Forecaster(NamedTuple):
    """``init(key) -> layers`` and functions of layers, a trace and minutes.

    ``predict(layers, trace, ends) -> float[n, ahead]``, W, for the minutes from each of
    ``ends`` on (``int[n]``) by those before; minutes before the first are the first.
    ``loss(layers, trace, ends) -> float[]`` is the mean over ``ends``, whose minutes
    ahead have to be there. ``layers`` are names, in the order of their use.
    """

    init: Callable
    predict: Callable
    loss: Callable
    layers: tuple[str, ...]


class FitState(NamedTuple):
    """A forecaster on its way, with Adam's memory."""

    step: jax.Array  # int32[]
    layers: dict
    opt_state: optax.OptState


def scale_of(power):
    """The mean of what a device takes when it takes something; 1 if it never does.

    Args:
      power: ``float[..., minutes]``, W, of the days one may learn from.

    Returns:
      ``float32[...]``.

    Example:
      >>> scale_of(jnp.array([[0.0, 30.0, 50.0], [0.0, 0.0, 0.0]]))
      Array([40.,  1.], dtype=float32)
    """
    some = power >= FLOOR_W
    count = jnp.sum(some, axis=-1)
    total = jnp.sum(jnp.where(some, power, 0), axis=-1)
    mean = total / jnp.maximum(count, 1)
    return jnp.where(count > 0, mean, 1).astype(jnp.float32)


def persistence(trace: Trace, ends, ahead: int):
    """Says that the last minute goes on: the baseline.

    Args:
      trace: ``Trace``.
      ends: ``int[n]``.
      ahead: minutes.

    Returns:
      ``float[n, ahead]``, W.

    Example:
      >>> persistence(Trace(jnp.array([3.0, 5.0, 9.0]), 1.0), jnp.array([2]), 2)
      Array([[5., 5.]], dtype=float32)
    """
    last = trace.power[jnp.maximum(ends - 1, 0)]
    return jnp.broadcast_to(last[:, None], (len(ends), ahead))


def forecaster(config: ForecastConfig) -> Forecaster:
    """A model of the next minutes, which a device's own scale makes comparable.

    All kinds see the same: what the device took, how far that is from the last minute
    known, its logarithm (standby beside off), and the time of day. They predict by how
    much each minute differs from the last one known; what they begin with is that
    nothing does.

    Args:
      config: ``ForecastConfig``.

    Returns:
      ``Forecaster``.

    Example:
      >>> one = forecaster(ForecastConfig(kind="lr", lookback=4, every=2, ahead=2))
      >>> trace = Trace(jnp.array([1.0, 2.0, 3.0, 4.0, 6.0, 6.0]), jnp.array(2.0))
      >>> layers = one.init(jax.random.key(0))
      >>> ends = jnp.array([4])
      >>> one.predict(layers, trace, ends), one.loss(layers, trace, ends)
      (Array([[4., 4.]], dtype=float32), Array(1., dtype=float32))

    References:
      Chapter 2, section 2.2.2, and [37] to [40] of section 2.2.5 for the kinds.
    """
    steps = config.lookback // config.every
    net = predictor(
        "lstm" if config.kind == "lstm" else "mlp",
        steps,
        _CHANNELS,
        config.ahead,
        hidden=config.hidden_sizes if config.kind in ("bp", "lstm") else (),
        lstm_features=(config.features,) if config.kind == "lstm" else (),
    )
    last_layer = net.layers[-1]

    def init(key):
        layers = net.init(key)
        return layers | {last_layer: jax.tree.map(jnp.zeros_like, layers[last_layer])}

    def windows(trace, ends):
        minute = ends[:, None] - config.lookback + jnp.arange(config.lookback)[None]
        watts = trace.power[jnp.maximum(minute, 0)]
        mean = lambda x: jnp.mean(x.reshape(-1, steps, config.every), axis=2)
        power = mean(watts / trace.scale)
        level = mean(jnp.log1p(watts / FLOOR_W) / _LOG_SCALE)
        turn = 2 * jnp.pi * minute[:, :: config.every] / DAY
        seen = power, power - last(trace, ends)[:, :1], level
        return jnp.stack([*seen, jnp.sin(turn), jnp.cos(turn)], axis=2)

    def change(layers, trace, ends):
        return net.apply(layers, windows(trace, ends))

    def last(trace, ends):
        return persistence(trace, ends, config.ahead) / trace.scale

    def predict(layers, trace, ends):
        scaled = last(trace, ends) + change(layers, trace, ends)
        return jnp.maximum(scaled * trace.scale, 0)

    def loss(layers, trace, ends):
        minute = ends[:, None] + jnp.arange(config.ahead)[None]
        truth = trace.power[minute] / trace.scale - last(trace, ends)
        error = change(layers, trace, ends) - truth
        if config.kind == "lr":
            return jnp.mean(error**2)
        if config.kind == "svm":
            beyond = jnp.maximum(jnp.abs(error) - config.tolerance, 0)
            square = jnp.sum(layers[last_layer]["kernel"] ** 2)
            return jnp.mean(beyond) + config.penalty / 2 * square
        return jnp.mean(jnp.abs(error))

    return Forecaster(init, predict, loss, net.layers)


def begin_fit(layers) -> FitState:
    """A forecaster before its first step.

    Args:
      layers: of ``Forecaster.init``, float arrays of any shapes.

    Example:
      >>> begin_fit({"dense_1": jnp.zeros(2)}).step
      Array(0, dtype=int32)
    """
    opt_state = optax.scale_by_adam().init(layers)
    return FitState(jnp.zeros((), jnp.int32), layers, opt_state)


def fit_gradient(key, model: Forecaster, state: FitState, trace, known, batch_size):
    """The loss and its gradient on minutes that are drawn from what is known.

    Args:
      key: typed PRNG key of the run; the step's is ``fold_in(key, state.step)``.
      model: ``Forecaster``.
      state: ``FitState``.
      trace: ``Trace``.
      known: ``int[2]``, minutes: from the first to before the second one may learn.
        Where that is fewer than a window's, the loss and the gradient are 0.
      batch_size: windows, a Python int.

    Returns:
      ``float[]``, and a tree like ``state.layers``.

    Example:
      >>> one = forecaster(ForecastConfig(kind="lr", lookback=1, every=1, ahead=1))
      >>> state = begin_fit(one.init(jax.random.key(0)))
      >>> trace = Trace(jnp.array([1.0, 3.0]), jnp.array(1.0))
      >>> step = jax.jit(lambda key: fit_gradient(key, one, state, trace, (0, 2), 4))
      >>> step(jax.random.key(1))[0]
      Array(4., dtype=float32)
    """
    ahead = jax.eval_shape(
        model.predict, state.layers, trace, jnp.zeros(1, jnp.int32)
    ).shape[1]
    first, beyond = known[0] + 1, known[1] - ahead + 1
    own_key = jax.random.fold_in(key, state.step)
    shape = (batch_size,)
    ends = jax.random.randint(own_key, shape, first, jnp.maximum(beyond, first + 1))
    ends = jnp.minimum(ends, len(trace.power) - ahead)
    loss, gradient = jax.value_and_grad(model.loss)(state.layers, trace, ends)
    some = beyond > first
    keep = lambda leaf: jnp.where(some, leaf, 0)
    return keep(loss), jax.tree.map(keep, gradient)


def fit_step(state: FitState, gradient, learning_rate) -> FitState:
    """One step of Adam, by a gradient of norm 1 at most.

    Steps get shorter, by ``1 / √(1 + step / 200)``: spikes of a load throw a forecaster
    about that goes on learning for weeks.

    Args:
      state: ``FitState``.
      gradient: tree like ``state.layers``.
      learning_rate: ``float[]``.

    Example:
      >>> state = begin_fit({"w": jnp.array(1.0)})
      >>> fit_step(state, {"w": jnp.array(4.0)}, 0.5).layers["w"].round(3)
      Array(0.5, dtype=float32)
    """
    norm = optax.tree.norm(gradient)
    gradient = jax.tree.map(lambda g: g / jnp.maximum(norm, 1), gradient)
    direction, opt_state = optax.scale_by_adam().update(gradient, state.opt_state)
    rate = learning_rate / jnp.sqrt(1 + state.step / _SLOWER)
    down = lambda p, d: p - rate * d
    layers = jax.tree.map(down, state.layers, direction)
    return FitState(state.step + 1, layers, opt_state)
