"""Recordings of sensors as files, for data sets and devices alike: NumPy alone."""
