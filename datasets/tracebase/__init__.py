"""Tracebase: power of devices at the plug, and homes composed of them."""

from jaxanon.datasets.tracebase.composition import Homes, compose, homes

__all__ = ["Homes", "compose", "homes"]
