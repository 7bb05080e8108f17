"""Cohorts, local training, layouts and simulation of rounds."""
