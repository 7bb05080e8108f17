"""Speed of the kernels, one area per file."""
