"""Bound expressions: typed trees over the columns of an input."""
