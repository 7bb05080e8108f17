"""Wi-Fi HAR: channel state of a wireless link that people cross."""
