"""Cost of exported models on a device."""
