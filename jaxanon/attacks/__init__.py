"""Attacks on anonymized windows and on the messages of federated clients."""

from jaxanon.attacks.attacker_data import halves
from jaxanon.attacks.attackers import ATTACKERS, Attacker, features
from jaxanon.attacks.auditing import Canaries, guess_canaries, one_run
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
    link_unseen_subjects,
    majority_vote,
    mean_log_odds,
    profile_streams,
    runs,
)
from jaxanon.attacks.membership import (
    Membership,
    MembershipResult,
    alignments,
    infer_members,
    likelihood_ratios,
    log_odds,
    match,
    nearness,
    score_membership,
    shadow,
)
from jaxanon.attacks.raw_classifiers import RawClassifiers, train_raw_classifiers
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
    "Known",
    "Linked",
    "Membership",
    "MembershipResult",
    "OwnShare",
    "RawClassifiers",
    "Target",
    "alignments",
    "client_gradient",
    "compare_streams",
    "correlation",
    "dense_input",
    "features",
    "guess_canaries",
    "halves",
    "infer_members",
    "invert_gradient",
    "know",
    "likelihood_ratios",
    "link_unseen_subjects",
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
    "score_membership",
    "self_train",
    "shadow",
    "train_raw_classifiers",
    "uniqueness",
]
