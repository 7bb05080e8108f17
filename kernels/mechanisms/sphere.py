"""PrivUnit: a vector of bounded length, sent as a direction that leans towards it."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import known, not_traced, positive, typed_key, whole
from jaxanon.kernels.precision import wide, widened

HEIGHTS = 4096  # Candidates for the height of the cap.
STEEP = 500.0  # How far, in logs, a density may fall within a part of an integral.
FAR = 2.0**50  # radii, whose squares float32 can still add up


class Cap(NamedTuple):
    """What PrivUnit sends, for unit vectors of so many numbers and an ε."""

    height: float  # γ: directions v with <v, u> >= γ are the cap around u
    share: float  # of the sphere that the cap is
    probability: float  # of sending a direction in it
    mean: float  # E<v, u>; what is sent is v / mean, which is u on average


def priv_unit(key, x, radius, epsilon: float):
    """An unbiased ε-private estimate of a vector within a ball: PrivUnit.

    A vector longer than ``radius`` is shortened to it. It then becomes a unit vector u
    of one number more, which says how much of the radius is left; a direction v is
    drawn uniformly from a cap around u with a probability p, else from the rest of the
    sphere, and sent as ``v / E<v, u>`` less the number that was added. Between any two
    vectors the density of a v differs by at most the factor between the inside of a
    cap, p over its share q, and the outside, 1 - p over 1 - q; p makes that e^ε
    exactly. The cap's height is the one of least variance.

    For some ε and above, it beats every noise that is added: what is sent has a length
    of its own, however far out the noise would have reached.

    Args:
      key: a typed PRNG key.
      x: ``float[n]``, n >= 1; NaN becomes 0.
      radius: a number > 0 or ``float[]``, public.
      epsilon: a Python number > 0, finite; static.

    Returns:
      ``float[n]`` in the dtype of ``x``, of whole numbers float32; computed in float32
      or wider.

    Raises:
      TypeError: for a legacy key, or an ``epsilon`` that is traced.
      ValueError: if ``x`` is no vector, ``radius`` or ``epsilon`` is not > 0, or
        ``epsilon`` is so large that p rounds to 1 in the precision of the draw: then
        no direction outside the cap would ever be sent, and no ε would hold.

    Example:
      >>> sent = priv_unit(jax.random.key(0), jnp.array([0.6, 0.0]), 1.0, 20.0)
      >>> bool(jnp.linalg.norm(sent - jnp.array([0.6, 0.0])) < 0.5)
      True

    References:
      Bhowmick, Duchi, Freudiger, Kapoor and Rogers, Protection Against Reconstruction
      and Its Applications in Private Federated Learning, 2018, section 4.1; Asi,
      Feldman and Talwar, Optimal Algorithms for Mean Estimation under Local
      Differential Privacy, ICML 2022, on how to choose p and the height.
    """
    typed_key(key)
    positive(radius=radius)
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        x = x.astype(jnp.float32)  # What is sent is no whole number.
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"x must be a vector of at least one number, got {x.shape}.")
    spare = max(1, 3 - x.size)  # In a plane the sampler's law would not be concave.
    cap = priv_unit_cap(x.size + spare, epsilon, dtype=wide(x.dtype))
    inside = jnp.where(jnp.isnan(x), 0, widened(x)) / radius
    inside = jnp.clip(inside, -FAR, FAR)  # Of infinity no direction would be left.
    inside = inside / jnp.maximum(jnp.linalg.norm(inside), 1)
    left = jnp.sqrt(jnp.maximum(1 - jnp.sum(inside**2), 0))
    rest = jnp.zeros(spare - 1, inside.dtype)
    unit = jnp.concatenate([inside, left[None], rest])
    sent = _lean(key, unit, cap) / cap.mean
    return (sent[: x.size] * radius).astype(x.dtype)


def priv_unit_cap(size: int, epsilon: float, *, dtype=None) -> Cap:
    """The cap of least variance for unit vectors of ``size`` numbers.

    Args:
      size: at least 3.
      epsilon: a Python number > 0, finite.
      dtype: of the random numbers that are to choose between the cap and the rest,
        such as ``jnp.float32``. None: any probability will do.

    Returns:
      ``Cap``. The expected square of the distance to u is ``1 / mean**2 - 1``.

    Raises:
      TypeError: if ``epsilon`` is traced.
      ValueError: if it is not > 0 and finite, or if with it the probability of the cap
        rounds to 1 in ``dtype``.

    Example:
      >>> cap = priv_unit_cap(8, 5.0)
      >>> odds = cap.probability / (1 - cap.probability)
      >>> round(odds * (1 - cap.share) / cap.share, 6) == round(math.exp(5.0), 6)
      True
    """
    not_traced("epsilon", epsilon)
    number = known(epsilon)
    if number is None or not 0 < number < math.inf:
        raise ValueError(f"epsilon must be a finite number > 0, got {epsilon!r}.")
    cap = _cap(whole("size", size, least=3), float(number))
    if dtype is not None and cap.probability > 1 - jnp.finfo(dtype).eps:
        raise ValueError(
            "epsilon must leave a chance to send a direction outside the cap, got "
            f"{number:g}, with which the probability of a cap around {size} numbers "
            f"rounds to 1 in {jnp.dtype(dtype).name}; take a smaller epsilon."
        )
    return cap


@functools.lru_cache(maxsize=64)
def _cap(size, epsilon):
    # In logarithms, for the caps of large spheres are smaller than any float.
    log_shares, heights = _shares(size)
    shares = np.exp(log_shares)
    # The integral of <v, u> over the cap, and, with its sign changed, over the rest.
    log_lean = _log_peak(size) + (size - 1) / 2 * np.log1p(-(heights**2))
    # Of 1 - q + e^ε q: the density is one in so many outside, and e^ε of them inside.
    log_all = np.logaddexp(np.log1p(-shares), epsilon + log_shares)
    probability = np.exp(epsilon + log_shares - log_all)
    mean = np.exp(log_lean + epsilon - log_all) * -math.expm1(-epsilon)
    best = int(np.argmax(mean))
    found = heights, shares, probability, mean
    return Cap(*(float(values[best]) for values in found))


def _shares(size):
    """Logs of the sphere's shares that caps of so many heights are; up to half of it.

    Of a uniform direction ``<v, u> = sin θ``, where θ has density cos(θ)^(size - 2) and
    a deviation of about ``size**-0.5``: heights are as far apart as that asks for.
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
    # Around the pole of a large sphere a density falls by too much from end to end of a
    # part: what is not exact is left out, and as much beside it as drowns it.
    falls = (size - 2) * np.diff(np.log(np.cos(ends)))
    falls[0] = size - 2  # From something to nothing, as a power.
    exact = int(np.argmax(falls <= STEEP))
    least = np.searchsorted(shares, shares[exact] + 25) if exact else 0
    logs = shares - shares[-1] - math.log(2)
    return logs[least:], np.sin(ends[1:])[least:]


