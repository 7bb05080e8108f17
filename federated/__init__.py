"""Federated learning with clients as an array axis."""

from jaxanon.federated.averaging.compression import qsgd, sign, top_k
from jaxanon.federated.averaging.fedavg import fedavg
from jaxanon.federated.averaging.fedbuff import fedbuff
from jaxanon.federated.averaging.feddyn import feddyn
from jaxanon.federated.averaging.fednova import fednova
from jaxanon.federated.averaging.fedopt import fedadagrad, fedadam, fedyogi
from jaxanon.federated.averaging.fedprox import fedprox
from jaxanon.federated.averaging.fedsgd import fedsgd
from jaxanon.federated.averaging.hierarchical import hierarchical
from jaxanon.federated.averaging.localized import localized
from jaxanon.federated.averaging.mime import mime
from jaxanon.federated.averaging.scaffold import scaffold
from jaxanon.federated.clustering.centralised import centralized_clustering
from jaxanon.federated.clustering.clusterfl import clusterfl
from jaxanon.federated.clustering.feddl import feddl
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    RoundStages,
    State,
    Steps,
)
from jaxanon.federated.engine.cohort import (
    Population,
    keyed_permutation,
    population,
    sample_cohort,
    stack,
)
from jaxanon.federated.engine.layout import Layout, default_layout, mean_over_clients
from jaxanon.federated.engine.local import local_sgd
from jaxanon.federated.engine.new_clients import personalize_new_client
from jaxanon.federated.engine.observation import ObservedMessage, simulate_observed
from jaxanon.federated.engine.personal import PersonalState
from jaxanon.federated.engine.sharding import ShardedClients, shard_clients
from jaxanon.federated.engine.simulate import ShardedAlgorithm, shard, simulate
from jaxanon.federated.engine.streaming import (
    StoredClients,
    open_clients,
    stream,
    write_clients,
)
from jaxanon.federated.gossip.gossip import (
    ChannelConfig,
    MessageBuffer,
    base_layers,
    empty_message_buffer,
    exchange,
    exchange_every,
    mix,
)
from jaxanon.federated.gossip.graphs import (
    check_mixing,
    complete_graph,
    convergence_rate,
    k_regular_graph,
    metropolis_weights,
    random_graph,
    ring_graph,
)
from jaxanon.federated.gossip.private_gossip import (
    NoisyMessageBuffer,
    empty_noisy_message_buffer,
    exchange_noisily,
    exchange_noisily_every,
)
from jaxanon.federated.meta_learning.maml import fed_maml
from jaxanon.federated.meta_learning.per_fedavg import per_fedavg
from jaxanon.federated.personalised.ditto import ditto
from jaxanon.federated.personalised.fedbn import fedbn
from jaxanon.federated.personalised.fedmask import fedmask
from jaxanon.federated.personalised.fedper import fedper
from jaxanon.federated.personalised.fedrep import fedrep
from jaxanon.federated.personalised.pfedme import pfedme
from jaxanon.federated.private.atlas import atlas
from jaxanon.federated.private.dp_fedavg import dp_fedavg
from jaxanon.federated.private.dp_ftrl import dp_ftrl, tree_gaussian
from jaxanon.federated.private.dp_sgd import local_dp_sgd, poisson_sample
from jaxanon.federated.private.fedsgd_ldp import fedsgd_ldp
from jaxanon.federated.private.ldp_fl import ldp_fl, two_points
from jaxanon.federated.private.shuffling import (
    shuffle_messages,
    simulate_observed_shuffled,
)
from jaxanon.privacy.poisson_sampling import PoissonSampling, sampled_gaussian

__all__ = [
    "ChannelConfig",
    "FederatedAlgorithm",
    "Layout",
    "MessageBuffer",
    "NoisyMessageBuffer",
    "ObservedMessage",
    "PersonalState",
    "PoissonSampling",
    "Population",
    "RoundConfig",
    "RoundOptions",
    "RoundStages",
    "ShardedAlgorithm",
    "ShardedClients",
    "State",
    "Steps",
    "StoredClients",
    "atlas",
    "base_layers",
    "centralized_clustering",
    "check_mixing",
    "clusterfl",
    "complete_graph",
    "convergence_rate",
    "default_layout",
    "ditto",
    "dp_fedavg",
    "dp_ftrl",
    "empty_message_buffer",
    "empty_noisy_message_buffer",
    "exchange",
    "exchange_every",
    "exchange_noisily",
    "exchange_noisily_every",
    "fed_maml",
    "fedadagrad",
    "fedadam",
    "fedavg",
    "fedbn",
    "fedbuff",
    "feddl",
    "feddyn",
    "fedmask",
    "fednova",
    "fedper",
    "fedprox",
    "fedrep",
    "fedsgd",
    "fedsgd_ldp",
    "fedyogi",
    "hierarchical",
    "k_regular_graph",
    "keyed_permutation",
    "ldp_fl",
    "local_dp_sgd",
    "local_sgd",
    "localized",
    "mean_over_clients",
    "metropolis_weights",
    "mime",
    "mix",
    "open_clients",
    "per_fedavg",
    "personalize_new_client",
    "pfedme",
    "poisson_sample",
    "population",
    "qsgd",
    "random_graph",
    "ring_graph",
    "sample_cohort",
    "sampled_gaussian",
    "scaffold",
    "shard",
    "shard_clients",
    "shuffle_messages",
    "sign",
    "simulate",
    "simulate_observed",
    "simulate_observed_shuffled",
    "stack",
    "stream",
    "top_k",
    "tree_gaussian",
    "two_points",
    "write_clients",
]
