"""Rows of a PostgreSQL table or query."""

from firesteel.connectors.postgres.source.source import PostgresSource, PostgresSourceBuilder

__all__ = ["PostgresSource", "PostgresSourceBuilder"]
