"""Recurrent forecaster of the next sample of a window."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from jaxanon.models.layers import LSTM


class Forecaster(nn.Module):
    """LSTM with a dense layer that predicts the change to the next sample.

    Initially it predicts no change.
    """

    hidden: int = 32

    @nn.compact
    def __call__(self, windows):
        """Predicts the successor of each sample, ``float[batch, time, d]``."""
        seen = LSTM(self.hidden, name="lstm")(windows)
        initial = nn.initializers.zeros
        change = nn.Dense(windows.shape[-1], kernel_init=initial, name="change")(seen)
        return windows + change


class Forecasts(NamedTuple):
    """A trained forecaster."""

    net: Forecaster
    params: Any
    loss: jax.Array  # float[steps], mean absolute error


def fit_forecaster(
    key, windows, *, hidden: int = 32, steps: int = 1000, batch: int = 128
) -> Forecasts:
    """Trains a forecaster on the mean absolute error of all samples but the first.

    Uses Adam with a learning rate that falls linearly from 5e-3 to 0, and batches drawn
    with replacement. All steps run in one program.

    Args:
      key: typed PRNG key.
      windows: ``float[N, time, channels]``, standardised, time at least 2.
      hidden: width of the LSTM.
      steps: number of optimizer steps.
      batch: number of windows per step.

    Example:
      >>> forecasts = fit_forecaster(
      ...     jax.random.key(0), jnp.ones((4, 3, 2)), hidden=2, steps=3, batch=2)
      >>> forecasts.loss.shape, float(forecasts.loss[0])  # The windows are constant.
      ((3,), 0.0)
    """
    net = Forecaster(hidden)
    params, loss = _fit(net, steps, batch, key, jnp.asarray(windows, jnp.float32))
    return Forecasts(net, params, loss)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _fit(net, steps, batch, key, windows):
    init_key, draw_key = jax.random.split(key)
    optimizer = optax.adam(optax.linear_schedule(5e-3, 0.0, steps))
    params = net.init(init_key, windows[:1, :-1])

    def loss_fn(params, rows):
        return jnp.mean(jnp.abs(net.apply(params, rows[:, :-1]) - rows[:, 1:]))

    def step(carry, index):
        params, opt_state = carry
        step_key = jax.random.fold_in(draw_key, index)
        rows = windows[jax.random.randint(step_key, (batch,), 0, len(windows))]
        loss, grads = jax.value_and_grad(loss_fn)(params, rows)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    start = params, optimizer.init(params)
    (params, _), losses = jax.lax.scan(step, start, jnp.arange(steps))
    return params, losses


@functools.partial(jax.jit, static_argnums=0)
def _errors(net, params, windows):
    return jnp.mean(jnp.abs(net.apply(params, windows[:, :-1]) - windows[:, 1:]))


def forecast_error(forecasts: Forecasts, windows) -> float:
    """Returns the mean absolute error of the next sample, over all but the first.

    Args:
      forecasts: a trained forecaster, from ``fit_forecaster``.
      windows: ``float[N, time, channels]``, N at least 1.
    """
    windows = jnp.asarray(windows, jnp.float32)
    return float(_errors(forecasts.net, forecasts.params, windows))
