"""Records written to PostgreSQL tables."""

from firesteel.connectors.postgres.sink.sink import PostgresSink

__all__ = ["PostgresSink"]
