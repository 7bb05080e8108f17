"""Cohorts, local training, layouts and the simulation of rounds."""
