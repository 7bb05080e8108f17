"""Attacks on the messages that a federated server receives."""
