"""Forecasts of a device's power for the next minutes, by four kinds of model."""

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
_CHANNELS = 5  # Three of power; sine and cosine of the time of day.
_LOG_SCALE = 3.0  # Divisor of the logarithm: 1 W gives 0.6, 1 kW 2.8.
_SLOWER = 200  # Steps until the learning rate has decayed by √2.


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForecastConfig:
    """Kind and sizes of a forecaster. The chapter specifies only the kinds.

    Raises:
      TypeError: if a setting has the wrong type.
      ValueError: if a setting is out of range, or ``every`` does not divide
        ``lookback``.

    Example:
      >>> ForecastConfig(kind="lr").ahead
      60
    """

    kind: str = setting(
        "lstm",
        choices=KINDS,
        help='"lr": linear regression, squared errors; "svm": linear support vector '
        "regression, which ignores errors below ``tolerance`` and has a weight "
        '``penalty``; "bp": perceptron; "lstm": recurrent network. The last two '
        "minimize absolute errors, which fits the median",
    )
    lookback: int = setting(120, at_least=1, help="minutes of input")
    every: int = setting(
        5, at_least=1, help="minutes per mean of the input; divides lookback"
    )
    ahead: int = setting(60, at_least=1, help="minutes to forecast, each separately")
    hidden_sizes: tuple[int, ...] = setting(
        (64,), at_least=1, help='widths of "bp", and of the layers after the LSTM'
    )
    features: int = setting(32, at_least=1, help="number of features of the LSTM")
    tolerance: float = setting(
        0.01, at_least=0, help="tolerance of svm, relative to the scale"
    )
    penalty: float = setting(1e-4, at_least=0, help="weight decay of svm")

    def __post_init__(self):
        check(self)
        if self.lookback % self.every:
            raise ValueError(
                f"every must divide lookback, got {self.every} and {self.lookback}."
            )


class Trace(NamedTuple):
    """Power of one device, starting at midnight."""

    power: jax.Array  # float[minutes], W
    scale: jax.Array  # float[]; W that correspond to 1 in the network


class Forecaster(NamedTuple):
    """Functions of a forecaster: ``init``, ``predict`` and ``loss``.

    ``init(key) -> layers``. ``predict(layers, trace, ends) -> float[n, ahead]``, W,
    forecasts the minutes from each of ``ends`` (``int[n]``) on, given the minutes
    before; the first minute is repeated for times before the trace.
    ``loss(layers, trace, ends) -> float[]`` is the mean loss over ``ends``; the trace
    must contain the forecast minutes. ``layers`` lists the names of the layers in order
    of use.
    """

    init: Callable
    predict: Callable
    loss: Callable
    layers: tuple[str, ...]


class FitState(NamedTuple):
    """State of a forecaster in training, with the state of Adam."""

    step: jax.Array  # int32[]
    layers: dict
    opt_state: optax.OptState


def compute_scale(power):
    """Returns the mean power of a device while it draws power; 1 if it never does.

    Args:
      power: power of the training days, ``float[..., minutes]``, W.

    Returns:
      ``float32[...]``.

    Example:
      >>> compute_scale(jnp.array([[0.0, 30.0, 50.0], [0.0, 0.0, 0.0]]))
      Array([40.,  1.], dtype=float32)
    """
    is_used = power >= FLOOR_W
    count = jnp.sum(is_used, axis=-1)
    total = jnp.sum(jnp.where(is_used, power, 0), axis=-1)
    mean = total / jnp.maximum(count, 1)
    return jnp.where(count > 0, mean, 1).astype(jnp.float32)


def persistence(trace: Trace, ends, ahead: int):
    """Returns the baseline forecast: the last value continues.

    Args:
      trace: ``Trace``.
      ends: ``int[n]``, first minute of each forecast.
      ahead: number of minutes to forecast.

    Returns:
      ``float[n, ahead]``, W.

    Example:
      >>> persistence(Trace(jnp.array([3.0, 5.0, 9.0]), 1.0), jnp.array([2]), 2)
      Array([[5., 5.]], dtype=float32)
    """
    last = trace.power[jnp.maximum(ends - 1, 0)]
    return jnp.broadcast_to(last[:, None], (len(ends), ahead))


def forecaster(config: ForecastConfig) -> Forecaster:
    """Builds a model that forecasts the next minutes of a device.

    All kinds receive the same inputs: the scaled power, its difference to the last
    known minute, its logarithm, and the time of day. The logarithm separates standby
    from off. All kinds predict the difference of each minute to the last known one. The
    last layer starts at zero, so that the first forecast equals persistence.

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
    """Returns the state of a forecaster before its first step.

    Args:
      layers: result of ``Forecaster.init``, float arrays of any shapes.

    Example:
      >>> begin_fit({"dense_1": jnp.zeros(2)}).step
      Array(0, dtype=int32)
    """
    opt_state = optax.scale_by_adam().init(layers)
    return FitState(jnp.zeros((), jnp.int32), layers, opt_state)


def fit_gradient(key, model: Forecaster, state: FitState, trace, known, batch_size):
    """Returns the loss and its gradient on random windows of the known minutes.

    Args:
      key: typed PRNG key of the run; a step uses ``fold_in(key, state.step)``.
      model: ``Forecaster``.
      state: ``FitState``.
      trace: ``Trace``.
      known: ``int[2]``, the first known minute and the minute after the last. Loss and
        gradient are 0 if the range is shorter than one window.
      batch_size: number of windows, a Python int.

    Returns:
      The loss, ``float[]``, and a tree like ``state.layers``.

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
    step_key = jax.random.fold_in(key, state.step)
    shape = (batch_size,)
    ends = jax.random.randint(step_key, shape, first, jnp.maximum(beyond, first + 1))
    ends = jnp.minimum(ends, len(trace.power) - ahead)
    loss, gradient = jax.value_and_grad(model.loss)(state.layers, trace, ends)
    has_window = beyond > first
    keep = lambda leaf: jnp.where(has_window, leaf, 0)
    return keep(loss), jax.tree.map(keep, gradient)


def fit_step(state: FitState, gradient, learning_rate) -> FitState:
    """Performs one step of Adam with a gradient clipped to norm 1.

    The learning rate decays by ``1 / √(1 + step / 200)``, because load spikes disturb a
    forecaster that trains for weeks.

    Args:
      state: ``FitState``.
      gradient: tree like ``state.layers``.
      learning_rate: initial learning rate, ``float[]``.

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
