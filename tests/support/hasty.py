"""Judges and attackers that hardly learn, where nobody asks how well they do."""

from unittest import mock

from jaxanon.attacks import attackers


def hasty():
    """As long as it is entered, networks train for 50 steps where nobody says more."""
    return mock.patch.dict(attackers.fit_networks.__kwdefaults__, steps=50)
