"""Occupancy: CO2, temperature, light, sound and motion in a room, and its people."""
