"""Chaos runs of generated programs on two JobManagers."""
