"""Code shared by all benchmarks: timing, results, pages, rivals."""
