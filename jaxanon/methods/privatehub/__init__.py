"""PrivateHub: synthetic streams by diffusion."""
