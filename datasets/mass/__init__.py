"""MASS: laboratory nights of 200 people with a sleep stage for each epoch."""
