"""Occupancy: people in a room, with CO2, temperature, light, sound and motion."""
