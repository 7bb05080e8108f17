"""Utility and privacy of Blinder's recipes."""
