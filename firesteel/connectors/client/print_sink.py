"""A sink that prints records where the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.spi.sink import DeliveryGuarantee, Sink, SinkWriter, WriterContext

__all__ = ["PRINT_CHANNEL", "PrintSink", "PrintWriter"]

PRINT_CHANNEL = "print"
"""Payloads on this channel are pairs of "stdout" or "stderr" and a list of lines."""


class PrintSink(Sink):
    """Prints each record on the standard output or error of the program, as ``to_text`` shows it.

    The line begins with ``identifier:3> `` for the third of several subtasks, ``3> `` without an identifier,
    ``identifier> `` for a single subtask. (Flink prints where the task runs: on a cluster, into a log.)
    """

    def __init__(
        self, identifier: str | None = None, to_stderr: bool = False, to_text: Callable[[Any], str] = str
    ) -> None:
        self.identifier = identifier
        self.to_stderr = to_stderr
        self._to_text = to_text

    @property
    def name(self) -> str:
        """The operator's name in plans."""
        return f"Print to Std. {'Err' if self.to_stderr else 'Out'}"

    def __repr__(self) -> str:
        return f"PrintSink({self.identifier!r}, to_stderr={self.to_stderr})"

    def create_writer(self, context: WriterContext) -> PrintWriter:
        """A writer with its subtask's prefix."""
        prefix = self.identifier or ""
        if context.parallelism > 1:
            prefix += f"{':' if prefix else ''}{context.subtask_index + 1}"
        stream = "stderr" if self.to_stderr else "stdout"
        return PrintWriter(context, f"{prefix}> " if prefix else "", stream, self._to_text)

    def with_text(self, to_text: Callable[[Any], str]) -> PrintSink:
        """Returns a sink that prints what the function returns."""
        return PrintSink(self.identifier, self.to_stderr, to_text)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """After a failure records may be printed again."""
        return DeliveryGuarantee.AT_LEAST_ONCE


class PrintWriter(SinkWriter[Any]):
    """Sends lines to the client, one message per batch."""

    def __init__(self, context: WriterContext, prefix: str, stream: str, to_text: Callable[[Any], str] = str) -> None:
        self._context = context
        self._prefix = prefix
        self._stream = stream
        self._to_text = to_text

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Sends the records' lines."""
        prefix, to_text = self._prefix, self._to_text
        lines = [prefix + to_text(value) for value in values] if prefix else list(map(to_text, values))
        if lines:
            self._context.send_to_client(PRINT_CHANNEL, (self._stream, lines))
