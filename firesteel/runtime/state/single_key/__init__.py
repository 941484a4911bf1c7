"""Keyed state of a batch: one key at a time."""
