"""Filter cascades as a linear system, applied to blocks of samples.

The states of second-order sections cancel at low cutoffs: a rounding error of float32
grows by the sampling rate over the cutoff, squared. The loop over blocks therefore uses
other coordinates, in which the system is a contraction, and deviations from a reference
sample, so that a constant offset costs no digits.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BLOCK = 64  # Samples; longer blocks need larger products, shorter ones more states.
FLOOR = 1e-3  # Relative size of the states that no input reaches.


class LinearSystem(NamedTuple):
    """``z' = A z + B x``, ``y = C z + D x`` over the states of all sections."""

    a: np.ndarray  # [n, n]
    b: np.ndarray  # [n]
    c: np.ndarray  # [n]
    d: float


class Coordinates(NamedTuple):
    """Section states ``s = to_sections z``, and the inverse."""

    to_sections: np.ndarray  # [n, n]
    from_sections: np.ndarray  # [n, n]


def contraction(sections) -> tuple[LinearSystem, Coordinates]:
    """Computes a system in which no step increases the norm of the state, in float64.

    With ``P = A P A^T + Q`` and ``P = T T^T``, the norm of ``T^-1 A T`` is at most 1,
    so rounding errors of the state do not grow. ``Q`` is ``B B^T`` and a little of the
    identity, for states that no input reaches (Mullis and Roberts 1976).
    """
    (a, b, c, d), section = _coupled(sections)
    noise = np.outer(b, b)
    noise += (FLOOR * np.trace(noise) or 1.0) * np.eye(len(b))
    # Every doubling adds as many terms of sum A^k Q A^kT as there are already.
    total, power, more = noise, a, noise
    while np.abs(more).max() > np.finfo(float).eps * np.abs(total).max():
        more = power @ total @ power.T
        total, power = total + more, power @ power
    root = np.linalg.cholesky(total)
    back = np.linalg.inv(root)
    linear = LinearSystem(back @ a @ root, back @ b, c @ root, d)
    onto, inverse = section.to_sections @ root, back @ section.from_sections
    return linear, Coordinates(onto, inverse)


def _coupled(sections) -> tuple[LinearSystem, Coordinates]:
    """Computes the system in coordinates in which each section is well scaled.

    A section with poles ``c +- sqrt(e)`` has the states ``z_1 = s_1`` and ``z_2`` with
    ``z_1' = c z_1 + g z_2`` and ``z_2' = e / g z_1 + c z_2``, so ``s_2 = g z_2 - c
    z_1``.
    """
    n = 2 * len(sections)
    state, value = np.eye(n, n + 1), np.eye(n + 1)[n]
    following, onto, back = np.zeros_like(state), np.eye(n), np.eye(n)
    for i, (b0, b1, b2, _, a1, a2) in enumerate(sections):
        c = -a1 / 2
        e = c * c - a2
        g = max(math.sqrt(abs(e)), 1 - abs(c))
        first, second = 2 * i, 2 * i + 1
        onto[second, first:][:2] = -c, g
        back[second, first:][:2] = c / g, 1 / g
        direct = b1 - a1 * b0, b2 - a2 * b0
        following[first] = c * state[first] + g * state[second] + direct[0] * value
        onward = (direct[1] + c * direct[0]) / g
        following[second] = e / g * state[first] + c * state[second] + onward * value
        value = b0 * value + state[first]
    linear = LinearSystem(following[:, :n], following[:, n], value[:n], value[n])
    return linear, Coordinates(onto, back)


def steady(sections):
    """Returns ``float64[sections, 2]``, the steady state for a constant input of 1."""
    rows, value = [], 1.0
    for b0, b1, b2, _, a1, a2 in sections:
        y = value * (b0 + b1 + b2) / (1 + a1 + a2)
        second = b2 * value - a2 * y
        rows.append([b1 * value - a1 * y + second, second])
        value = y
    return np.array(rows)


def apply(sections, x, state=None):
    """Filters ``x [..., channels, time]`` and updates ``state [..., channels, n]``."""
    linear, coordinates = contraction(sections)
    rest = steady(sections).ravel()
    origin = x[..., :1]
    steady_state = _product(origin, rest[:, None])
    if state is None:
        start = _product(origin, -coordinates.from_sections @ rest[:, None])
    else:
        start = _product(state - steady_state, coordinates.from_sections)
    y, end = _deviations(linear, x - origin, start)
    y = y + origin * np.asarray(gain(sections), x.dtype)
    return y, steady_state + _product(end, coordinates.to_sections)


def apply_from_steady(sections, x):
    """Filters ``x [..., channels, time]`` from the steady state of its first sample."""
    linear, _ = contraction(sections)
    origin = x[..., :1]
    start = _product(origin - origin, np.zeros((len(linear.b), 1)))
    y, _ = _deviations(linear, x - origin, start)
    return y + origin * np.asarray(gain(sections), x.dtype)


def gain(sections) -> float:
    """Returns the gain at frequency 0."""
    b, a = sections[:, :3].sum(axis=1), sections[:, 3:].sum(axis=1)
    return float(np.prod(b / a))


def _deviations(linear, x, state):
    time = x.shape[-1]
    size = max(min(BLOCK, time), 1)
    whole = time - time % size
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
