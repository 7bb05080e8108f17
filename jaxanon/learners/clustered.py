"""Learners that group clients: their settings and builders."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxanon import federated
from jaxanon.core.method import Method
from jaxanon.federated.clustering.clusterfl import VARIANTS
from jaxanon.kernels.bounds import setting
from jaxanon.learners.learner import (
    STEP,
    LearnerConfig,
    learner,
    loss_of,
    network_of,
    personal_learner,
    steps_of,
)


def clusterfl(spec, config) -> Method:
    """ClusterFL; see ``jaxanon.federated.clustering.clusterfl``.

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
        federated.clusterfl,
        names,
        num_clusters=config.clusters,
        outputs_fn=network.apply,
        probe_fn=probe,
        numbers=numbers,
        every=config.every,
        variant=config.variant,
    )


def feddl(spec, config) -> Method:
    """FedDL; see ``jaxanon.federated.clustering.feddl``."""
    layers = network_of(spec, config).layers
    names = (*STEP, "similarity")
    return personal_learner(
        "feddl", spec, config, federated.feddl, names, layers=layers
    )


def fedmask(spec, config) -> Method:
    """FedMask; see ``jaxanon.federated.personalised.fedmask``."""
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
        federated.fedmask,
        (*STEP, "certainty"),
        weighting="clients",
        masked_layers=layers[-most:],
    )


def centralized_clustering(spec, config) -> Method:
    """A model for each group of clients; see ``federated.clustering.centralised``."""
    network = network_of(spec, config)
    algorithm = federated.centralized_clustering(
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
    schedule = made.schedule._replace(work_per_round=lambda data: config.clusters)
    return made._replace(schedule=schedule)


def _statistics(rows, mask):
    """Mean and deviation of each channel of a client's windows."""
    x = rows["x"]
    count = jnp.maximum(jnp.sum(mask), 1) * x.shape[1]
    real = mask[:, None, None]
    mean = jnp.sum(jnp.where(real, x, 0), axis=(0, 1)) / count
    squares = jnp.where(real, (x - mean[None, None]) ** 2, 0)
    return mean, jnp.sqrt(jnp.sum(squares, axis=(0, 1)) / count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterFLConfig(LearnerConfig):
    """ClusterFL's settings."""

    clusters: int = setting(3, at_least=1, help="clusters of clients")
    alpha: float = setting(1e-3, at_least=0, help="α, weight of all models' squares")
    beta: float = setting(5e-4, at_least=0, help="β, weight of the clusters' nearness")
    rho: float = setting(
        4e-3,
        above=0,
        help="ρ, of the augmented Lagrangian; above 4 β, or duals swing for ever "
        "(published: 0.002, which is 4 β)",
    )
    temperature: float = setting(
        6.0, above=0, help="what logits are divided by before they are compared"
    )
    every: int = setting(3, at_least=1, help="rounds between two clusterings")
    probe: int = setting(64, at_least=1, help="windows of noise that compare models")
    variant: str = setting(
        "corrected",
        choices=VARIANTS,
        help="corrected: towards one's cluster; released: with the published program's "
        "sign and without the others' part",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.rho <= 2 * self.beta:
            raise ValueError(
                f"rho must be above 2 beta, {2 * self.beta:g}, got {self.rho!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedDLConfig(LearnerConfig):
    """FedDL's settings."""

    similarity: float = setting(
        0.4, at_least=-1, at_most=1, help="least cosine of layers that are merged"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedMaskConfig(LearnerConfig):
    """FedMask's settings; the network's weights are random, and stay so."""

    learning_rate: float = setting(
        200.0, above=0, help="step size of the masks' descent"
    )
    masked_layers: int | None = setting(
        None, at_least=1, help="last layers, which have masks; default: all layers"
    )
    certainty: float = setting(
        0.6, above=0.5, below=1, help="sigmoid of a mask that all clients agree on"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteredConfig(LearnerConfig):
    """Settings of centralized clustering; ``client_fraction`` has no part in it."""

    clusters: int = setting(3, at_least=1, help="groups of clients, a model for each")
    by: str = setting(
        "updates",
        choices=("updates", "windows"),
        help="updates: groups by directions of clients' gradients; windows: by means "
        "and deviations of their channels",
    )
    alone: int = setting(5, at_least=0, help="first rounds, with one model for all")
