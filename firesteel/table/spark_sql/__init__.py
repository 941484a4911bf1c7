"""Bounded queries as Spark SQL."""
