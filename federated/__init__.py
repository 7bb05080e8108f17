"""Clients as an axis: cohorts, local training, aggregation, simulation."""

from jaxanon.federated.averaging.fed_avg import fed_avg
from jaxanon.federated.averaging.fed_prox import fed_prox
from jaxanon.federated.averaging.fed_sgd import fed_sgd
from jaxanon.federated.averaging.localized import localized
from jaxanon.federated.averaging.scaffold import scaffold
from jaxanon.federated.clustering.centralised import clustered
from jaxanon.federated.clustering.cluster_fl import cluster_fl
from jaxanon.federated.clustering.fed_dl import fed_dl
from jaxanon.federated.engine.algorithm import (
    Acts,
    FederatedAlgorithm,
    Rounds,
    State,
    Steps,
)
from jaxanon.federated.engine.cohort import Population, population, sample_cohort, stack
from jaxanon.federated.engine.layout import Layout, default_layout, mean_over_clients
from jaxanon.federated.engine.local import descend
from jaxanon.federated.engine.newcomers import join
from jaxanon.federated.engine.observed import Seen, observed
from jaxanon.federated.engine.personal import PersonalState
from jaxanon.federated.engine.placing import Placed, place
from jaxanon.federated.engine.simulate import Sharded, shard, simulate
from jaxanon.federated.engine.streaming import (
    Stored,
    open_clients,
    stream,
    write_clients,
)
from jaxanon.federated.gossip.gossip import (
    Mailbox,
    Messages,
    base_layers,
    exchange,
    exchange_every,
    mix,
    no_mail,
)
from jaxanon.federated.gossip.graphs import (
    check_mixing,
    complete,
    convergence_rate,
    k_regular,
    metropolis,
    random_graph,
    ring,
)
from jaxanon.federated.gossip.private_gossip import (
    NoisyMailbox,
    exchange_noisily,
    exchange_noisily_every,
    no_noisy_mail,
)
from jaxanon.federated.meta_learning.maml import meta
from jaxanon.federated.meta_learning.per_fed_avg import per_fed_avg
from jaxanon.federated.personalised.ditto import ditto
from jaxanon.federated.personalised.fed_mask import fed_mask
from jaxanon.federated.personalised.fed_per import fed_per
from jaxanon.federated.personalised.fed_rep import fed_rep
from jaxanon.federated.personalised.p_fed_me import p_fed_me
from jaxanon.federated.private.atlas import atlas
from jaxanon.federated.private.dp_fed_avg import dp_fed_avg
from jaxanon.federated.private.dp_sgd import descend_privately, draw_lot
from jaxanon.federated.private.fed_sgd_ldp import fed_sgd_ldp
from jaxanon.federated.private.ldp_fl import ldp_fl, two_points
from jaxanon.federated.private.shuffling import observed_shuffled, shuffled
from jaxanon.privacy.lots import Lots, sampled_gaussian

__all__ = [
    "Acts",
    "FederatedAlgorithm",
    "Layout",
    "Lots",
    "Mailbox",
    "Messages",
    "NoisyMailbox",
    "PersonalState",
    "Placed",
    "Population",
    "Rounds",
    "Seen",
    "Sharded",
    "State",
    "Steps",
    "Stored",
    "atlas",
    "base_layers",
    "check_mixing",
    "cluster_fl",
    "clustered",
    "complete",
    "convergence_rate",
    "default_layout",
    "descend",
    "descend_privately",
    "ditto",
    "dp_fed_avg",
    "draw_lot",
    "exchange",
    "exchange_every",
    "exchange_noisily",
    "exchange_noisily_every",
    "fed_avg",
    "fed_dl",
    "fed_mask",
    "fed_per",
    "fed_prox",
    "fed_rep",
    "fed_sgd",
    "fed_sgd_ldp",
    "join",
    "k_regular",
    "ldp_fl",
    "localized",
    "mean_over_clients",
    "meta",
    "metropolis",
    "mix",
    "no_mail",
    "no_noisy_mail",
    "observed",
    "observed_shuffled",
    "open_clients",
    "p_fed_me",
    "per_fed_avg",
    "place",
    "population",
    "random_graph",
    "ring",
    "sample_cohort",
    "sampled_gaussian",
    "scaffold",
    "shard",
    "shuffled",
    "simulate",
    "stack",
    "stream",
    "two_points",
    "write_clients",
]
