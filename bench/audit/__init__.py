"""What a federation's server sees, attacked."""
