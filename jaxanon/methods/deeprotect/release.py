"""DEEProtect's release: features with noise scaled to their sensitivity."""

import functools
import math
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.core.method import Release
from jaxanon.kernels import portable
from jaxanon.methods.deeprotect.config import outside
from jaxanon.models import deeprotect, feature_extraction

ANY = "any two windows"
IDEALISED = "Idealised arithmetic, no guarantee in floating point"  # Mechanism "span".
TOLERANCE = 1e-4  # Orthonormality residual above which nothing is released.

ROUNDING = 1e-5  # Relative error of clipping to a radius in float32.

# Maximum size of a callback argument. JAX 0.10 copies arguments above 100 kB in
# another XLA thread. With one core there is only one such thread, and it deadlocks.
PART = 8192


class NeighborDistance(NamedTuple):
    """Maximum distance between neighbouring windows, clipped and scaled to [0, 1]."""

    l2: Any  # float, or float32[]
    per_input: Any  # same type; mean over the inputs, the paper's ΔQ


def of_release(spec, config) -> Release:
    """Returns the guarantee of DEEProtect's releases, by mechanism and mode."""
    after = "; on paper: only mechanism grid accounts for floating point"
    return Release(
        None if config.mechanism == "none" else config.epsilon,
        lambda state: _neighbours(spec, config, state.params),
        lambda windows: _clipped(config, windows),
        before=f"{IDEALISED}: " if config.mechanism == "span" else "",
        after="" if config.mechanism in ("grid", "span") else after,
    )


def _neighbours(spec, config, params) -> str:
    """Describes the neighbouring windows; checks that the weights are orthonormal.

    In mode "named" the text ends in a checksum of the directions, so that two runs do
    not share a budget by mistake.
    """
    layers = [params[name] for name in sorted(params) if name.startswith("layer")]
    residual = max(
        float(kernels.orthonormality_residual(layer.kernel)) for layer in layers
    )
    if not residual <= TOLERANCE:
        raise ValueError(
            f"the weights' orthonormality residual must be at most {TOLERANCE:g}, "
            f"got {residual:.1e}; retrain the run."
        )
    if config.mode == "everything":
        return ANY
    directions = np.asarray(params["named"].directions)
    if not np.any(directions):
        raise ValueError(
            "mode 'named' needs directions that predict the private attributes, got "
            "none; train for at least one epoch."
        )
    checksum = zlib.crc32(directions.tobytes())
    hidden = ", ".join(spec.private)
    return f"windows that differ only in predictors of {hidden} ({checksum:08x})"


def _clipped(config, windows) -> str:
    """Describes the clipping to the public range, as a sentence without a full stop."""
    num_values, num_windows = outside(config, windows)
    bounds = f"the public range {config.low} to {config.high}"
    if not num_windows:
        return f"All values were in {bounds}"
    text = f"{num_values} values in {num_windows} windows were clipped to {bounds}"
    if config.mode == "named":
        text += "; the guarantee applies to clipped windows"
    return text


def anything(inputs: int) -> NeighborDistance:
    """Returns the distance between any two windows with ``inputs`` values.

    Example:
      >>> anything(16)
      NeighborDistance(l2=4.0, per_input=1.0)
    """
    return NeighborDistance(math.sqrt(inputs), 1.0)


def along(
    directions, due=True, old: NeighborDistance | None = None
) -> NeighborDistance:
    """Bounds the distance of in-range windows that differ in a span of directions.

    The bound comes from a search over the edges of a polytope, on the host. With too
    many edges, for example for two dozen classes, the function returns the bound for
    any two windows, which always holds.

    Args:
      directions: ``float32[r, inputs]``, may be traced.
      due: ``bool[]``; if False, the search is skipped and ``old`` returned.
      old: result if ``due`` is False.

    Returns:
      ``NeighborDistance`` of ``float32[]``.

    Example:
      Windows that differ along a diagonal of a square reach from corner to corner.

      >>> along(jnp.array([[1.0, -1.0]]))
      NeighborDistance(l2=Array(1.4142135, dtype=float32), per_input=Array(1...))
    """
    old = anything(directions.shape[1]) if old is None else old
    result = jax.ShapeDtypeStruct((2,), jnp.float32)
    values = jnp.ravel(directions)
    parts = jnp.split(values, np.arange(PART, values.size, PART))
    inputs = directions.shape[1]
    distance = jax.pure_callback(
        _along, result, due, old, inputs, parts, vmap_method="sequential"
    )
    return NeighborDistance(*distance)


