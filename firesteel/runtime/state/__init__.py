"""Keyed state and its backends."""
