"""Adversaries who read private attributes out of anonymized windows."""

from jaxanon.attacks.attackers import ATTACKERS, Attacker
from jaxanon.attacks.features import features
from jaxanon.attacks.fingerprint import SIZES, uniqueness
from jaxanon.attacks.intrusive import Judges, train_judges
from jaxanon.attacks.inversion import (
    Inverted,
    client_gradient,
    correlation,
    invert_gradient,
)
from jaxanon.attacks.linkage import (
    Linked,
    compare_streams,
    link_strangers,
    profile_streams,
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
    "Inverted",
    "Judges",
    "Known",
    "Linked",
    "OwnShare",
    "Target",
    "client_gradient",
    "compare_streams",
    "correlation",
    "features",
    "halves",
    "invert_gradient",
    "know",
    "link_strangers",
    "majority_vote",
    "mean_log_odds",
    "profile_streams",
    "reidentify",
    "reidentify_as_released",
    "reidentify_by_class",
    "runs",
    "self_train",
    "train_judges",
    "uniqueness",
]
