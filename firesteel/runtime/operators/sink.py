"""The end of a chain that writes to a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.connector import Sink, SinkWriter
from firesteel.runtime.network.serialization import serialize_records
from firesteel.runtime.operators.base import OperatorContext, StreamOperator

__all__ = ["SinkOperator"]


class SinkOperator(StreamOperator):
    """Writes one subtask's records. Is its writer's WriterContext."""

    def __init__(self, sink: Sink):
        self._sink = sink
        self._writer: SinkWriter[Any] | None = None
        self._send: Callable[[str, Any], None] = lambda _channel, _payload: None
        self._client_has_room: Callable[[str], bool] = lambda _channel: True
        self._channel: str | None = None
        self.subtask_index = 0
        self.parallelism = 1
        self.records = 0

    def connect(
        self, subtask: int, parallelism: int, send: Callable[[str, Any], None], has_room: Callable[[str], bool]
    ) -> None:
        """Tells the operator where it is and how to reach the client."""
        self.subtask_index = subtask
        self.parallelism = parallelism
        self._send = send
        self._client_has_room = has_room

    def open(self, context: OperatorContext) -> None:
        """Creates the writer."""
        super().open(context)
        self._writer = self._sink.create_writer(self)
        self._write = self._writer.write_batch

    @property
    def discards(self) -> bool:
        """Whether records need not even be handed over."""
        return bool(getattr(self._writer, "discards_records", False))

    def has_room(self) -> bool:
        """Whether the writer and the client can take more."""
        if self._channel is not None and not self._client_has_room(self._channel):
            return False
        return self._writer is None or self._writer.has_room()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Writes records in order."""
        self.records += len(values)
        self._write(values, timestamps)

    def send_to_client(self, channel: str, payload: Any) -> None:
        """Hands a payload to the client that runs the job."""
        self._channel = channel
        # pickled here, where a record that cannot be pickled still has its operator
        self._send(channel, serialize_records(payload, None))

    def finish(self) -> None:
        """Writes out what is left and, without checkpoints, commits it."""
        assert self._writer is not None
        self._writer.flush(end_of_input=True)
        committables = self._writer.prepare_commit()
        committer = self._sink.create_committer()
        if committer is not None:
            try:
                committer.commit(committables)
            finally:
                committer.close()

    def close(self) -> None:
        """Closes the writer."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()
