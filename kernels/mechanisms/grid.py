"""Discrete Laplace noise on a grid, safe against floating-point attacks."""

import decimal
import fractions
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels import portable
from jaxanon.kernels.checks import (
    as_shape,
    not_negative,
    positive,
    typed_key,
    whole,
)
from jaxanon.kernels.mechanisms import checks
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import wide, widened

TAIL = 32  # Noise scales that fit beyond the clamp: e^-32 is 1e-14.
MAX_SCALE = 1 << 24  # Larger noise does not fit into 30 binary digits.


class LaplaceGrid(NamedTuple):
    """The grid of a release; it is public and depends on public numbers only."""

    step: float  # a power of two
    scale: int  # scale of the discrete Laplace noise, in steps
    clamp: int  # values are clamped to ±clamp steps
    limit: int  # results are clamped to ±limit steps


def laplace_grid(l1, epsilon, size, max_magnitude, dtype=jnp.float32) -> LaplaceGrid:
    """Chooses the finest grid on which the noisy result is exact in ``dtype``.

    A value is rounded to integer steps before the noise. Rounding can move each of its
    n numbers by up to one step relative to a neighbour. The L1 sensitivity in steps is
    therefore at most ``floor(l1 / step) + n``, and the noise has scale
    ``ceil((floor(l1 / step) + n) / epsilon)``. Rounding costs utility but not privacy.
    The step is the smallest power of two with
    ``max_magnitude + 32 (l1 + n step) / epsilon <= limit * step``. The limit is 2^24
    steps, or 2^29 for float64. It is computed with exact rational arithmetic.

    Args:
      l1: L1 sensitivity, a Python number >= 0.
      epsilon: Python number > 0.
      size: n, the number of entries of the value, a Python int >= 0.
      max_magnitude: public bound on |value|, > 0. Larger values are clamped.
      dtype: dtype of the value. Half precision counts as float32.

    Returns:
      ``LaplaceGrid``.

    Raises:
      TypeError: if a number is traced, or ``size`` is not a Python int.
      ValueError: if a number is out of range, or n / epsilon is so large (2^18 in
        float32, 2^23 in float64) that rounding would use more than half the range.

    Example:
      >>> laplace_grid(1.0, 0.5, 1, 100.0)
      LaplaceGrid(step=1.52587890625e-05, scale=131074, clamp=6553600, limit=16777216)

    References:
      Mironov, On Significance of the Least Significant Bits for Differential Privacy,
      CCS 2012; Canonne, Kamath and Steinke, The Discrete Gaussian, NeurIPS 2020.
    """
    not_negative(l1=l1)
    positive(epsilon=epsilon, max_magnitude=max_magnitude)
    size = whole("size", size, least=0)
    numbers_ = checks.static(l1=l1, epsilon=epsilon, max_magnitude=max_magnitude)
    l1, epsilon, magnitude = map(fractions.Fraction, numbers_)
    held = wide(dtype)
    limit = 1 << (24 if held.itemsize == 4 else 29)
    room = limit - TAIL * size / epsilon
    if 2 * room < limit:
        raise ValueError(
            f"epsilon must be >= {2 * TAIL * size / limit:.3g} for {size} numbers on a "
            f"grid of {limit} steps, got {float(epsilon)}; use float64, fewer numbers "
            "or a larger epsilon."
        )
    exponent = _ceil_log2((magnitude + TAIL * l1 / epsilon) / room)
    info = jnp.finfo(held)
    if not info.minexp <= exponent <= info.maxexp - 1 - limit.bit_length():
        raise ValueError(
            f"max_magnitude and l1 must give a grid step that {held} can hold, got "
            f"{float(magnitude)!r} and {float(l1)!r} with step 2^{exponent}; rescale "
            "the value."
        )
    step = fractions.Fraction(2) ** exponent
    scale = math.ceil((l1 // step + size) / epsilon)
    return LaplaceGrid(float(step), max(scale, 1), math.ceil(magnitude / step), limit)


def discrete_laplace_noise(key, shape, scale):
    """Draws integers with ``P(z) = tanh(1 / (2 scale)) exp(-|z| / scale)``.

    The binary digits of a geometric number are independent, so each digit compares 64
    random bits with a constant. All draws take the same time, without rejection or
    floating point. Digit probabilities are rounded to 2^-64, and less likely digits are
    omitted. The error of the distribution is below 2^-58 in total variation.

    Args:
      key: typed PRNG key. JAX's generators are not cryptographic.
      shape: shape of the result, a tuple of ints.
      scale: Python int in [1, 2^24].

    Returns:
      ``int32[shape]``, below 2^30 in magnitude.

    Raises:
      TypeError: for a legacy key, or a ``scale`` that is not a Python int.
      ValueError: if ``scale`` is out of range.

    Example:
      >>> discrete_laplace_noise(jax.random.key(0), (2, 3), 1024).dtype
      dtype('int32')

    References:
      Canonne, Kamath and Steinke, NeurIPS 2020, definition 27 (the distribution).
    """
    typed_key(key)
    scale = whole("scale", scale, least=1)
    shape = as_shape("shape", shape)
    if scale > MAX_SCALE:
        raise ValueError(f"scale must be in [1, {MAX_SCALE}], got {scale!r}.")
    if isinstance(key, portable.SuppliedKey):
        return key.draw("discrete laplace", shape, scale=scale)
    return _drawn(key, shape, scale)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _drawn(key, shape, scale):
    first, *digits = thresholds(scale)
    nonzero_key, sign_key, top_key, key = jax.random.split(key, 4)
    nonzero = _below(nonzero_key, first, shape)
    negative = jax.random.bits(sign_key, shape, jnp.uint32) >> 31 != 0

    def add_digit(number, place_and_threshold):
        place, threshold = place_and_threshold
        digit = _below(jax.random.fold_in(key, place), threshold, shape)
        return 2 * number + digit, None

    # The top digit starts the scan: in shard_map the carry must vary like the digits.
    number = _below(top_key, digits[0], shape).astype(jnp.int32)
    rest = jnp.asarray(np.array(digits[1:], np.uint32))
    number, _ = jax.lax.scan(add_digit, number, (jnp.arange(len(rest)), rest))
    size = jnp.where(nonzero, 1 + number, 0)
    return jnp.where(negative, -size, size)


def grid_laplace_mechanism(key, bounded: BoundedValue, epsilon, *, max_magnitude):
    """Releases a value with discrete Laplace noise on a grid.

    The value is clamped to ±max_magnitude and rounded to the grid of ``laplace_grid``.
    Integer noise is added, with the sensitivity enlarged by the rounding. Every result
    is an exactly representable multiple of the step within ±limit steps, so low-order
    bits leak nothing. The release is ε-private up to 2^-58 per number, given good
    random bits (JAX's are for simulation). Its gradient is zero.

    Args:
      key: typed PRNG key.
      bounded: value with its sensitivities. The L1 sensitivity must be a Python number,
        so create the value inside the compiled function. NaN counts as 0.
      epsilon: Python number > 0.
      max_magnitude: public bound on |value|, a Python number > 0. A tight bound gives a
        finer grid.

    Returns:
      ``float32[...]``, or ``float64[...]`` for a float64 value.

    Raises:
      TypeError: for a legacy key, or if a number is traced.
      ValueError: same conditions as ``laplace_grid``.

    Example:
      >>> from jaxanon.kernels.mechanisms import clip_to_range
      >>> bounded = clip_to_range(jnp.array([0.25, 0.5]), 0.0, 1.0)
      >>> noisy = grid_laplace_mechanism(
      ...     jax.random.key(0), bounded, 5.0, max_magnitude=1.0)
      >>> laplace_grid(bounded.l1_sensitivity, 5.0, 2, 1.0).step == 2.0**-20
      True
      >>> noisy % 2.0**-20
      Array([0., 0.], dtype=float32)

    References:
      Mironov, CCS 2012; Balcer and Vadhan, Differential Privacy on Finite Computers,
      ITCS 2018.
    """
    bounded_only(bounded=bounded)
    value = jnp.asarray(bounded.value)
    l1, size = bounded.l1_sensitivity, value.size
    grid = laplace_grid(l1, epsilon, size, max_magnitude, value.dtype)
    value = widened(value)
    steps = jnp.clip(jnp.rint(value * (1 / grid.step)), -grid.clamp, grid.clamp)
    steps = jnp.where(jnp.isnan(steps), 0, steps).astype(jnp.int32)
    steps = steps + discrete_laplace_noise(key, value.shape, grid.scale)
    steps = jnp.clip(steps, -grid.limit, grid.limit)
    return steps.astype(value.dtype) * grid.step


@functools.lru_cache(maxsize=64)
def thresholds(scale: int) -> tuple[tuple[int, int], ...]:
    """Returns 2^64 P(Z != 0), then 2^64 times each digit's probability, as word pairs.

    Z != 0 has probability 2 / (1 + e^(1/scale)). Then |Z| - 1 is geometric with ratio
    e^(-1/scale); its digit of weight w is 1 with probability 1 / (1 + e^(w/scale)).
    Digits start with the largest weight.
    """
    with decimal.localcontext(decimal.Context(prec=60)):
        one = decimal.Decimal(1)
        odds = lambda weight: one / (1 + (decimal.Decimal(weight) / scale).exp())
        found = [2 * odds(1)]
        weights = [1 << place for place in range(64)]
        likely = [w for w in weights if w < 45 * scale and odds(w) * 2**64 >= 1]
        found += [odds(weight) for weight in reversed(likely)]
        whole = [int(probability * 2**64) for probability in found]
    return tuple((word >> 32, word & 0xFFFFFFFF) for word in whole)


def _below(key, threshold, shape):
    """Draws True with the probability of a threshold of two words."""
    high, low = (jnp.asarray(word, jnp.uint32) for word in threshold)
    drawn = jax.random.bits(key, (2, *shape), jnp.uint32)
    return (drawn[0] < high) | ((drawn[0] == high) & (drawn[1] < low))


def _ceil_log2(ratio: fractions.Fraction) -> int:
    """Returns the smallest e with 2^e >= ratio > 0."""
    e = ratio.numerator.bit_length() - ratio.denominator.bit_length() - 1
    while fractions.Fraction(2) ** e < ratio:
        e += 1
    return e
