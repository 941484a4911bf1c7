"""A sink that writes records into a table."""

from __future__ import annotations

from typing import Any, ClassVar

from firesteel.connectors.postgres.connection import describe_table
from firesteel.connectors.postgres.sink.builder import PostgresSinkBuilder
from firesteel.connectors.postgres.sink.committer import PostgresCommitter
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.connectors.postgres.sink.staging_writer import StagingWriter
from firesteel.connectors.postgres.sink.writer import AppendWriter, BatchWriter, StatementWriter, UpsertWriter
from firesteel.spi.sink import DeliveryGuarantee, Sink, WriterContext

__all__ = ["PostgresSink"]


class PostgresSink(Sink):
    """Writes records into a table of a PostgreSQL database. Start with ``PostgresSink.builder()``.

    In upsert mode a record replaces the row of its key, or deletes it; the table is right again after a failure once
    the records since the checkpoint have come again (EXACTLY_ONCE). Otherwise records are appended: as they come
    (AT_LEAST_ONCE, some twice after a failure), or with their checkpoint, each once, for every reader at every moment
    (EXACTLY_ONCE; see :class:`StagingWriter` for how).
    """

    name: ClassVar[str] = "PostgreSQL Sink"

    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        what = self.settings.statement or describe_table(self.settings.table)
        return f"PostgresSink({what} at {self.settings.connection.describe()})"

    @staticmethod
    def builder() -> PostgresSinkBuilder:
        """Begins a sink."""
        return PostgresSinkBuilder(PostgresSink)

    def create_writer(self, context: WriterContext) -> BatchWriter:
        """A writer with a connection of its own."""
        return self._writer(context, restored=False)

    def restore_writer(self, context: WriterContext, state: list[Any]) -> BatchWriter:
        """A writer that comes after another attempt's."""
        return self._writer(context, restored=True)

    def create_committer(self) -> PostgresCommitter | None:
        """One that moves staged rows into the table, if there are any."""
        return PostgresCommitter(self.settings) if self.settings.stages else None

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """As it was built."""
        return self.settings.guarantee

    def needs_checkpoints(self) -> bool:
        """Whether rows wait for a checkpoint."""
        return self.settings.stages

    def _writer(self, context: WriterContext, *, restored: bool) -> BatchWriter:
        if self.settings.statement is not None:
            return StatementWriter(context, self.settings)
        if self.settings.is_upsert:
            return UpsertWriter(context, self.settings)
        if self.settings.stages:
            return StagingWriter(context, self.settings, restored=restored)
        return AppendWriter(context, self.settings)
