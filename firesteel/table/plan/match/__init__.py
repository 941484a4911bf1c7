"""MATCH_RECOGNIZE in plans."""
