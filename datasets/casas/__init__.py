"""CASAS smart homes: sequences of sensor events, each of one activity."""
