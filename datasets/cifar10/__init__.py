"""CIFAR-10: small photographs, dealt to clients that they have not."""
