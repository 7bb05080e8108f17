"""Clients as an axis: cohorts, local training, aggregation, simulation."""

from jaxanon.federated.algorithm import Acts, FederatedAlgorithm, State
from jaxanon.federated.atlas import atlas
from jaxanon.federated.cluster_fl import cluster_fl
from jaxanon.federated.clustered import clustered
from jaxanon.federated.cohort import Population, population, sample_cohort, stack
from jaxanon.federated.ditto import ditto
from jaxanon.federated.dp_fed_avg import dp_fed_avg
from jaxanon.federated.fed_avg import fed_avg
from jaxanon.federated.fed_dl import fed_dl
from jaxanon.federated.fed_mask import fed_mask
from jaxanon.federated.fed_per import fed_per
from jaxanon.federated.fed_prox import fed_prox
from jaxanon.federated.fed_rep import fed_rep
from jaxanon.federated.fed_sgd import fed_sgd
from jaxanon.federated.fed_sgd_ldp import fed_sgd_ldp
from jaxanon.federated.gossip import (
    base_layers,
    exchange,
    exchange_every,
    mix,
    no_mail,
)
from jaxanon.federated.graphs import (
    check_mixing,
    complete,
    convergence_rate,
    k_regular,
    metropolis,
    random_graph,
    ring,
)
from jaxanon.federated.joining import join
from jaxanon.federated.layout import Layout, default_layout, mean_over_clients
from jaxanon.federated.ldp_fl import ldp_fl, two_points
from jaxanon.federated.local import descend
from jaxanon.federated.localized import localized
from jaxanon.federated.mail import Mailbox, Messages
from jaxanon.federated.meta import meta
from jaxanon.federated.noisy_gossip import (
    NoisyMailbox,
    exchange_noisily,
    exchange_noisily_every,
    no_noisy_mail,
)
from jaxanon.federated.observed import Seen, observed
from jaxanon.federated.p_fed_me import p_fed_me
from jaxanon.federated.per_fed_avg import per_fed_avg
from jaxanon.federated.personal import PersonalState, Rounds, Steps
from jaxanon.federated.placing import Placed, place
from jaxanon.federated.private import (
    Lots,
    descend_privately,
    draw_lot,
    sampled_gaussian,
)
from jaxanon.federated.scaffold import scaffold
from jaxanon.federated.shuffled import observed_shuffled, shuffled
from jaxanon.federated.simulate import Sharded, shard, simulate
from jaxanon.federated.stored import Stored, open_clients, write_clients
from jaxanon.federated.streaming import stream

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
