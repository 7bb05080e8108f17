"""PrivateHub compared with other generators."""
