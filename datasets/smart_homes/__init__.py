"""Smart homes: binary sensors and activities of seven homes."""
