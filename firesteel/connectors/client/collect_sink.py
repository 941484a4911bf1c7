"""A sink that hands records to the client that runs the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.spi.sink import DeliveryGuarantee, Sink, SinkWriter, WriterContext

__all__ = ["CollectSink", "CollectWriter"]


class CollectSink(Sink):
    """Sends all records to the client, as lists on one channel."""

    name = "Collect Stream Sink"

    def __init__(self, channel: str) -> None:
        self.channel = channel

    def __repr__(self) -> str:
        return f"CollectSink({self.channel!r})"

    def create_writer(self, context: WriterContext) -> CollectWriter:
        """A writer on the sink's channel."""
        return CollectWriter(context, self.channel)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Once each: with checkpoints the client gets what a checkpoint contains, when it is complete."""
        return DeliveryGuarantee.EXACTLY_ONCE


class CollectWriter(SinkWriter[Any]):
    """Sends each batch as one list."""

    def __init__(self, context: WriterContext, channel: str) -> None:
        self._context = context
        self._channel = channel

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Sends a copy of the batch."""
        if values:
            self._context.send_to_client(self._channel, list(values))