def _along(due, old, inputs, parts):
    if not due:
        return np.array(old, np.float32)
    parts = [np.asarray(part, np.float64) for part in parts]
    directions = np.concatenate(parts).reshape(-1, int(inputs))
    try:
        distance = kernels.relaxed_span_sensitivity(directions, 1.0)
        return np.array([distance.l2, distance.per_input], np.float32)
    except ValueError:  # Too many edges, or a direction that is not finite.
        return np.array(anything(int(inputs)), np.float32)


def bring_in(away, radius):
    """Clips rows to an L2 norm of ``radius``; never increases an L2 distance.

    Args:
      away: ``float[batch, features]``, offsets from the reference features.
      radius: a number > 0; None changes nothing.

    Example:
      >>> bring_in(jnp.array([[3.0, 4.0], [0.3, 0.0]]), 1.0)
      Array([[0.6, 0.8],
             [0.3, 0. ]], dtype=float32)
    """
    if radius is None:
        return away
    length = jnp.linalg.norm(away, axis=1, keepdims=True)
    return away * jnp.minimum(1, radius / jnp.maximum(length, 1e-30))


def release(
    key,
    config,
    layers,
    windows,
    reference,
    apart: NeighborDistance,
    directions: Any = None,
):
    """Returns noisy features of windows.

    Why ε holds: ``sensitivities`` bounds the distance between the features of two
    neighbours, with or without a radius, because clipping to the radius never increases
    an L2 distance. The densities of the mechanism differ by at most e^ε over that
    distance. With mechanism "span", features of neighbours differ by a vector of the
    span. The component across the span is equal for both and needs no noise. The
    component in the span has fewer dimensions and gets the noise. Reconstruction uses
    only released features.

    Args:
      key: typed PRNG key; each window gets independent noise.
      config: ``DEEProtectConfig``.
      layers: layers of ``models.deeprotect``.
      windows: ``float32[batch, inputs]`` in [0, 1].
      reference: ``float32[1, inputs]``, a public window near most others, such as the
        mean of the training windows. If ``config`` has a radius, it limits the distance
        of features from those of this window.
      apart: maximum distance between neighbouring windows.
      directions: ``float32[r, inputs]``, along which neighbours differ in mode "named".

    Returns:
      ``float32[batch, features]``. All NaN if the rows of the layers are not
      orthonormal, or mode "named" has no directions yet, because the sensitivity would
      be wrong.
    """
    if config.radius is None:  # All windows are within √inputs / 2 of this one.
        reference = jnp.full_like(reference, 0.5)
    centre = deeprotect.encode(layers, reference, config.curve)
    offset = deeprotect.encode(layers, windows, config.curve) - centre
    valid = jnp.array(True)
    for layer in layers:
        valid &= kernels.orthonormality_residual(layer.kernel) <= TOLERANCE
    if config.mode == "named":
        valid &= jnp.any(directions != 0)
    bounds = sensitivities(config, len(layers), windows.shape[1], apart)
    if config.mechanism == "span":
        for layer in layers:
            directions = jnp.matmul(directions, layer.kernel.T, precision="highest")
        span = jnp.linalg.qr(directions.T)[0]  # Columns span neighbours' differences.
        product = functools.partial(jnp.matmul, precision="highest")
        inside = product(offset, span)
        noise = _clip_and_add_noise(key, inside, bounds, config) - inside
        noisy = offset + product(noise, span.T)
    else:
        noisy = _clip_and_add_noise(key, offset, bounds, config)
    return jnp.where(valid, centre + noisy, jnp.nan)


def _clip_and_add_noise(key, offset, bounds, config):
    offset = bring_in(offset, config.radius)
    add = lambda key, x: _add_noise(key, x, bounds, config)
    return portable.vmap(add, key, offset)


