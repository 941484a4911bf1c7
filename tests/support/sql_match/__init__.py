"""Queries with MATCH_RECOGNIZE, and the tables that they read."""
