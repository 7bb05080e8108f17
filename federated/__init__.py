"""Clients as an axis: cohorts, local training, aggregation, simulation."""

from jaxanon.federated.algorithm import Acts, FederatedAlgorithm, State
from jaxanon.federated.cohort import Population, population, sample_cohort, stack
from jaxanon.federated.fed_avg import fed_avg
from jaxanon.federated.fed_sgd import fed_sgd
from jaxanon.federated.layout import Layout, default_layout, mean_over_clients
from jaxanon.federated.local import descend
from jaxanon.federated.meta import meta
from jaxanon.federated.simulate import Sharded, shard, simulate

__all__ = [
    "Acts",
    "FederatedAlgorithm",
    "Layout",
    "Population",
    "Sharded",
    "State",
    "default_layout",
    "descend",
    "fed_avg",
    "fed_sgd",
    "mean_over_clients",
    "meta",
    "population",
    "sample_cohort",
    "shard",
    "simulate",
    "stack",
]
