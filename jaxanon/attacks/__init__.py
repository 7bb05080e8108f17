"""Adversaries: of anonymized windows, and of what clients send."""

from jaxanon.attacks.attackers import ATTACKERS, Attacker
from jaxanon.attacks.canaries import Canaries, one_run, tell_canaries
from jaxanon.attacks.features import features
from jaxanon.attacks.fingerprint import SIZES, uniqueness
from jaxanon.attacks.generators import MembersTold, match, nearness, tell_members
from jaxanon.attacks.intrusive import Judges, train_judges
from jaxanon.attacks.inversion import (
    Inverted,
    client_gradient,
    correlation,
    dense_input,
    invert_gradient,
)
from jaxanon.attacks.linkage import (
    Linked,
    compare_streams,
    link_strangers,
    profile_streams,
)
from jaxanon.attacks.membership import (
    Membership,
    alignments,
    infer_members,
    likelihood_ratios,
    log_odds,
    shadow,
)
from jaxanon.attacks.reidentification import (
    Known,
    OwnShare,
    Target,
    know,
    reidentify,
    reidentify_as_released,
    reidentify_by_class,
)
from jaxanon.attacks.self_training import self_train
from jaxanon.attacks.shares import halves
from jaxanon.attacks.streams import majority_vote, mean_log_odds, runs

__all__ = [
    "ATTACKERS",
    "SIZES",
    "Attacker",
    "Canaries",
    "Inverted",
    "Judges",
    "Known",
    "Linked",
    "MembersTold",
    "Membership",
    "OwnShare",
    "Target",
    "alignments",
    "client_gradient",
    "compare_streams",
    "correlation",
    "dense_input",
    "features",
    "halves",
    "infer_members",
    "invert_gradient",
    "know",
    "likelihood_ratios",
    "link_strangers",
    "log_odds",
    "majority_vote",
    "match",
    "mean_log_odds",
    "nearness",
    "one_run",
    "profile_streams",
    "reidentify",
    "reidentify_as_released",
    "reidentify_by_class",
    "runs",
    "self_train",
    "shadow",
    "tell_canaries",
    "tell_members",
    "train_judges",
    "uniqueness",
]
