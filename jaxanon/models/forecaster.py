"""A recurrent network that predicts the next sample of a window, and its training."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from jaxanon.models.layers import LSTM


class Forecaster(nn.Module):
    """An LSTM that reads samples one after another, and a layer that tells the next.

    It predicts by how much the next sample differs, so that knowing nothing is to say
    that all stays as it is.
    """

    hidden: int = 32

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, d]`` to the same: what follows each sample."""
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
    """Trains a forecaster, by the mean absolute error of all samples but the first.

    Adam, its rate falling from 5e-3 linearly to 0; batches drawn with replacement. All
    steps are one program.

    Args:
      key: typed PRNG key.
      windows: ``float[N, time, channels]``, standardised, time at least 2.
      hidden: width of the LSTM.
      steps: of the optimizer.
      batch: windows per step.

    Returns:
      ``Forecasts``.

    Example:
      >>> found = fit_forecaster(
      ...     jax.random.key(0), jnp.ones((4, 3, 2)), hidden=2, steps=3, batch=2)
      >>> found.loss.shape, float(found.loss[0])  # What never moves is known at first.
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
        own = jax.random.fold_in(draw_key, index)
        rows = windows[jax.random.randint(own, (batch,), 0, len(windows))]
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
    """Mean absolute error of the next sample, over all but the first.

    Args:
      forecasts: of ``fit_forecaster``.
      windows: ``float[N, time, channels]``, N at least 1.
    """
    windows = jnp.asarray(windows, jnp.float32)
    return float(_errors(forecasts.net, forecasts.params, windows))
