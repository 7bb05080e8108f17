"""Files of sensor recordings, for data sets and devices; depends only on NumPy."""
