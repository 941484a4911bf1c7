"""Queries that are drawn at random: each knows its text, and computes its rows naively."""
