"""Algorithms with personal models or personal layers."""