def _log_peak(size):
    """Log of the integral of <v, u> over half a sphere, as a share of all of it."""
    gamma = math.lgamma(size / 2) - math.lgamma((size - 1) / 2)
    return gamma - 0.5 * math.log(math.pi) - math.log(size - 1)


def _lean(key, unit, cap):
    """A direction from the cap around ``unit``, or from the rest of the sphere."""
    choice_key, cap_key, rest_key, turn_key = jax.random.split(key, 4)
    dtype = wide(unit.dtype)
    # Uniform numbers are multiples of eps: rounded down to one, so that the rest of the
    # sphere is never less likely than ε asks for.
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
    """The first height that ``draw(key, dtype) -> (height, taken)`` says is taken."""

    def again(carry):
        key, _, _ = carry
        key, now = jax.random.split(key)
        return key, *draw(now, dtype)

    start = key, jnp.zeros((), dtype), jnp.bool_(False)
    return jax.lax.while_loop(lambda carry: ~carry[2], again, start)[1]


def _in_cap(size, least):
    """Heights t of density ``∝ (1 - t²)^((size - 3) / 2)`` from ``least`` on.

    Its log is concave, so the exponential law that touches it at ``least`` lies above.
    """
    power = (size - 3) / 2
    slope = 2 * power * least / (1 - least**2)

    def draw(key, dtype):
        first, second = jax.random.uniform(key, (2,), dtype)
        above = first * (1 - least)
        if slope > 1e-6:  # Else it is flat.
            above = -jnp.log1p(first * math.expm1(-slope * (1 - least))) / slope
        above = jnp.minimum(above, 1 - least)
        # Of (1 - t²) / (1 - least²), which is near 1 where there are many numbers.
        lost = above * (2 * least + above) / (1 - least**2)
        ratio = power * jnp.log1p(-lost) + slope * above
        return least + above, jnp.log(second) < ratio

    return draw


def _in_rest(shape, most):
    """Heights of directions that are uniform on the sphere, below ``most``."""

    def draw(key, dtype):
        z = jax.random.normal(key, shape, dtype)
        height = z[0] / jnp.linalg.norm(z)
        return height, height < most

    return draw
