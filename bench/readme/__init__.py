"""README's tables, from the rows of bench/results."""
