"""A sink that drops every record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.spi.sink import Sink, SinkWriter, WriterContext

__all__ = ["DiscardingSink", "DiscardingWriter"]


class DiscardingSink(Sink):
    """Drops every record: for benchmarks, and for streams that matter only for their side effects."""

    name = "Discarding Sink"

    def __repr__(self) -> str:
        return "DiscardingSink()"

    def create_writer(self, context: WriterContext) -> DiscardingWriter:
        """A writer that writes nothing."""
        return DiscardingWriter()


class DiscardingWriter(SinkWriter[Any]):
    """Writes nothing."""

    discards_records = True
    """Declares that records need not be passed to the sink at all."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Drops the batch."""
