"""Pecan Street: power of homes in Texas, New York and California, by circuit."""
