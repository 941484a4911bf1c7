"""Queries over generated tables, run as streams with failures and as Spark SQL."""
