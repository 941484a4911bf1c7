"""Local channels between two tasks of one process: the same credits, no sockets."""

from __future__ import annotations

from firesteel.runtime.columns.wire import EncodedColumns
from firesteel.runtime.model.elements import ControlEvent
from firesteel.runtime.network.gate import InputChannel
from firesteel.runtime.network.partition import ResultSubpartition

__all__ = ["LocalChannel", "connect_local"]


def connect_local(subpartition: ResultSubpartition, channel: InputChannel, *, serialized: bool) -> LocalChannel:
    """Joins a producer to a consumer in the same process.

    Tasks of one slot pass records as objects. ``serialized=True`` pickles them, as between two slots.
    """
    if subpartition.serialized is not serialized:
        if subpartition.values or len(subpartition.sender):
            raise ValueError("a subpartition must be connected before it is written to")
        subpartition.set_serialized(serialized)
    return LocalChannel(subpartition, channel)


class LocalChannel:
    """Moves what a subpartition may send into an input channel at once."""

    __slots__ = ("_channel", "_subpartition")

    def __init__(self, subpartition: ResultSubpartition, channel: InputChannel):
        self._subpartition = subpartition
        self._channel = channel
        subpartition.on_available = self._move
        channel.receiver.on_credit = self._on_credit
        self._on_credit()

    def _on_credit(self) -> None:
        self._subpartition.sender.add_credit(self._channel.receiver.take_credit())
        self._move()

    def _move(self) -> None:
        # May run inside itself, as a buffer that arrives can bring credit for the next; order holds because
        # a channel queues what arrives before it announces credit.
        poll = self._subpartition.poll
        channel = self._channel
        while (polled := poll()) is not None:
            item, backlog = polled
            if isinstance(item, ControlEvent):
                channel.on_event(item, backlog)
            elif isinstance(item, EncodedColumns):
                channel.on_data(item.to_bytes(with_schema=False), backlog)
            else:
                channel.on_data(item, backlog)
