"""Base class for at-least-once sinks, which write as records arrive."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from firesteel.spi.sink import DeliveryGuarantee, Sink, SinkWriter, WriterContext

__all__ = ["AtLeastOnceSink"]

ClientT = TypeVar("ClientT")


class AtLeastOnceSink(Sink, Generic[ClientT]):
    """Base class of at-least-once sinks: a subclass defines how records are written with a client, and flushed.

    Before each checkpoint, and at the end, ``flush`` is called: what was written up to then will not come again. What
    was written after it comes again if the job fails. So a record may be written twice; where that makes no
    difference, because a record overwrites the one with the same key, results are right all the same.

    The object is a description: it is pickled, and opens nothing before ``open`` is called, in each writer.
    """

    max_batch_size: int | None = None
    """How many records ``write`` is given at most, for servers that limit a request; None is no limit."""

    @property
    def name(self) -> str:
        """The operator's name: that of the class."""
        return type(self).__name__

    @abstractmethod
    def open(self, context: WriterContext) -> ClientT:
        """The client of one writer: a connection, a session, an open file."""

    @abstractmethod
    def write(self, client: ClientT, values: Sequence[Any]) -> None:
        """Writes records in order, or begins to."""

    def flush(self, client: ClientT) -> None:
        """Returns once all that was given to ``write`` is written for good."""

    def close(self, client: ClientT) -> None:
        """Closes the client; also after a failure."""

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer with a client of its own."""
        return _AtLeastOnceWriter(self, self.open(context))

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """At least once."""
        return DeliveryGuarantee.AT_LEAST_ONCE


class _AtLeastOnceWriter(SinkWriter[Any]):
    def __init__(self, sink: AtLeastOnceSink[Any], client: Any) -> None:
        self._sink = sink
        self._client = client

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Writes records, in pieces that are not too large."""
        size = self._sink.max_batch_size or len(values)
        for begin in range(0, len(values), size or 1):
            self._sink.write(self._client, values[begin : begin + size])

    def flush(self, end_of_input: bool) -> None:
        """Waits for what was written."""
        self._sink.flush(self._client)

    def close(self) -> None:
        """Closes the client."""
        self._sink.close(self._client)
