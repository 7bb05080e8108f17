"""Generative adversarial networks, the baselines of PrivateHub."""
