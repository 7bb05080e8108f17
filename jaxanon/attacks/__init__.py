"""Adversaries who read private attributes out of anonymized windows."""

from jaxanon.attacks.attackers import ATTACKERS, Attacker
from jaxanon.attacks.intrusive import Judges, train_judges
from jaxanon.attacks.linkage import Linked, link_strangers
from jaxanon.attacks.reidentification import reidentify
from jaxanon.attacks.shares import halves

__all__ = [
    "ATTACKERS",
    "Attacker",
    "Judges",
    "Linked",
    "halves",
    "link_strangers",
    "reidentify",
    "train_judges",
]
