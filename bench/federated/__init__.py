"""Rounds of federated training by our library and by rivals."""
