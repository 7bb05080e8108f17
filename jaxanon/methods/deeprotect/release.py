"""DEEProtect's release: features behind noise, from a sensitivity that is carried."""

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
IDEALISED = "Idealised arithmetic, no guarantee in floating point"  # Of "span".
TOLERANCE = 1e-4  # Of rows from orthonormal ones; beyond it nothing leaves.

ROUNDING = 1e-5  # Of a radius: features are brought near in float32.

# Numbers of an argument of a callback. JAX 0.10 copies more than 100 kB in another of
# XLA's threads, of which there are as many as cores; on one core each waits for ever.
PART = 8192


class NeighborDistance(NamedTuple):
    """How far neighbouring windows are apart, clipped to numbers in [0, 1]."""

    l2: Any  # float, or float32[]
    per_input: Any  # likewise; the mean over the inputs, ΔQ of the paper


def of_release(spec, config) -> Release:
    """Returns what DEEProtect's releases guarantee, by its mechanism and mode."""
    after = "; on paper: only mechanism grid accounts for floating point"
    return Release(
        None if config.mechanism == "none" else config.epsilon,
        lambda state: _neighbours(spec, config, state.params),
        lambda windows: _clipped(config, windows),
        before=f"{IDEALISED}: " if config.mechanism == "span" else "",
        after="" if config.mechanism in ("grid", "span") else after,
    )


def _neighbours(spec, config, params) -> str:
    """Which windows nothing distinguishes, by weights whose rows are orthonormal.

    In mode "named" the words end in a number of the directions, so that no two runs'
    budgets are taken for one.
    """
    layers = [params[name] for name in sorted(params) if name.startswith("layer")]
    worst = max(
        float(kernels.orthonormality_residual(layer.kernel)) for layer in layers
    )
    if not worst <= TOLERANCE:
        raise ValueError(
            f"the weights' rows are {worst:.1e} from orthonormal ones, and nothing is "
            f"guaranteed beyond {TOLERANCE:g}; train the run anew."
        )
    if config.mode == "everything":
        return ANY
    directions = np.asarray(params["named"].directions)
    if not np.any(directions):
        raise ValueError(
            "nothing tells the private attributes yet; train for an epoch at least."
        )
    number = zlib.crc32(directions.tobytes())
    hidden = ", ".join(spec.private)
    return f"windows that differ along what tells {hidden} ({number:08x})"


def _clipped(config, windows) -> str:
    """What was clipped to the public range, as a sentence without its dot."""
    numbers, count = outside(config, windows)
    reach = f"outside the public range {config.low} to {config.high}"
    if not count:
        return f"No number was {reach}"
    said = f"{numbers} numbers of {count} windows were {reach}, and clipped to it"
    if config.mode == "named":
        said += "; what is said of neighbours is of windows after that"
    return said


def anything(inputs: int) -> NeighborDistance:
    """Of any two windows of so many numbers.

    Example:
      >>> anything(16)
      NeighborDistance(l2=4.0, per_input=1.0)
    """
    return NeighborDistance(math.sqrt(inputs), 1.0)


def along(
    directions, due=True, old: NeighborDistance | None = None
) -> NeighborDistance:
    """Of windows that differ along the span of some directions, within the range.

    The edges of a polytope are tried on the host; where there are too many of them, as
    of two dozen classes, neighbours may be any two windows, which always holds.

    Args:
      directions: ``float32[r, inputs]``, may be traced.
      due: ``bool[]``; where False nothing is tried and ``old`` returned.
      old: what to return then.

    Returns:
      ``NeighborDistance`` of ``float32[]``.

    Example:
      Windows that differ along a diagonal of a square reach from corner to corner.

      >>> along(jnp.array([[1.0, -1.0]]))
      NeighborDistance(l2=Array(1.4142135, dtype=float32), per_input=Array(1...))
    """
    old = anything(directions.shape[1]) if old is None else old
    told = jax.ShapeDtypeStruct((2,), jnp.float32)
    numbers = jnp.ravel(directions)
    parts = jnp.split(numbers, np.arange(PART, numbers.size, PART))
    inputs = directions.shape[1]
    found = jax.pure_callback(
        _along, told, due, old, inputs, parts, vmap_method="sequential"
    )
    return NeighborDistance(*found)


