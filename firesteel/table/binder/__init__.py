"""Binds parsed statements: names to columns and functions, and types to all expressions."""
