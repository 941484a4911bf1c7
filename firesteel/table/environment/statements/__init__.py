"""Statements of each kind, executed."""
