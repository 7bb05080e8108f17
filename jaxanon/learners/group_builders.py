"""Builders of learners that group clients."""

import jax
import jax.numpy as jnp

from jaxanon import federated
from jaxanon.learners.learner import Learner, learner, loss_of, network_of
from jaxanon.learners.parts import STEP, personal_learner, steps_of


def clusterfl(spec, config) -> Learner:
    """ClusterFL; see ``jaxanon.federated.cluster_fl``.

    Models are compared on windows of noise around levels of noise, which nobody has to
    hide; a network with one output is taken to predict a number.
    """
    network = network_of(spec, config)
    shape = (config.probe, spec.time, len(spec.channels))

    def probe(key):
        if spec.tokens:  # Numbers that stand for something, from 0 on.
            return jax.random.randint(key, shape, 0, spec.tokens).astype(float)
        level_key, key = jax.random.split(key)
        level = jax.random.normal(level_key, (shape[0], 1, shape[2]))
        return level + jax.random.normal(key, shape)

    def outputs(layers):
        return network.apply(layers, jnp.zeros(shape))

    layers = jax.eval_shape(network.init, jax.eval_shape(jax.random.key, 0))
    numbers = jax.eval_shape(outputs, layers).shape[-1] == 1
    names = (*STEP, "alpha", "beta", "rho", "temperature")
    return personal_learner(
        "clusterfl",
        spec,
        config,
        federated.cluster_fl,
        names,
        num_clusters=config.clusters,
        outputs_fn=network.apply,
        probe_fn=probe,
        numbers=numbers,
        every=config.every,
        form=config.form,
    )


def feddl(spec, config) -> Learner:
    """FedDL; see ``jaxanon.federated.fed_dl``."""
    layers = network_of(spec, config).layers
    names = (*STEP, "similarity")
    return personal_learner(
        "feddl", spec, config, federated.fed_dl, names, layers=layers
    )


def fedmask(spec, config) -> Learner:
    """FedMask; see ``jaxanon.federated.fed_mask``."""
    layers = network_of(spec, config).layers
    most = len(layers) if config.masked_layers is None else config.masked_layers
    if most > len(layers):
        raise ValueError(
            f"masked_layers must be at most the {len(layers)} layers of the model, got "
            f"{most}."
        )
    return personal_learner(
        "fedmask",
        spec,
        config,
        federated.fed_mask,
        (*STEP, "certainty"),
        weighting="clients",
        masked_layers=layers[-most:],
    )


def centralized_clustering(spec, config) -> Learner:
    """A model for each group of clients; see ``jaxanon.federated.clustered``."""
    network = network_of(spec, config)
    algorithm = federated.clustered(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        num_clients=spec.num_classes("subject"),
        num_clusters=config.clusters,
        features_fn=_statistics if config.by == "windows" else None,
        alone=config.alone,
    )
    name = "centralized_clustering"
    made = learner(name, spec, config, algorithm, network, STEP)
    return made._replace(work_per_round=lambda data: config.clusters)


def _statistics(rows, mask):
    """Mean and deviation of each channel of a client's windows."""
    x = rows["x"]
    count = jnp.maximum(jnp.sum(mask), 1) * x.shape[1]
    real = mask[:, None, None]
    mean = jnp.sum(jnp.where(real, x, 0), axis=(0, 1)) / count
    squares = jnp.where(real, (x - mean[None, None]) ** 2, 0)
    return mean, jnp.sqrt(jnp.sum(squares, axis=(0, 1)) / count)
