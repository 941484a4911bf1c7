"""Operators that join streams of columns."""
