"""MATCH_RECOGNIZE on columns."""
