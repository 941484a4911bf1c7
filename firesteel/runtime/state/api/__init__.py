"""Interfaces of keyed and operator state, and what all state backends share."""
