"""DEEProtect's features by an extractor that knows of no classes, for comparison."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import orthonormal_rows
from jaxanon.methods.central import Player
from jaxanon.methods.deeprotect_range import in_range
from jaxanon.models import extractors, moments
from jaxanon.models.tied import Layer

PENALTY = 0.05  # Of a dictionary's codes, of windows in [0, 1].


def layer(spec, config, seen: moments.Moments, atoms) -> Layer:
    """What the windows so far make of the extractor.

    Args:
      spec, config: of the method.
      seen: moments of windows, less 0.5.
      atoms: ``float32[features, inputs]`` of the dictionary; None for the others.

    Returns:
      ``Layer`` whose features are those of windows less their mean, so that windows
      that are rebuilt have that mean.
    """
    features = config.hidden[-1]
    if config.features == "window":
        return Layer(jnp.eye(features), jnp.zeros(features), jnp.zeros(features))
    spread = moments.covariance(seen)
    if config.features == "pca":
        kernel = extractors.principal(spread, features)
    elif config.features == "dictionary":
        kernel = orthonormal_rows(atoms)
    else:
        basis = extractors.BASES[config.features](spec.time)
        basis = extractors.of_channels(basis, len(spec.channels))
        kernel = extractors.most_varied(jnp.asarray(basis), spread, features)
    mean = seen.mean + 0.5
    return Layer(kernel, -kernel @ mean, mean)


def rebuilding(own: Layer, seen: moments.Moments):
    """Squared error of windows rebuilt from their features, ``float32[]``, a mean."""
    spread = moments.covariance(seen)
    return jnp.trace(spread) - jnp.sum((own.kernel @ spread) * own.kernel)


def dictionary(spec, config, optimizer) -> Player:
    """Dictionary learning: atoms of few of which every window is a sum.

    Args:
      spec, config: of the method.
      optimizer: ``optax.GradientTransformation``.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        unit = in_range(spec, config, batch.windows) - 0.5
        away = unit - params["moments"].mean[None]
        atoms = extractors.of_length_one(params["atoms"])
        codes = extractors.sparse_codes(jax.lax.stop_gradient(atoms), away, PENALTY)
        error = jnp.mean(jnp.sum((away - codes @ atoms) ** 2, axis=1))
        return error, ({"codes": jnp.mean(jnp.sum(jnp.abs(codes), axis=1))}, {})

    return Player(("atoms",), loss_fn, optimizer=optimizer)
