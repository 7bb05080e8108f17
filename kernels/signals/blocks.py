"""Filter cascades as a linear system, applied to blocks of samples."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BLOCK = 64  # Samples; longer blocks need larger products, shorter ones more states.


class LinearSystem(NamedTuple):
    """``s' = A s + B x``, ``y = C s + D x`` over the states of all sections."""

    a: np.ndarray  # [n, n]
    b: np.ndarray  # [n]
    c: np.ndarray  # [n]
    d: float


def system(sections) -> LinearSystem:
    """Computes the matrices from one time step of every basis vector."""
    n = 2 * len(sections)
    state, value = np.eye(n, n + 1), np.eye(n + 1)[n]
    following = np.zeros_like(state)
    for i, (b0, b1, b2, _, a1, a2) in enumerate(sections):
        y = b0 * value + state[2 * i]
        following[2 * i] = b1 * value - a1 * y + state[2 * i + 1]
        following[2 * i + 1] = b2 * value - a2 * y
        value = y
    return LinearSystem(following[:, :n], following[:, n], value[:n], value[n])


def steady(sections):
    """Returns ``float64[sections, 2]``, the steady state for a constant input of 1."""
    rows, value = [], 1.0
    for b0, b1, b2, _, a1, a2 in sections:
        y = value * (b0 + b1 + b2) / (1 + a1 + a2)
        second = b2 * value - a2 * y
        rows.append([b1 * value - a1 * y + second, second])
        value = y
    return np.array(rows)


def apply(sections, x, state):
    """Filters ``x [..., channels, time]`` and updates ``state [..., channels, n]``."""
    time = x.shape[-1]
    size = max(min(BLOCK, time), 1)
    whole = time - time % size
    linear = system(sections)
    y, state = _whole_blocks(linear, x[..., :whole], state, size)
    if whole == time:
        return y, state
    tail, state = _whole_blocks(linear, x[..., whole:], state, time - whole)
    return jnp.concatenate([y, tail], -1), state


def _whole_blocks(linear, x, state, size):
    num_blocks = x.shape[-1] // size
    if not num_blocks:
        return x, state
    blocks = x.reshape(*x.shape[:-1], num_blocks, size)
    within, onward, seen = _matrices(linear, size)
    # The output from a zero state, and the block's contribution to the next state.
    made = _product(blocks, np.concatenate([within, onward]))
    states = jnp.concatenate([state[..., None, :], made[..., size:]], -2)
    # Entry i becomes the sum over j of A^(size (i - j)) times entry j, by doubling.
    power, shift = np.linalg.matrix_power(linear.a, size), 1
    while shift <= num_blocks:
        carried = _product(states[..., :-shift, :], power)
        states = states.at[..., shift:, :].add(carried)
        power, shift = power @ power, 2 * shift
    y = made[..., :size] + _product(states[..., :-1, :], seen)
    return y.reshape(x.shape), states[..., -1, :]


def _matrices(linear, size):
    """Returns the matrices block to output, block to next state, state to output."""
    responses = [linear.b]  # A^k B
    seen = [linear.c]  # C A^k
    for _ in range(size - 1):
        responses.append(linear.a @ responses[-1])
        seen.append(seen[-1] @ linear.a)
    impulse = np.array([linear.d] + [linear.c @ r for r in responses[:-1]])
    lag = np.arange(size)[:, None] - np.arange(size)[None]
    within = np.where(lag >= 0, impulse[np.maximum(lag, 0)], 0)
    return within, np.stack(responses[::-1], axis=1), np.stack(seen)


def _product(x, matrix):
    """Computes ``x @ matrix.T`` in the full precision of ``x`` on any device."""
    matrix = jnp.asarray(matrix.T, x.dtype)
    return jnp.matmul(x, matrix, precision=jax.lax.Precision.HIGHEST)