def _along(due, old, inputs, parts):
    if not due:
        return np.array(old, np.float32)
    parts = [np.asarray(part, np.float64) for part in parts]
    directions = np.concatenate(parts).reshape(-1, int(inputs))
    try:
        found = kernels.relaxed_span_sensitivity(directions, 1.0)
        return np.array([found.l2, found.per_input], np.float32)
    except ValueError:  # Too many edges, or a direction that is not finite.
        return np.array(anything(int(inputs)), np.float32)


def bring_in(away, radius):
    """Rows no longer than ``radius``; moves no two of them further apart in L2.

    Args:
      away: ``float[batch, features]``, less those that they are brought near to.
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
    key, config, layers, windows, usual, apart: NeighborDistance, directions: Any = None
):
    """Noisy features of windows.

    Why ε holds: two neighbours' features, brought near to the middle one's or not, are
    no further apart than ``sensitivities`` says, for what brings them near moves no two
    further apart in L2, and the mechanism's densities differ by the factor e^ε at most
    over that. In the span, neighbours' features differ by a vector of it: what lies
    across is the same for both and may leave as it is, and the rest is a vector of
    fewer numbers, with noise of its own. Rebuilding looks at nothing but what is
    released.

    Args:
      key: typed PRNG key; every window has noise of its own.
      config: ``DEEProtectConfig``.
      layers: of ``models.deeprotect``.
      windows: ``float32[batch, inputs]`` in [0, 1].
      usual: ``float32[1, inputs]``, a public window that others are near, such as the
        mean of those that the weights were learned from; where ``config`` has a radius,
        features are brought near to its features.
      apart: how far neighbouring windows are apart.
      directions: ``float32[r, inputs]``, along which they differ in mode "named".

    Returns:
      ``float32[batch, features]``; NaN if the layers' rows are not orthonormal, or
      neighbours should differ along directions of which none is known: then the
      sensitivity is not what it is taken for.
    """
    if config.radius is None:  # No window is further from this one than √inputs / 2.
        usual = jnp.full_like(usual, 0.5)
    middle = deeprotect.encode(layers, usual, config.curve)
    away = deeprotect.encode(layers, windows, config.curve) - middle
    sound = jnp.array(True)
    for layer in layers:
        sound &= kernels.orthonormality_residual(layer.kernel) <= TOLERANCE
    if config.mode == "named":
        sound &= jnp.any(directions != 0)
    bounds = sensitivities(config, len(layers), windows.shape[1], apart)
    if config.mechanism == "span":
        for layer in layers:
            directions = jnp.matmul(directions, layer.kernel.T, precision="highest")
        within = jnp.linalg.qr(directions.T)[0]  # Columns that neighbours differ by.
        product = functools.partial(jnp.matmul, precision="highest")
        told = product(away, within)
        noise = _hidden(key, told, bounds, config) - told
        sent = away + product(noise, within.T)
    else:
        sent = _hidden(key, away, bounds, config)
    return jnp.where(sound, middle + sent, jnp.nan)


def _hidden(key, away, bounds, config):
    """Numbers of windows brought near to the middle one's, with noise."""
    away = bring_in(away, config.radius)
    add = lambda key, x: _noisy(key, x, bounds, config)
    return portable.vmap(add, key, away)


