"""PostgreSQL as source and sink."""

from firesteel.connectors.postgres.cdc.change_record import (
    ChangeRecord,
    DebeziumDeserializationSchema,
    EnvelopeDeserializationSchema,
    JsonDebeziumDeserializationSchema,
    RowDebeziumDeserializationSchema,
)
from firesteel.connectors.postgres.cdc.options import StartupOptions
from firesteel.connectors.postgres.cdc.source import PostgresCdcSource, PostgresCdcSourceBuilder
from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError
from firesteel.connectors.postgres.sink.builder import PostgresSinkBuilder
from firesteel.connectors.postgres.sink.sink import PostgresSink
from firesteel.connectors.postgres.source.source import PostgresSource, PostgresSourceBuilder

__all__ = [
    "ChangeRecord",
    "DebeziumDeserializationSchema",
    "EnvelopeDeserializationSchema",
    "JsonDebeziumDeserializationSchema",
    "PostgresCdcSource",
    "PostgresCdcSourceBuilder",
    "PostgresConnectionError",
    "PostgresConnectionOptions",
    "PostgresError",
    "PostgresSink",
    "PostgresSinkBuilder",
    "PostgresSource",
    "PostgresSourceBuilder",
    "RowDebeziumDeserializationSchema",
    "StartupOptions",
]
