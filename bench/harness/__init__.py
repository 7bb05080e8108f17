"""What all questions share: timing, results, pages, rivals."""
