"""LSTM whose weight gradients are a single product after the loop."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import varying
from jaxanon.kernels.factored.kernel import matmul


def lstm(x, kernel, recurrent, bias):
    """Runs a long short-term memory over time from a zero state.

    ``i, f, g, o = x_t @ kernel + h @ recurrent + bias``; ``c = σ(f) c + σ(i) tanh(g)``;
    ``h = σ(o) tanh(c)``. The backward loop carries only states. Weight gradients are
    one product for all steps afterwards, whose factors ``clipped_gradient_sum`` uses.
    The forward pass stores 7 derivatives per unit and step for the backward pass.

    Args:
      x: ``float[batch, time, d_in]``, at least one time step.
      kernel: ``float[d_in, 4 * features]``, columns in the order input, forget,
        candidate, output.
      recurrent: ``float[features, 4 * features]``.
      bias: ``float[4 * features]``.

    Returns:
      ``float[batch, time, features]``, the hidden state after every step, in the dtype
      of the arguments. It supports first-order reverse-mode derivatives (``jax.grad``).

    Raises:
      ValueError: if shapes do not match.

    Example:
      >>> x, weights, bias = jnp.ones((1, 2, 3)), jnp.zeros((3, 4)), jnp.zeros(4)
      >>> bias = bias.at[2].set(jnp.inf)  # Every step: c = c / 2 + 1 / 2.
      >>> jnp.arctanh(2 * lstm(x, weights, jnp.zeros((1, 4)), bias)).round(4)
      Array([[[0.5 ],
              [0.75]]], dtype=float32)

    References:
      Hochreiter and Schmidhuber, Long short-term memory, Neural Computation 1997; Gers,
      Schmidhuber, Cummins, Learning to forget, Neural Computation 2000.
    """
    _check(x, kernel, recurrent, bias)
    batch, time = x.shape[:2]
    size = recurrent.shape[0]
    steps = jnp.swapaxes(x, 0, 1)
    fixed = [jnp.asarray(array) for array in (steps, kernel, recurrent, bias)]
    hidden, *slopes = _forward(*map(jax.lax.stop_gradient, fixed))
    # The loop is not differentiated. The gate inputs of all steps are expressed again
    # as two products for their gradients only: the loop already has their values, so
    # the products are never computed, and weights see all rows at once.
    before = jnp.concatenate([jnp.zeros_like(hidden[:1]), hidden[:-1]])
    rows = lambda a: a.reshape(time * batch, a.shape[-1])
    gates = matmul(rows(steps), kernel) + matmul(rows(before), recurrent) + bias[None]
    recurrent = jax.lax.stop_gradient(fixed[2])
    out = _through_time(gates.reshape(time, batch, 4 * size), hidden, slopes, recurrent)
    return jnp.swapaxes(out, 0, 1)


def _forward(steps, kernel, recurrent, bias):
    """Returns hidden states of all steps, then derivatives for the backward pass."""
    size = recurrent.shape[0]
    # One tanh for all gates: sigmoid(z) is (1 + tanh(z / 2)) / 2.
    halves, ones = jnp.full(size, 0.5, bias.dtype), jnp.ones(size, bias.dtype)
    scale = jnp.concatenate([halves, halves, ones, halves])[None]
    shift = jnp.concatenate([halves, halves, 0 * ones, halves])[None]

    def step(state, x):
        hidden, cell = state
        gates = x @ kernel + hidden @ recurrent + bias[None]
        active = jnp.tanh(gates * scale) * scale + shift
        inputs, forget, candidate, output = jnp.split(active, 4, axis=-1)
        after = forget * cell + inputs * candidate
        bounded = jnp.tanh(after)
        slopes = (
            candidate * inputs * (1 - inputs),
            cell * forget * (1 - forget),
            inputs * (1 - candidate**2),
            bounded * output * (1 - output),
        )
        to_cell = output * (1 - bounded**2)
        hidden = output * bounded
        out = hidden, jnp.concatenate(slopes, axis=-1), to_cell, forget
        return (hidden, after), out

    dtype = jnp.result_type(steps, kernel, recurrent, bias)
    zeros = jnp.zeros((steps.shape[1], size), dtype)
    zeros = zeros + varying.zero(steps, kernel, recurrent, bias).astype(dtype)
    return jax.lax.scan(step, (zeros, zeros), steps)[1]


@jax.custom_vjp
def _through_time(gates, hidden, slopes, recurrent):
    """Returns ``hidden``; its gradient flows through time to the gate inputs only."""
    del gates, slopes, recurrent
    return hidden


def _through_time_forward(gates, hidden, slopes, recurrent):
    del gates
    return hidden, (slopes, recurrent)


def _through_time_backward(residuals, cotangents):
    slopes, recurrent = residuals

    def step(carry, at):
        hidden, cell = carry
        cotangent, slope, to_cell, forget = at
        hidden = hidden + cotangent
        cell = cell + hidden * to_cell
        gates = slope * jnp.concatenate([cell, cell, cell, hidden], axis=-1)
        return (gates @ recurrent.T, cell * forget), gates

    zeros = jnp.zeros_like(cotangents[0])
    zeros = zeros + varying.zero(cotangents, residuals).astype(zeros.dtype)
    steps = cotangents, *slopes
    _, gates = jax.lax.scan(step, (zeros, zeros), steps, reverse=True)
    return gates, None, None, None


_through_time.defvjp(_through_time_forward, _through_time_backward)


def _check(x, kernel, recurrent, bias):
    size = recurrent.shape[0]
    shapes = [array.shape for array in (x, kernel, recurrent, bias)]
    wanted = (size, 4 * size), (4 * size,)
    fits = x.ndim == 3 and shapes[1] == (x.shape[-1], 4 * size)
    if not fits or (shapes[2], shapes[3]) != wanted or not x.shape[1]:
        raise ValueError(
            "x, kernel, recurrent and bias must have shapes [batch, time >= 1, d_in], "
            "[d_in, 4 n], [n, 4 n] and [4 n], got "
            f"{', '.join(map(str, shapes))}."
        )
