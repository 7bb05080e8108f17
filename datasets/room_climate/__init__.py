"""Room climate: temperature, humidity and light of three rooms, and activities."""
