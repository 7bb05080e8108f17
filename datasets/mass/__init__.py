"""MASS: nights of 200 people in the laboratory, with a sleep stage for each epoch."""
