"""CIFAR-10: small photographs, divided among artificial clients."""
