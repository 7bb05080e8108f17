"""What recommended recipes keep and hide."""
