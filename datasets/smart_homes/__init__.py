"""Smart homes: binary sensors of seven homes, and what their residents did."""
