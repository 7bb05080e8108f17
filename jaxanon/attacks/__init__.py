"""Adversaries: of anonymized windows, and of what clients send."""

from jaxanon.attacks.attacker_data import halves
from jaxanon.attacks.attackers import ATTACKERS, Attacker, features
from jaxanon.attacks.auditing import Canaries, one_run, tell_canaries
from jaxanon.attacks.fingerprint import SIZES, uniqueness
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
    majority_vote,
    mean_log_odds,
    profile_streams,
    runs,
)
from jaxanon.attacks.membership import (
    Membership,
    MembersTold,
    alignments,
    infer_members,
    likelihood_ratios,
    log_odds,
    match,
    nearness,
    shadow,
    tell_members,
)
from jaxanon.attacks.raw_classifiers import Judges, train_judges
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
