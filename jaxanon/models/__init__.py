"""Flax modules: the networks that methods and attackers train."""
