"""DEEProtect: few features that serve the useful inferences, released with noise."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels import orthonormal_rows
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import (
    BatchSource,
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.methods.deeprotect import release
from jaxanon.methods.deeprotect.config import (
    DEEProtectConfig,
    in_range,
    out_of_range,
    with_range,
)
from jaxanon.methods.deeprotect.release import release as release_release
from jaxanon.models import deeprotect as models_deeprotect
from jaxanon.models import feature_extraction
from jaxanon.models.deeprotect import Layer
from jaxanon.models.feature_extraction import of_length_one

OPTIMIZERS = {"sgd": optax.identity(), "adam": optax.scale_by_adam()}

HYPER = ("mu", "beta", "weight_decay", "delta", "rho", "learning_rate")


@register("deeprotect", config=DEEProtectConfig)
def deeprotect(spec, config) -> Method:
    """Builds DEEProtect for windows of ``spec``.

    A tied autoencoder with orthonormal rows learns features from which windows are
    rebuilt and useful classes read; what leaves is a window that is rebuilt from its
    features behind noise. The noise comes from a sensitivity that holds for any window
    in the public range, to which values are clipped first.

    ``mode="everything"``: ε-local differential privacy of a window; whatever is
    released is at most e^ε times as likely from one window as from any other.
    ``mode="named"``: neighbours are windows in the public range, after clipping, that
    differ along the directions by which a linear classifier reads the private
    attributes, and in nothing else. That is less than it sounds: it hides how far a
    window lies along those directions, not the private class, which everything else
    that goes with the class still tells, to any classifier that looks there. With
    ``mechanism="span"`` nothing but those directions has noise, which is all that this
    mode asks for: the features of neighbours differ there alone, where they are linear
    in the window. That claim is of idealised arithmetic, no guarantee in floating
    point: what lies across the span is rounded, and its last bits may tell. Two windows
    of which clipping changed one are no neighbours.

    Features are brought within ``radius`` of those of the mean window of the training
    data, which are public, before noise is added: no two are further apart than twice
    that, however wide the range. ``features`` may also be those of an extractor that
    knows of no classes, for comparison; an epoch is enough for all but the dictionary.
    ``features="window", mechanism="laplace", radius=None`` is the paper's baseline.

    In simulation: floating-point noise betrays through its last bits what it hides;
    ``mechanism="grid"`` does not. Weights are public: they must be learned from other
    people's windows, or with privacy of their own. ε is a window's; a stream's is
    added up by ``jaxanon.edge.Budget``.

    Its settings by default are not the paper's, which ``DEEProtectConfig`` names. Other
    differences: values are clipped to a public range, where the paper's
    sensitivity is estimated from data and guarantees nothing; the noise has the
    corrected scale (``sensitivity``); relaxed neighbours are bounded by the range, for
    equation 10 maximises what it bounds; inferences have a bias; losses are means.

    Args:
      spec: ``jaxanon.datasets.Spec``; the public attribute, and ``extra_public``, are
        the useful inferences, the private ones the named sensitive ones.
      **settings: fields of ``DEEProtectConfig``.

    Returns:
      ``Method``; its ``config`` has the public range.

    Raises:
      ValueError: if a setting is out of range, a channel's unit has no public range, a
        layer has more features than inputs, ``extra_public`` names no attribute, or
        ``epsilon`` is too large for PrivUnit.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = deeprotect(load("smartwatch", preset="acc10").spec, epsilon=2.0)
      >>> method.config.hidden_sizes, method.config.high
      ((15, 7), (2.0, 2.0, 2.0))

    References:
      Liu, Chakraborty and Mittal, DEEProtect: Enabling Inference Control on Mobile
      Sensing Applications, 2017, sections IV and V, Algorithms 1 to 3.
    """
    spec.num_classes(spec.public)  # A number is refused.
    config = with_range(config, spec)
    for name in config.extra_public:
        if name not in spec.classes or name in (spec.public, *spec.private):
            free = sorted({*spec.classes} - {spec.public, *spec.private})
            raise ValueError(f"extra_public must be among {free}, got {name!r}.")
    inputs = spec.time * len(spec.channels)
    if config.features == "window":
        config = dataclasses.replace(config, hidden=(inputs,))
    sizes = (inputs, *config.hidden_sizes)
    models_deeprotect.check_sizes(sizes)
    if config.mechanism == "privunit":  # Refused here, and not after training.
        kernels.priv_unit_cap(max(3, sizes[-1] + 1), config.epsilon, dtype=jnp.float32)
    if config.features != "autoencoder":
        sizes = sizes[0], sizes[-1]
    return by_epoch(lambda rounds: _method(spec, config, sizes, rounds))


def _method(spec, config, sizes, rounds):
    inputs, names = sizes[0], (spec.public, *config.extra_public)
    useful = {name: spec.num_classes(name) for name in names}
    secret = {name: spec.num_classes(name) for name in spec.private}
    numbers = range(len(sizes) - 1)
    learned = config.features == "autoencoder"
    stages = _stages(config, len(sizes) - 1)

    def init_fn(key):
        layer_key, atoms_key, *keys = jax.random.split(key, 2 + len(stages))
        layers = models_deeprotect.init_autoencoder(layer_key, sizes)
        params: dict[str, Any] = {_layer(n): one for n, one in enumerate(layers)}
        params["moments"] = feature_extraction.empty(inputs, secret)
        params["named"] = release.empty(spec, inputs)
        if config.features == "dictionary":
            shape = config.hidden_sizes[-1], inputs
            params["atoms"] = of_length_one(jax.random.normal(atoms_key, shape))
        if learned:
            for key, stage in zip(keys, stages, strict=True):
                params[_useful(stage)] = _inferences(
                    key, config.inference, sizes[stage[0]], useful
                )
        return params

    def finish_fn(key, state, data):
        batch = pool.draw(key, data, config.batch_size)
        unit = in_range(spec, config, batch.windows)
        seen = feature_extraction.add(state.params["moments"], unit - 0.5, batch.labels)
        due = release.due(state.round + 1, rounds)
        beta, named = state.hyper["beta"], state.params["named"]
        named = release.learn(spec, config, seen, beta, named, due)
        renewed: dict[str, Any] = {"moments": seen, "named": named}
        if learned:
            for number in numbers:
                renewed[_layer(number)] = models_deeprotect.project(
                    state.params[_layer(number)]
                )
            return renewed
        atoms = state.params.get("atoms")
        if atoms is not None:
            renewed["atoms"] = atoms = of_length_one(atoms)
        renewed[_layer(0)] = layer(spec, config, seen, atoms)
        return renewed

    def anonymize_fn(key, params, windows):
        unit = in_range(spec, config, windows)
        usual = in_range(spec, config, jnp.zeros((1, *windows.shape[1:])))
        layers = [params[_layer(number)] for number in numbers]
        named = params["named"]
        apart = release.apart(config, named)
        sent = release_release(
            key, config, layers, unit, usual, apart, named.directions
        )
        rebuilt = models_deeprotect.decode(layers, sent, config.curve)
        return out_of_range(spec, config, jnp.clip(rebuilt, 0, 1), windows.shape)

    optimizer = OPTIMIZERS[config.optimizer]
    players = [
        Component(
            (*map(_layer, stage), _useful(stage)),
            _learning(spec, config, stage, useful),
            when_fn=_turn_of(config, stage, stages, rounds),
            optimizer=optimizer,
        )
        for stage in stages
        if learned
    ]
    if config.features == "dictionary":
        players.append(dictionary(spec, config, optimizer))
    method = central(
        "deeprotect",
        config,
        spec,
        BatchSource(
            lambda clients: pool.pool(spec, clients),
            lambda key, data, copy: pool.draw(key, data, config.batch_size),
            lambda data: pool.rounds_per_epoch(data, config.batch_size),
            config.batch_size,
        ),
        init_fn=init_fn,
        players=tuple(players),
        hyper={name: getattr(config, name) for name in HYPER},
        anonymize_fn=anonymize_fn,
        finish_fn=finish_fn,
    )
    before = (len(stages) - 1) * config.epochs_per_layer
    method = with_phases(
        method, min_epochs=before + 1, phases=("epochs_per_layer",) if before else ()
    )
    method = method._replace(release=release.of_release(spec, config))
    if learned:
        return method

    def update(key, state, data):
        """The round, and how well windows are rebuilt."""
        state, info = method.update(key, state, data)
        own, seen = state.params[_layer(0)], state.params["moments"]
        return state, info | {"rebuilding": rebuilding(own, seen)}

    return method._replace(update=update)


def _layer(number):
    return f"layer {number + 1}"


def _useful(stage):
    return f"useful {stage[0] + 1}"


def _stages(config, count) -> list[tuple[int, ...]]:
    """Which layers learn together, stage after stage."""
    together = tuple(range(count))
    alone = [(number,) for number in together]
    if config.training == "greedy" or count == 1:
        return [*alone]
    return [*alone, together] if config.training == "fine-tuned" else [together]


def _turn_of(config, stage, stages, rounds):
    """Whose turn it is: a stage's for its epochs, the last one's from then on."""
    if len(stages) == 1:
        return None
    first = stages.index(stage) * config.epochs_per_layer
    last = stage == stages[-1]
    return during(rounds, first, None if last else first + config.epochs_per_layer)


def _inferences(key, inference, inputs, classes):
    keys = jax.random.split(key, len(classes))
    return {
        name: models_deeprotect.init_classifier(one, inference, inputs, count)
        for one, (name, count) in zip(keys, classes.items(), strict=True)
    }


def _learning(spec, config, stage, useful):
    """What a layer, or all of them, are trained by: DEEProtect, equations 5 and 23."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        unit = in_range(spec, config, batch.windows)
        before = [params[_layer(number)] for number in range(stage[0])]
        layers = [params[_layer(number)] for number in stage]
        seen = models_deeprotect.encode(before, unit, config.curve)
        features = models_deeprotect.encode(layers, seen, config.curve)
        rebuilt = models_deeprotect.decode(layers, features, config.curve)
        error = jnp.mean(jnp.sum((rebuilt - seen) ** 2, axis=1))
        readers = params[_useful(stage)]
        told = sum(
            models_deeprotect.loss(
                readers[name], config.inference, rebuilt, batch.labels[name]
            )
            for name in useful
        )
        size = sum(models_deeprotect.squares(readers[name]) for name in useful)
        weights = sum(jnp.sum(layer.kernel**2) for layer in layers)
        loss = error + hyper["mu"] * (told + hyper["beta"] * size)
        loss = loss + hyper["weight_decay"] * weights
        if config.curve == "sigmoid":
            loss = loss + hyper["delta"] * models_deeprotect.sparsity(
                features, hyper["rho"]
            )
        which = "all layers" if len(stage) > 1 else _layer(stage[0])
        info = {f"rebuilding, {which}": error, f"reading, {which}": told}
        return loss, (info, {})

    return loss_fn


