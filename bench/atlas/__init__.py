"""Atlas beside what it is compared with."""
