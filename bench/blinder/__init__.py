"""Blinder: its variants, the flip of its shown class, its front, its meta-gradient."""
