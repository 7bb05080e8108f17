"""Meta-learning algorithms: federated MAML and Per-FedAvg."""
