"""How fast the kernels are, an area a file."""
