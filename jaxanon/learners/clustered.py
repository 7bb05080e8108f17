"""Learners that cluster clients: settings and builders."""

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
    """Builds ClusterFL; see ``jaxanon.federated.clustering.clusterfl``.

    Models are compared on windows of random noise at random levels, so no private data
    is needed. A network with one output counts as predicting a number.
    """
    network = network_of(spec, config)
    shape = (config.probe, spec.time, len(spec.channels))

    def probe(key):
        if spec.tokens:  # Token ids from 0.
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
    """Builds FedDL; see ``jaxanon.federated.clustering.feddl``."""
    layers = network_of(spec, config).layers
    names = (*STEP, "similarity")
    return personal_learner(
        "feddl", spec, config, federated.feddl, names, layers=layers
    )


def fedmask(spec, config) -> Method:
    """Builds FedMask; see ``jaxanon.federated.personalised.fedmask``."""
    layers = network_of(spec, config).layers
    count = len(layers) if config.masked_layers is None else config.masked_layers
    if count > len(layers):
        raise ValueError(
            f"masked_layers must be at most {len(layers)}, the layers of the model, "
            f"got {count}; lower it."
        )
    return personal_learner(
        "fedmask",
        spec,
        config,
        federated.fedmask,
        (*STEP, "certainty"),
        weighting="clients",
        masked_layers=layers[-count:],
    )


def centralized_clustering(spec, config) -> Method:
    """Builds a model per cluster; see ``federated.clustering.centralised``."""
    network = network_of(spec, config)
    algorithm = federated.centralized_clustering(
        network.init,
        loss_of(network, spec),
        steps=steps_of(config),
        num_clients=spec.num_classes("subject"),
        num_clusters=config.clusters,
        features_fn=_statistics if config.by == "windows" else None,
        alone=config.alone,
    )
    name = "centralized_clustering"
    method = learner(name, spec, config, algorithm, network, STEP)
    schedule = method.schedule._replace(work_per_round=lambda data: config.clusters)
    return method._replace(schedule=schedule)


def _statistics(rows, mask):
    """Returns mean and std of each channel of a client's windows."""
    x = rows["x"]
    count = jnp.maximum(jnp.sum(mask), 1) * x.shape[1]
    real = mask[:, None, None]
    mean = jnp.sum(jnp.where(real, x, 0), axis=(0, 1)) / count
    squares = jnp.where(real, (x - mean[None, None]) ** 2, 0)
    return mean, jnp.sqrt(jnp.sum(squares, axis=(0, 1)) / count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterFLConfig(LearnerConfig):
    """Settings of ClusterFL."""

    clusters: int = setting(3, at_least=1, help="number of clusters of clients")
    alpha: float = setting(
        1e-3, at_least=0, help="α, weight of the models' squared norms"
    )
    beta: float = setting(
        5e-4, at_least=0, help="β, weight of the distance between models of a cluster"
    )
    rho: float = setting(
        4e-3,
        above=0,
        help="ρ of the augmented Lagrangian; above 4 β, or the dual variables "
        "oscillate (paper: 0.002 = 4 β)",
    )
    temperature: float = setting(
        6.0, above=0, help="divisor of logits before comparison"
    )
    every: int = setting(3, at_least=1, help="rounds between two clusterings")
    probe: int = setting(
        64, at_least=1, help="number of noise windows on which models are compared"
    )
    variant: str = setting(
        "corrected",
        choices=VARIANTS,
        help="corrected: move models towards their cluster; official: the sign of "
        "the authors' program, which also omits the other models' part",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.rho <= 2 * self.beta:
            raise ValueError(
                f"rho must be > 2 beta, {2 * self.beta:g}, got {self.rho!r}; raise it."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedDLConfig(LearnerConfig):
    """Settings of FedDL."""

    similarity: float = setting(
        0.4, at_least=-1, at_most=1, help="minimum cosine similarity of merged layers"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedMaskConfig(LearnerConfig):
    """Settings of FedMask; the network's weights are random and stay fixed."""

    learning_rate: float = setting(200.0, above=0, help="learning rate of the masks")
    masked_layers: int | None = setting(
        None, at_least=1, help="number of last layers with masks; default: all layers"
    )
    certainty: float = setting(
        0.6,
        above=0.5,
        below=1,
        help="minimum sigmoid of a mask entry on which all clients agree",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteredConfig(LearnerConfig):
    """Settings of centralized clustering, which ignores ``client_fraction``."""

    clusters: int = setting(
        3, at_least=1, help="number of clusters; each has one model"
    )
    by: str = setting(
        "updates",
        choices=("updates", "windows"),
        help="updates: cluster by the directions of clients' gradients; windows: by "
        "mean and std of their channels",
    )
    alone: int = setting(
        5, at_least=0, help="initial rounds with one model for all clients"
    )
