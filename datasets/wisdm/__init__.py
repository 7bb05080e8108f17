"""WISDM: a watch on the wrist of 51 people who go about 18 activities."""
