"""Import of recordings: files and tables in, windows of one rate and unit out."""