def sensitivities(
    config, num_layers: int, inputs: int, apart: NeighborDistance
) -> dict:
    """How far neighbours' features are apart: ``l1``, ``l2``, ``linf``, what is known.

    Rows that are orthonormal do not stretch, the logistic curve is nowhere steeper than
    a quarter, and its values lie in (0, 1).

    Example:
      >>> from jaxanon.methods.deeprotect.config import DEEProtectConfig
      >>> config = DEEProtectConfig(curve="sigmoid", radius=None)
      >>> found = sensitivities(config, 2, 30, anything(30))
      >>> round(found["l2"], 3), round(found["l1"], 3)
      (0.342, 0.906)
    """
    features = config.hidden_sizes[-1]
    width = apart.per_input
    if config.sensitivity == "published" and config.features == "window":
        return {"l1": inputs * width}  # The paper's baseline.
    if config.sensitivity == "published":
        return {"l1": kernels.deeprotect_feature_sensitivity(features, inputs, width)}
    bent = config.curve == "sigmoid"
    gain = (1 + TOLERANCE) ** (num_layers / 2)
    l2 = gain * apart.l2 / (4.0**num_layers if bent else 1)
    least = min if isinstance(l2, float) else jnp.minimum
    if config.radius is not None:
        l2 = least(l2, 2 * config.radius * (1 + ROUNDING))
    l1 = math.sqrt(features) * l2
    if config.features == "window" and config.radius is None:
        l1 = least(l1, inputs * width)  # Bringing them near may stretch L1.
    if not bent:
        return {"l1": l1, "l2": l2}
    return {"l1": least(l1, float(features)), "l2": l2, "linf": least(l2, 1.0)}


def _noisy(key, x, bounds, config):
    """One window's numbers, less the middle window's, with noise."""
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
        # No feature is further from the middle one's than two windows' can be.
        most = bounds.get("linf", bounds.get("l2"))
        return kernels.grid_laplace_mechanism(
            key, bounded, config.epsilon, max_magnitude=most
        )
    return kernels.norm_mechanism(key, bounded, config.epsilon, norm=mechanism)


class Named(NamedTuple):
    """What windows tell the private attributes by."""

    directions: jax.Array  # float32[r, inputs]
    apart: NeighborDistance  # of float32[]; how far windows along them are apart


def empty(spec, inputs: int) -> Named:
    """Before anything is learned; nothing is released by it in mode "named".

    Args:
      spec: ``jaxanon.datasets.Spec``.
      inputs: numbers of a window.
    """
    rank = sum(spec.num_classes(name) - 1 for name in spec.private)
    return Named(
        jnp.zeros((rank, inputs)), NeighborDistance(*map(jnp.float32, anything(inputs)))
    )


def due(number, rounds: int):
    """Whether directions are learned after so many rounds: 1, 2, 4, 8, ... epochs.

    So that at least half of all batches have been seen, and edges of polytopes, which
    may take seconds, are tried a few times only.

    Args:
      number: of rounds so far, ``int32[]`` or a Python int, > 0.
      rounds: of an epoch.

    Example:
      >>> [epoch for epoch in range(1, 20) if due(10 * epoch, 10)]
      [1, 2, 4, 8, 16]
      >>> bool(due(11, 10))
      False
    """
    epoch = number // rounds
    return (number % rounds == 0) & (epoch & (epoch - 1) == 0)


def learn(
    spec, config, seen: feature_extraction.Moments, penalty, old: Named, now
) -> Named:
    """The directions that linear classifiers of the windows so far read by.

    Of an attribute of C classes there are C - 1, by which one class's score differs
    from the first one's: the largest score says the class, and what all scores have in
    common says nothing.

    Args:
      spec, config: of the method.
      seen: moments of windows in [0, 1].
      penalty: of the ridge regression.
      old: what there is.
      now: ``bool[]``; where False, ``old`` is kept.
    """

    def anew():
        rows = [feature_extraction.ridge(seen, name, penalty) for name in spec.private]
        found = jnp.concatenate([each[1:] - each[:1] for each in rows])
        if config.mode == "everything":  # Holds for any directions.
            return old._replace(directions=found)
        return Named(found, along(found, now, old.apart))

    return jax.lax.cond(now, anew, lambda: old)


def apart(config, named: Named) -> NeighborDistance:
    """How far neighbouring windows are apart, by the method's mode.

    Args:
      config: ``DEEProtectConfig``.
      named: of the method's state.
    """
    if config.mode == "everything":
        return anything(named.directions.shape[1])
    return named.apart
