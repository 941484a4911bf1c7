"""Operators of process table functions."""
