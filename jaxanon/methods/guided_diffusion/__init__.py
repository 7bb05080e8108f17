"""PrivDiffuser and Cloak: diffusion guided by attribute classifiers."""
