"""Room climate: activities and temperature, humidity and light of three rooms."""
