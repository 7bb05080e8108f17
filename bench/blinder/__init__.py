"""Blinder: variants, flips of the shown class, Pareto front, meta-gradient."""
