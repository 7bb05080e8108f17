"""Rounds of federated training, ours and rivals'."""
