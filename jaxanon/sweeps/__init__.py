"""Sweeps over settings, seeds and splits, trained as one program."""

from jaxanon.sweeps.runner import Member, Sweep, sweep

__all__ = ["Member", "Sweep", "sweep"]
