"""Atlas compared with other federated learners."""
