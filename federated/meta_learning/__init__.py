"""Meta-learning algorithms: MAML over clients and Per-FedAvg."""
