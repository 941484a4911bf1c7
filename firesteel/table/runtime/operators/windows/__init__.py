"""Operators of windows: aggregations in slices, sessions, joins, and ranks of windows."""
