"""Random draws of a model from the operating system's entropy.

Nothing is kept between calls, so a forked process repeats nothing.
"""

import math
import os
from collections.abc import Callable, Mapping

import numpy as np


def _bits(count):
    """Returns ``uint64[count]``, uniform."""
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def below(bounds) -> np.ndarray:
    """Draws integers exactly uniform in [0, bound), by rejection.

    Args:
      bounds: ``uint64[N]``, each > 0.

    Returns:
      ``uint64[N]``.

    Example:
      >>> below(np.ones(3, np.uint64))
      array([0, 0, 0], dtype=uint64)
    """
    bounds = np.asarray(bounds, np.uint64)
    # 2^64 mod bound: rejecting the smallest values makes all residues equally likely.
    surplus = (np.uint64(2**64 - 1) - bounds + np.uint64(1)) % bounds
    drawn = _bits(len(bounds)).copy()
    while (again := np.flatnonzero(drawn < surplus)).size:
        drawn[again] = _bits(again.size)
    return drawn % bounds


def integers(shape, low: int, high: int) -> np.ndarray:
    """Draws ``int32[shape]``, exactly uniform in [low, high).

    Example:
      >>> integers((2,), 3, 4)
      array([3, 3], dtype=int32)
    """
    count = math.prod(shape)
    drawn = below(np.full(count, high - low, np.uint64)).astype(np.int64) + low
    return drawn.astype(np.int32).reshape(shape)


def uniform(shape) -> np.ndarray:
    """Draws ``float32[shape]``, uniform on the multiples of 2^-24 in [0, 1).

    Example:
      >>> bool(uniform((4,)).max() < 1)
      True
    """
    drawn = _bits(math.prod(shape)) >> np.uint64(40)
    return (drawn.astype(np.float32) * np.float32(2**-24)).reshape(shape)


def _open_uniform(count):
    """Draws ``float64[count]`` in (0, 1), on odd multiples of 2^-53."""
    return ((_bits(count) >> np.uint64(12)).astype(np.float64) + 0.5) * 2**-52


