"""PrivUnit: ε-private release of a vector with bounded L2 norm."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import (
    as_array,
    known,
    not_traced,
    positive,
    typed_key,
    whole,
)
from jaxanon.kernels.precision import wide, widened

HEIGHTS = 4096  # Candidate heights of the cap.
STEEP = 500.0  # Maximum decrease of a log density within one integration interval.
FAR = 2.0**50  # Radii whose squares float32 can still sum.


class Cap(NamedTuple):
    """Parameters of PrivUnit for a dimension and an ε."""

    height: float  # γ: directions v with <v, u> >= γ form the cap around u
    fraction: float  # fraction of the sphere covered by the cap
    probability: float  # probability of sending a direction in the cap
    mean: float  # E<v, u>; v / mean is an unbiased estimate of u


def priv_unit(key, x, radius, epsilon: float):
    """Releases an unbiased ε-private estimate of a vector in a ball (PrivUnit).

    The vector is clipped to ``radius`` and extended by one coordinate to a unit vector
    u. A direction v is drawn uniformly from a cap around u with probability p,
    otherwise from the rest of the sphere. The result is ``v / E<v, u>`` without the
    added coordinate. If the cap covers a fraction q of the sphere, v has density p / q
    inside and (1 - p) / (1 - q) outside, relative to a uniform direction. p makes the
    ratio of the two equal to e^ε. The cap's height minimises the variance.

    For large ε it has a smaller error than any additive noise, because the result has a
    fixed length.

    Args:
      key: typed PRNG key.
      x: ``float[n]``, n >= 1; NaN becomes 0.
      radius: public number > 0 or ``float[]``.
      epsilon: finite Python number > 0; static.

    Returns:
      ``float[n]`` in the dtype of ``x`` (float32 for integers), computed in at least
      float32.

    Raises:
      TypeError: for a legacy key or a traced ``epsilon``.
      ValueError: if ``x`` is not a vector, or ``radius`` or ``epsilon`` is not > 0.
        Also if ``epsilon`` is so large that p rounds to 1 in the precision of the draw:
        directions outside the cap would never be sent, and no ε would hold.

    Example:
      >>> sent = priv_unit(jax.random.key(0), jnp.array([0.6, 0.0]), 1.0, 20.0)
      >>> bool(jnp.linalg.norm(sent - jnp.array([0.6, 0.0])) < 0.5)
      True

    References:
      Bhowmick, Duchi, Freudiger, Kapoor and Rogers, Protection Against Reconstruction
      and Its Applications in Private Federated Learning, 2018, section 4.1; Asi,
      Feldman and Talwar, Optimal Algorithms for Mean Estimation under Local
      Differential Privacy, ICML 2022, for the choice of p and the height.
    """
    typed_key(key)
    positive(radius=radius)
    x = as_array("x", x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        x = x.astype(jnp.float32)  # The estimate is not an integer.
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"x must be float[n] with n >= 1, got shape {x.shape}.")
    spare = max(1, 3 - x.size)  # In two dimensions the density is not log-concave.
    cap = priv_unit_cap(x.size + spare, epsilon, dtype=wide(x.dtype))
    inside = jnp.where(jnp.isnan(x), 0, widened(x)) / radius
    inside = jnp.clip(inside, -FAR, FAR)  # Infinity would lose the direction.
    inside = inside / jnp.maximum(jnp.linalg.norm(inside), 1)
    left = jnp.sqrt(jnp.maximum(1 - jnp.sum(inside**2), 0))
    rest = jnp.zeros(spare - 1, inside.dtype)
    unit = jnp.concatenate([inside, left[None], rest])
    sent = _lean(key, unit, cap) / cap.mean
    return (sent[: x.size] * radius).astype(x.dtype)


def priv_unit_cap(size: int, epsilon: float, *, dtype=None) -> Cap:
    """Returns the cap of minimum variance for unit vectors of ``size`` numbers.

    Args:
      size: dimension, at least 3.
      epsilon: finite Python number > 0.
      dtype: dtype of the random number that chooses between the cap and the rest, such
        as ``jnp.float32``. None skips the check of the probability.

    Returns:
      ``Cap``. The expected squared distance to u is ``1 / mean**2 - 1``.

    Raises:
      TypeError: if ``epsilon`` is traced.
      ValueError: if ``epsilon`` is not > 0 and finite, or the probability of the cap
        rounds to 1 in ``dtype``.

    Example:
      >>> cap = priv_unit_cap(8, 5.0)
      >>> odds = cap.probability / (1 - cap.probability)
      >>> round(odds * (1 - cap.fraction) / cap.fraction, 6) == round(math.exp(5.0), 6)
      True
    """
    not_traced("epsilon", epsilon)
    number = known(epsilon)
    if number is None or not 0 < number < math.inf:
        raise ValueError(f"epsilon must be a finite number > 0, got {epsilon!r}.")
    cap = _cap(whole("size", size, least=3), float(number))
    if dtype is not None and cap.probability > 1 - jnp.finfo(dtype).eps:
        raise ValueError(
            "epsilon must give the cap a probability below 1, got "
            f"{number:g}, for which the probability for {size} numbers rounds to 1 in "
            f"{jnp.dtype(dtype).name}; use a smaller epsilon."
        )
    return cap


@functools.lru_cache(maxsize=64)
def _cap(size, epsilon):
    # In logarithms, because caps of large spheres underflow.
    log_fractions, heights = _log_fractions(size)
    fractions = np.exp(log_fractions)
    # The integral of <v, u> over the cap; over the rest it has the opposite sign.
    log_lean = _log_peak(size) + (size - 1) / 2 * np.log1p(-(heights**2))
    # Log of 1 - q + e^ε q, the normaliser of densities 1 outside and e^ε inside.
    log_all = np.logaddexp(np.log1p(-fractions), epsilon + log_fractions)
    probability = np.exp(epsilon + log_fractions - log_all)
    mean = np.exp(log_lean + epsilon - log_all) * -math.expm1(-epsilon)
    best = int(np.argmax(mean))
    candidates = heights, fractions, probability, mean
    return Cap(*(float(values[best]) for values in candidates))


def _log_fractions(size):
    """Returns log fractions of the sphere (up to 1/2) and heights of candidate caps.

    A uniform direction has ``<v, u> = sin θ`` with density cos(θ)^(size - 2) and
    standard deviation of about ``size**-0.5``, which determines the spacing of heights.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    scale = size**-0.5
    steps = np.linspace(math.asinh(math.pi / 2 / scale), 0, HEIGHTS + 1)
    ends = np.minimum(scale * np.sinh(steps), math.pi / 2)
    widths = ends[:-1] - ends[1:]
    angles = ends[1:, None] + widths[:, None] * (nodes + 1) / 2
    logs = (size - 2) * np.log(np.cos(angles)) + np.log(weights)
    parts = np.logaddexp.reduce(logs, axis=1) + np.log(widths)
    shares = np.logaddexp.accumulate(parts)
    # Near the pole of a large sphere the density decreases too much within an interval.
    # Inexact intervals are dropped, with enough others to make their mass negligible.
    falls = (size - 2) * np.diff(np.log(np.cos(ends)))
    falls[0] = size - 2  # The density falls to zero, as a power.
    exact = int(np.argmax(falls <= STEEP))
    least = np.searchsorted(shares, shares[exact] + 25) if exact else 0
    logs = shares - shares[-1] - math.log(2)
    return logs[least:], np.sin(ends[1:])[least:]


