"""Sweeps over hyper-parameters and seeds as one program."""

from jaxanon.sweeps.runner import Member, Sweep, sweep

__all__ = ["Member", "Sweep", "sweep"]