def normal(shape) -> np.ndarray:
    """Draws ``float32[shape]``, standard normal, by Box-Muller in float64.

    Example:
      >>> normal((1, 25)).shape
      (1, 25)
    """
    count = math.prod(shape)
    pairs = -(-count // 2)
    radius = np.sqrt(-2 * np.log(_open_uniform(pairs)))
    angle = 2 * math.pi * _open_uniform(pairs)
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return both[:count].astype(np.float32).reshape(shape)


def gumbel(shape) -> np.ndarray:
    """Draws ``float32[shape]``, standard Gumbel.

    Example:
      >>> gumbel((1, 7)).dtype
      dtype('float32')
    """
    drawn = -np.log(-np.log(_open_uniform(math.prod(shape))))
    return drawn.astype(np.float32).reshape(shape)


def _heads(numerators, denominators):
    """Draws ``bool[N]``, true with probability exp(-numerator / denominator), exactly.

    Fractions are in [0, 1]. The number of consecutive successes of Bernoulli(fraction /
    k), k = 1, 2, ..., is even with that probability.
    """
    even = np.ones(len(numerators), bool)
    going, k = np.arange(len(numerators)), 1
    while going.size:
        drawn = below(denominators[going] * np.uint64(k))
        going = going[drawn < numerators[going]]
        even[going] ^= True
        k += 1
    return even


def _geometric(count):
    """Draws ``uint64[count]``, successes of Bernoulli(1 / e) before a failure."""
    total = np.zeros(count, np.uint64)
    going = np.arange(count)
    while going.size:
        one = np.ones(going.size, np.uint64)
        going = going[_heads(one, one)]
        total[going] += np.uint64(1)
    return total


def discrete_laplace(shape, scale: int) -> np.ndarray:
    """Draws integers k with probability proportional to exp(-abs(k) / scale), exactly.

    Uses only uniform integers and no floats. Values outside int32 are clipped, which as
    postprocessing does not affect privacy.

    Args:
      shape: shape of the result.
      scale: integer in [1, 2^31).

    Returns:
      ``int32[shape]``.

    Example:
      >>> discrete_laplace((1, 8), 1234).shape
      (1, 8)

    References:
      Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy,
      NeurIPS 2020, algorithm 2.
    """
    count = math.prod(shape)
    drawn = np.zeros(count, np.int64)
    missing = np.arange(count)
    while missing.size:
        bounds = np.full(missing.size, scale, np.uint64)
        offset = below(bounds)
        taken = _heads(offset, bounds)
        missing_now, offset = missing[taken], offset[taken]
        size = offset + np.uint64(scale) * _geometric(offset.size)
        minus = (_bits(offset.size) >> np.uint64(63)).astype(bool)
        real = ~(minus & (size == 0))  # Otherwise 0 would be twice as likely.
        limit = np.uint64(2**31 - 1)
        signed = np.minimum(size, limit).astype(np.int64) * np.where(minus, -1, 1)
        drawn[missing_now[real]] = signed[real]
        missing = np.concatenate([missing[~taken], missing_now[~real]])
    return drawn.astype(np.int32).reshape(shape)


# Law: function, parameters in addition to the shape, and type in ONNX Runtime.
LAWS: dict[str, tuple[Callable, tuple[str, ...], str]] = {
    "integers": (integers, ("low", "high"), "tensor(int32)"),
    "normal": (normal, (), "tensor(float)"),
    "uniform": (uniform, (), "tensor(float)"),
    "gumbel": (gumbel, (), "tensor(float)"),
    "discrete laplace": (discrete_laplace, ("scale",), "tensor(int32)"),
}


def checked(draw: Mapping) -> dict:
    """Returns a model file's description of a draw after checking it.

    Args:
      draw: ``name``, ``law``, ``shape`` and the law's parameters.

    Raises:
      ValueError: if the law is unknown, or a parameter is missing or out of range.

    Example:
      >>> checked({"name": "a", "law": "uniform", "shape": [1, 2]})["law"]
      'uniform'
    """
    if not isinstance(draw, Mapping) or not isinstance(draw.get("name"), str):
        raise ValueError(f"a draw must have a name, got {draw!r}; export it again.")
    name, law = draw["name"], draw.get("law")
    if not isinstance(law, str) or law not in LAWS:
        raise ValueError(
            f"law of draw {name!r} must be one of {sorted(LAWS)}, got {law!r}; run pip "
            "install --upgrade jaxanon."
        )
    parameters = LAWS[law][1]
    shape, values = draw.get("shape"), [draw.get(key) for key in parameters]
    sizes = shape if isinstance(shape, list) else [None]
    if any(isinstance(v, bool) or not isinstance(v, int) for v in [*sizes, *values]):
        wanted = ", ".join(("shape", *parameters))
        raise ValueError(
            f"draw {name!r} must have integers {wanted}, got {dict(draw)!r}; export "
            "the model again."
        )
    low, high, scale = (draw.get(key, 0) for key in ("low", "high", "scale"))
    fits = law != "integers" or -(2**31) <= low < high <= 2**31
    fits = fits and (law != "discrete laplace" or 0 < scale < 2**31)
    if min(sizes, default=1) < 0 or not fits:
        raise ValueError(
            f"draw {name!r} must have a shape >= 0, low < high and scale > 0 within "
            f"int32, got {dict(draw)!r}; export the model again."
        )
    return dict(draw)


def draw(described: Mapping) -> np.ndarray:
    """Draws as described by the result of ``checked``.

    Example:
      >>> draw({"name": "a", "law": "integers", "shape": [1], "low": 5, "high": 6})
      array([5], dtype=int32)
    """
    function, parameters, _ = LAWS[described["law"]]
    return function(described["shape"], *(described[key] for key in parameters))