def sensitivities(
    config, num_layers: int, inputs: int, apart: NeighborDistance
) -> dict:
    """Bounds the distance between neighbours' features; keys ``l1``, ``l2``, ``linf``.

    Contains only the norms for which a bound is known. Orthonormal rows do not stretch.
    The slope of the logistic curve is at most 1/4, and its values lie in (0, 1).

    Example:
      >>> from jaxanon.methods.deeprotect.config import DEEProtectConfig
      >>> config = DEEProtectConfig(curve="sigmoid", radius=None)
      >>> bounds = sensitivities(config, 2, 30, anything(30))
      >>> round(bounds["l2"], 3), round(bounds["l1"], 3)
      (0.342, 0.906)
    """
    features = config.hidden_sizes[-1]
    width = apart.per_input
    if config.sensitivity == "published" and config.features == "window":
        return {"l1": inputs * width}  # The paper's baseline.
    if config.sensitivity == "published":
        return {"l1": kernels.deeprotect_feature_sensitivity(features, inputs, width)}
    sigmoid = config.curve == "sigmoid"
    gain = (1 + TOLERANCE) ** (num_layers / 2)
    l2 = gain * apart.l2 / (4.0**num_layers if sigmoid else 1)
    minimum = min if isinstance(l2, float) else jnp.minimum
    if config.radius is not None:
        l2 = minimum(l2, 2 * config.radius * (1 + ROUNDING))
    l1 = math.sqrt(features) * l2
    if config.features == "window" and config.radius is None:
        l1 = minimum(l1, inputs * width)  # Clipping to a radius may increase L1.
    if not sigmoid:
        return {"l1": l1, "l2": l2}
    return {"l1": minimum(l1, float(features)), "l2": l2, "linf": minimum(l2, 1.0)}


def _add_noise(key, x, bounds, config):
    """Adds noise to one window's offset from the reference."""
    mechanism = config.mechanism
    if mechanism == "none":
        return x
    if mechanism == "span":
        mechanism = "l2" if config.radius is None else "privunit"
    if mechanism == "privunit":
        half = bounds["l2"] / 2 if config.radius is None else config.radius
        return kernels.priv_unit(key, x, half, config.epsilon)
    bounded = kernels.bounded_value(x, **bounds)
    if mechanism == "laplace":
        return kernels.laplace_mechanism(key, bounded, config.epsilon)
    if mechanism == "grid":
        # An offset from the reference is at most the distance of two windows.
        max_magnitude = bounds.get("linf", bounds.get("l2"))
        return kernels.grid_laplace_mechanism(
            key, bounded, config.epsilon, max_magnitude=max_magnitude
        )
    return kernels.norm_mechanism(key, bounded, config.epsilon, norm=mechanism)


class Named(NamedTuple):
    """Directions that predict the private attributes linearly."""

    directions: jax.Array  # float32[r, inputs]
    apart: NeighborDistance  # float32[] each; distance of windows that differ in them


def empty(spec, inputs: int) -> Named:
    """Returns the state before training; mode "named" releases NaN with it.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      inputs: number of values in a window.
    """
    rank = sum(spec.num_classes(name) - 1 for name in spec.private)
    return Named(
        jnp.zeros((rank, inputs)), NeighborDistance(*map(jnp.float32, anything(inputs)))
    )


def due(number, rounds: int):
    """Returns whether directions are learned after this round: 1, 2, 4, 8, ... epochs.

    This schedule uses at least half of all batches and runs the polytope search, which
    can take seconds, only a few times.

    Args:
      number: number of rounds so far, ``int32[]`` or a Python int, > 0.
      rounds: number of rounds per epoch.

    Example:
      >>> [epoch for epoch in range(1, 20) if due(10 * epoch, 10)]
      [1, 2, 4, 8, 16]
      >>> bool(due(11, 10))
      False
    """
    epoch = number // rounds
    return (number % rounds == 0) & (epoch & (epoch - 1) == 0)


def learn(
    spec, config, moments: feature_extraction.Moments, penalty, old: Named, now
) -> Named:
    """Learns the directions by which linear classifiers predict the private attributes.

    An attribute of C classes has C - 1 directions: the differences of each class's
    weights from the first class's. The prediction depends only on these differences.

    Args:
      spec: spec of the method.
      config: config of the method.
      moments: moments of windows in [0, 1].
      penalty: penalty of the ridge regression.
      old: result of the previous call.
      now: ``bool[]``; if False, returns ``old``.
    """

    def learned():
        rows = [
            feature_extraction.ridge(moments, name, penalty) for name in spec.private
        ]
        directions = jnp.concatenate([each[1:] - each[:1] for each in rows])
        if config.mode == "everything":  # The distance holds for any directions.
            return old._replace(directions=directions)
        return Named(directions, along(directions, now, old.apart))

    return jax.lax.cond(now, learned, lambda: old)


def apart(config, named: Named) -> NeighborDistance:
    """Returns the maximum distance between neighbouring windows in the method's mode.

    Args:
      config: ``DEEProtectConfig``.
      named: directions in the method's state.
    """
    if config.mode == "everything":
        return anything(named.directions.shape[1])
    return named.apart
