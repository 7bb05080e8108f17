"""PFDRL beside what it is compared with."""
