"""Attackers and raw-data classifiers with few steps, if accuracy does not matter."""

from unittest import mock

from jaxanon.attacks import attackers


def hasty():
    """Trains networks for 50 steps by default while the context is active."""
    return mock.patch.dict(attackers.fit_networks.__kwdefaults__, steps=50)
