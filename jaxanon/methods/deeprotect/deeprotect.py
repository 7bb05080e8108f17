"""DEEProtect: releases noisy features that preserve the public attributes."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels import orthonormal_rows
from jaxanon.methods.common import pool, recipes
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
from jaxanon.models.feature_extraction import normalize_rows

OPTIMIZERS = {"sgd": optax.identity(), "adam": optax.flatten(optax.scale_by_adam())}

HYPER = ("mu", "beta", "weight_decay", "delta", "rho", "learning_rate")


@register("deeprotect", config=DEEProtectConfig, recipes=recipes.DEEPROTECT)
def deeprotect(spec, config) -> Method:
    """Builds DEEProtect for windows of ``spec``.

    A tied autoencoder with orthonormal rows learns features from which windows can be
    reconstructed and public classes predicted. The method adds noise to the features
    and releases the window reconstructed from them. Values are first clipped to a
    public range, so that the sensitivity behind the noise holds for any window.

    ``mode="everything"`` gives ε-local differential privacy per window: any output is
    at most e^ε times as likely for one window as for any other. ``mode="named"``
    protects only windows, after clipping, that differ in nothing but the directions by
    which a linear classifier predicts the private attributes. This is weaker than it
    sounds. It hides how far a window lies along those directions, not the private
    class: a classifier can still infer the class from everything else that correlates
    with it. Two windows are not neighbours if clipping changed one of them.

    ``mechanism="span"`` adds noise only along those directions, which suffices for this
    mode: features of neighbours differ only there if they are linear in the window. The
    claim assumes exact arithmetic. It is no guarantee in floating point, where
    the last bits of the other directions may leak.

    ``radius`` clips the distance of features from those of the training data's mean
    window, which are public, before noise is added. Any two features are then at most
    ``2 * radius`` apart, whatever the range. ``features`` selects other extractors,
    which use no labels, for comparison; one epoch is enough for all but the dictionary.
    ``features="window", mechanism="laplace", radius=None`` is the paper's baseline.

    Limits: this is a simulation, and the last bits of floating-point noise leak what it
    hides, except with ``mechanism="grid"``. Weights are public, so train them on other
    people's windows or with separate privacy. ε is per window;
    ``jaxanon.edge.Budget`` adds up the ε of a stream.

    The default settings differ from the paper's, which ``DEEProtectConfig`` lists.
    Other differences from the paper:

    - Values are clipped to a public range. The paper estimates its sensitivity from
      data, which guarantees nothing.
    - The noise has the corrected scale (``sensitivity``).
    - The range bounds relaxed neighbours, because the printed equation 10 maximises the
      quantity that it should bound.
    - Inferences have a bias, and losses are means.

    Args:
      spec: ``jaxanon.datasets.Spec``. The public attribute and ``extra_public`` are the
        paper's useful inferences, the private attributes its sensitive ones.
      **settings: fields of ``DEEProtectConfig``.

    Returns:
      ``Method``; its ``config`` has the public range.

    Raises:
      ValueError: if a setting is out of range, the unit of a channel has no public
        range, a layer has more features than inputs, ``extra_public`` names an unknown
        attribute, or ``epsilon`` is too large for PrivUnit.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = deeprotect(load("smartwatch", preset="acc10").spec, epsilon=2.0)
      >>> method.config.hidden_sizes, method.config.high
      ((15, 7), (2.0, 2.0, 2.0))

    References:
      Liu, Chakraborty and Mittal, DEEProtect: Enabling Inference Control on Mobile
      Sensing Applications, 2017, sections IV and V, Algorithms 1 to 3.
    """
    spec.num_classes(spec.public)  # Raises if the public attribute has no classes.
    config = with_range(config, spec)
    for name in config.extra_public:
        if name not in spec.classes or name in (spec.public, *spec.private):
            free = sorted({*spec.classes} - {spec.public, *spec.private})
            raise ValueError(f"extra_public must be among {free}, got {name!r}.")
    inputs = spec.time * len(spec.channels)
    if config.features == "window":
        config = dataclasses.replace(config, hidden_sizes=(inputs,))
    sizes = (inputs, *config.hidden_sizes)
    models_deeprotect.check_sizes(sizes)
    if config.mechanism == "privunit":  # Raises before training.
        kernels.priv_unit_cap(max(3, sizes[-1] + 1), config.epsilon, dtype=jnp.float32)
    if config.features != "autoencoder":
        sizes = sizes[0], sizes[-1]
    return by_epoch(lambda rounds: _method(spec, config, sizes, rounds))


def _method(spec, config, sizes, rounds):
    inputs, names = sizes[0], (spec.public, *config.extra_public)
    useful = {name: spec.num_classes(name) for name in names}
    private = {name: spec.num_classes(name) for name in spec.private}
    indices = range(len(sizes) - 1)
    learned = config.features == "autoencoder"
    stages = _stages(config, len(sizes) - 1)

    def init_fn(key):
        layer_key, atoms_key, *keys = jax.random.split(key, 2 + len(stages))
        layers = models_deeprotect.init_autoencoder(layer_key, sizes)
        params: dict[str, Any] = {_layer(n): one for n, one in enumerate(layers)}
        params["moments"] = feature_extraction.init_moments(inputs, private)
        params["named"] = release.empty(spec, inputs)
        if config.features == "dictionary":
            shape = config.hidden_sizes[-1], inputs
            params["atoms"] = normalize_rows(jax.random.normal(atoms_key, shape))
        if learned:
            for key, stage in zip(keys, stages, strict=True):
                params[_useful(stage)] = _inferences(
                    key, config.inference, sizes[stage[0]], useful
                )
        return params

    def finish_fn(key, state, data):
        batch = pool.draw(key, data, config.batch_size)
        unit = in_range(spec, config, batch.windows)
        moments = feature_extraction.update_moments(
            state.params["moments"], unit - 0.5, batch.labels
        )
        due = release.due(state.round + 1, rounds)
        beta, named = state.hyper["beta"], state.params["named"]
        named = release.learn(spec, config, moments, beta, named, due)
        updates: dict[str, Any] = {"moments": moments, "named": named}
        if learned:
            for index in indices:
                updates[_layer(index)] = models_deeprotect.project(
                    state.params[_layer(index)]
                )
            return updates
        atoms = state.params.get("atoms")
        if atoms is not None:
            updates["atoms"] = atoms = normalize_rows(atoms)
        updates[_layer(0)] = layer(spec, config, moments, atoms)
        return updates

    def anonymize_fn(key, params, windows):
        unit = in_range(spec, config, windows)
        reference = in_range(spec, config, jnp.zeros((1, *windows.shape[1:])))
        layers = [params[_layer(index)] for index in indices]
        named = params["named"]
        distance = release.apart(config, named)
        features = release_release(
            key, config, layers, unit, reference, distance, named.directions
        )
        decoded = models_deeprotect.decode(layers, features, config.curve)
        return out_of_range(spec, config, jnp.clip(decoded, 0, 1), windows.shape)

    optimizer = OPTIMIZERS[config.optimizer]
    components = [
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
        components.append(dictionary(spec, config, optimizer))
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
        components=tuple(components),
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
        """Runs the round and adds the reconstruction error to its info."""
        state, info = method.update(key, state, data)
        extractor, moments = state.params[_layer(0)], state.params["moments"]
        return state, info | {"rebuilding": rebuilding(extractor, moments)}

    return method._replace(update=update)


def _layer(number):
    return f"layer {number + 1}"


def _useful(stage):
    return f"useful {stage[0] + 1}"


def _stages(config, count) -> list[tuple[int, ...]]:
    """Returns the layers that train together in each stage."""
    together = tuple(range(count))
    alone = [(number,) for number in together]
    if config.training == "greedy" or count == 1:
        return [*alone]
    return [*alone, together] if config.training == "fine-tuned" else [together]


def _turn_of(config, stage, stages, rounds):
    """Returns ``when_fn``: a stage's epochs; the last stage trains to the end."""
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
    """Returns the loss of one layer or of all: DEEProtect, equations 5 and 23."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        unit = in_range(spec, config, batch.windows)
        before = [params[_layer(number)] for number in range(stage[0])]
        layers = [params[_layer(number)] for number in stage]
        inputs = models_deeprotect.encode(before, unit, config.curve)
        features = models_deeprotect.encode(layers, inputs, config.curve)
        decoded = models_deeprotect.decode(layers, features, config.curve)
        error = jnp.mean(jnp.sum((decoded - inputs) ** 2, axis=1))
        classifiers = params[_useful(stage)]
        utility = sum(
            models_deeprotect.loss(
                classifiers[name], config.inference, decoded, batch.labels[name]
            )
            for name in useful
        )
        size = sum(models_deeprotect.squared_norm(classifiers[name]) for name in useful)
        weights = sum(jnp.sum(layer.kernel**2) for layer in layers)
        loss = error + hyper["mu"] * (utility + hyper["beta"] * size)
        loss = loss + hyper["weight_decay"] * weights
        if config.curve == "sigmoid":
            loss = loss + hyper["delta"] * models_deeprotect.sparsity(
                features, hyper["rho"]
            )
        which = "all layers" if len(stage) > 1 else _layer(stage[0])
        info = {f"rebuilding, {which}": error, f"reading, {which}": utility}
        return loss, (info, {})

    return loss_fn


PENALTY = 0.05  # L1 penalty on a dictionary's codes, for windows in [0, 1].


def layer(spec, config, moments: feature_extraction.Moments, atoms) -> Layer:
    """Returns the feature extractor fitted to the windows so far.

    Args:
      spec: spec of the method.
      config: config of the method.
      moments: moments of windows, less 0.5.
      atoms: ``float32[features, inputs]`` of the dictionary; None for other extractors.

    Returns:
      ``Layer`` whose features are those of windows minus their mean, so that
      reconstructed windows have that mean.
    """
    features = config.hidden_sizes[-1]
    if config.features == "window":
        return Layer(jnp.eye(features), jnp.zeros(features), jnp.zeros(features))
    covariance = moments.covariance
    if config.features == "pca":
        kernel = feature_extraction.principal(covariance, features)
    elif config.features == "dictionary":
        kernel = orthonormal_rows(atoms)
    else:
        basis = feature_extraction.BASES[config.features](spec.time)
        basis = feature_extraction.repeat_for_channels(basis, len(spec.channels))
        kernel = feature_extraction.select_most_variable(
            jnp.asarray(basis), covariance, features
        )
    mean = moments.mean + 0.5
    return Layer(kernel, -kernel @ mean, mean)


def rebuilding(extractor: Layer, moments: feature_extraction.Moments):
    """Returns the mean squared reconstruction error of windows, ``float32[]``."""
    kernel, covariance = extractor.kernel, moments.covariance
    return jnp.trace(covariance) - jnp.sum((kernel @ covariance) * kernel)


def dictionary(spec, config, optimizer) -> Component:
    """Returns a component that learns a dictionary for sparse coding of windows.

    Args:
      spec: spec of the method.
      config: config of the method.
      optimizer: ``optax.GradientTransformation``.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        unit = in_range(spec, config, batch.windows) - 0.5
        centred = unit - params["moments"].mean[None]
        atoms = feature_extraction.normalize_rows(params["atoms"])
        codes = feature_extraction.sparse_codes(
            jax.lax.stop_gradient(atoms), centred, PENALTY
        )
        error = jnp.mean(jnp.sum((centred - codes @ atoms) ** 2, axis=1))
        return error, ({"codes": jnp.mean(jnp.sum(jnp.abs(codes), axis=1))}, {})

    return Component(("atoms",), loss_fn, optimizer=optimizer)