PENALTY = 0.05  # Of a dictionary's codes, of windows in [0, 1].


def layer(spec, config, seen: feature_extraction.Moments, atoms) -> Layer:
    """What the windows so far make of the extractor.

    Args:
      spec, config: of the method.
      seen: moments of windows, less 0.5.
      atoms: ``float32[features, inputs]`` of the dictionary; None for the others.

    Returns:
      ``Layer`` whose features are those of windows less their mean, so that windows
      that are rebuilt have that mean.
    """
    features = config.hidden_sizes[-1]
    if config.features == "window":
        return Layer(jnp.eye(features), jnp.zeros(features), jnp.zeros(features))
    spread = feature_extraction.covariance(seen)
    if config.features == "pca":
        kernel = feature_extraction.principal(spread, features)
    elif config.features == "dictionary":
        kernel = orthonormal_rows(atoms)
    else:
        basis = feature_extraction.BASES[config.features](spec.time)
        basis = feature_extraction.of_channels(basis, len(spec.channels))
        kernel = feature_extraction.most_varied(jnp.asarray(basis), spread, features)
    mean = seen.mean + 0.5
    return Layer(kernel, -kernel @ mean, mean)


def rebuilding(own: Layer, seen: feature_extraction.Moments):
    """Squared error of windows rebuilt from their features, ``float32[]``, a mean."""
    spread = feature_extraction.covariance(seen)
    return jnp.trace(spread) - jnp.sum((own.kernel @ spread) * own.kernel)


def dictionary(spec, config, optimizer) -> Component:
    """Dictionary learning: atoms of few of which every window is a sum.

    Args:
      spec, config: of the method.
      optimizer: ``optax.GradientTransformation``.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        unit = in_range(spec, config, batch.windows) - 0.5
        away = unit - params["moments"].mean[None]
        atoms = feature_extraction.of_length_one(params["atoms"])
        codes = feature_extraction.sparse_codes(
            jax.lax.stop_gradient(atoms), away, PENALTY
        )
        error = jnp.mean(jnp.sum((away - codes @ atoms) ** 2, axis=1))
        return error, ({"codes": jnp.mean(jnp.sum(jnp.abs(codes), axis=1))}, {})

    return Component(("atoms",), loss_fn, optimizer=optimizer)
