"""The generative adversarial networks that PrivateHub is compared with."""
