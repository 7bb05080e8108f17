"""CASAS smart homes: sequences of sensor events with one activity each."""
