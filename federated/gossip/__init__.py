"""Averaging among neighbors without a server."""
