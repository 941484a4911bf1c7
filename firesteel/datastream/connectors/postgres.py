"""PostgreSQL as source and sink."""

from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError
from firesteel.connectors.postgres.sink import PostgresSink
from firesteel.connectors.postgres.sink_builder import PostgresSinkBuilder
from firesteel.connectors.postgres.source import PostgresSource, PostgresSourceBuilder

__all__ = [
    "PostgresConnectionError",
    "PostgresConnectionOptions",
    "PostgresError",
    "PostgresSink",
    "PostgresSinkBuilder",
    "PostgresSource",
    "PostgresSourceBuilder",
]
