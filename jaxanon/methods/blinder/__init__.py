"""Blinder and its variants: federated, averaged and distilled."""
