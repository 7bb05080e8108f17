"""Adversaries who read private attributes out of anonymized windows."""

from jaxanon.attacks.attackers import ATTACKERS, Attacker
from jaxanon.attacks.intrusive import Judges, train_judges
from jaxanon.attacks.linkage import Linked, link_strangers
from jaxanon.attacks.reidentification import reidentify

__all__ = [
    "ATTACKERS",
    "Attacker",
    "Judges",
    "Linked",
    "link_strangers",
    "reidentify",
    "train_judges",
]