def _log_peak(size):
    """Returns the log of the integral of <v, u> over half of the unit-mass sphere."""
    gamma = math.lgamma(size / 2) - math.lgamma((size - 1) / 2)
    return gamma - 0.5 * math.log(math.pi) - math.log(size - 1)


def _lean(key, unit, cap):
    """Draws a direction from the cap around ``unit`` or from the rest of the sphere."""
    choice_key, cap_key, rest_key, turn_key = jax.random.split(key, 4)
    dtype = wide(unit.dtype)
    # Uniform numbers are multiples of eps. Rounding p down to a multiple keeps the
    # rest of the sphere at least as likely as ε requires.
    eps = float(jnp.finfo(dtype).eps)
    probability = math.floor(cap.probability / eps) * eps
    within = jax.random.uniform(choice_key, (), dtype) < probability
    height = jnp.where(
        within,
        _until(_in_cap(unit.size, cap.height), cap_key, dtype),
        _until(_in_rest(unit.shape, cap.height), rest_key, dtype),
    )
    z = jax.random.normal(turn_key, unit.shape, dtype)
    across = z - (z @ unit) * unit
    across = across / jnp.linalg.norm(across)
    return height * unit + jnp.sqrt(1 - height**2) * across


def _until(draw, key, dtype):
    """Returns the first accepted height; ``draw(key, dtype) -> (height, accepted)``."""

    def again(carry):
        key, _, _ = carry
        key, now = jax.random.split(key)
        return key, *draw(now, dtype)

    start = key, jnp.zeros((), dtype), jnp.bool_(False)
    return jax.lax.while_loop(lambda carry: ~carry[2], again, start)[1]


def _in_cap(size, least):
    """Returns a rejection sampler of ``∝ (1 - t²)^((size - 3) / 2)`` for t >= least.

    The density is log-concave, so its exponential tangent at ``least`` is an envelope.
    """
    power = (size - 3) / 2
    slope = 2 * power * least / (1 - least**2)

    def draw(key, dtype):
        first, second = jax.random.uniform(key, (2,), dtype)
        above = first * (1 - least)
        if slope > 1e-6:  # Otherwise the density is flat.
            above = -jnp.log1p(first * math.expm1(-slope * (1 - least))) / slope
        above = jnp.minimum(above, 1 - least)
        # 1 minus (1 - t²) / (1 - least²), a ratio near 1 in high dimensions.
        lost = above * (2 * least + above) / (1 - least**2)
        ratio = power * jnp.log1p(-lost) + slope * above
        return least + above, jnp.log(second) < ratio

    return draw


def _in_rest(shape, most):
    """Returns a rejection sampler of heights below ``most`` on the sphere."""

    def draw(key, dtype):
        z = jax.random.normal(key, shape, dtype)
        height = z[0] / jnp.linalg.norm(z)
        return height, height < most

    return draw
