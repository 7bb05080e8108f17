"""Scripts of rivals; each runs in its own environment."""
