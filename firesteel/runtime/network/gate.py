"""The consuming end: a task's input, merged from one channel per producer."""

from __future__ import annotations

from collections import deque

from firesteel.runtime.elements import Batch, ControlEvent
from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG, NetworkConfig
from firesteel.runtime.network.credit import CreditReceiver, FloatingBufferPool
from firesteel.runtime.network.serialization import deserialize_batch

__all__ = ["InputChannel", "InputGate"]


class InputChannel:
    """Buffers and events that came from one producer and wait to be read."""

    __slots__ = ("blocked", "gate", "index", "queue", "receiver", "scheduled")

    def __init__(self, gate: InputGate, index: int, receiver: CreditReceiver):
        self.gate = gate
        self.index = index
        self.receiver = receiver
        self.queue: deque[bytes | bytearray | Batch | ControlEvent] = deque()
        self.blocked = False
        self.scheduled = False
        """Whether the gate has the channel in its round."""

    def on_data(self, buffer: bytes | bytearray | Batch, backlog: int) -> None:
        """A data buffer arrived, with that many more waiting at the producer."""
        # Queued first: announcing credit may bring the next buffer in, which must stand behind this one.
        self.queue.append(buffer)
        gate = self.gate
        gate.num_buffers_in += 1
        if type(buffer) is not Batch:
            gate.num_bytes_in += len(buffer)
        if not self.scheduled and not self.blocked:
            self.scheduled = True
            gate.round.append(self)
        self.receiver.on_data(backlog)

    def on_event(self, event: ControlEvent, backlog: int) -> None:
        """An event arrived."""
        self.queue.append(event)
        if not self.scheduled and not self.blocked:
            self.scheduled = True
            self.gate.round.append(self)
        self.receiver.on_backlog(backlog)


class InputGate:
    """Reads its channels in turn, one buffer or event at a time; order is kept within a channel only."""

    __slots__ = ("channels", "floating_buffers", "num_buffers_in", "num_bytes_in", "round")

    def __init__(self, num_channels: int, *, config: NetworkConfig = DEFAULT_NETWORK_CONFIG):
        self.floating_buffers = FloatingBufferPool(config.floating_buffers_per_gate)
        self.channels = [
            InputChannel(self, index, CreditReceiver(config.buffers_per_channel, self.floating_buffers))
            for index in range(num_channels)
        ]
        self.round: deque[InputChannel] = deque()
        """Channels that have something to read and are not blocked, next first."""
        self.num_buffers_in = 0
        self.num_bytes_in = 0

    @property
    def has_input(self) -> bool:
        """Whether poll would return something."""
        return bool(self.round)

    @property
    def queued(self) -> int:
        """Buffers and events waiting to be read, blocked ones included."""
        return sum(len(channel.queue) for channel in self.channels)

    def poll(self) -> tuple[int, Batch | ControlEvent] | None:
        """The next batch or event with its channel's index; None if all channels are empty or blocked."""
        waiting = self.round
        if not waiting:
            return None
        channel = waiting.popleft()
        queue = channel.queue
        item = queue.popleft()
        if queue:
            waiting.append(channel)
        else:
            channel.scheduled = False
        if isinstance(item, ControlEvent):
            return channel.index, item
        batch = item if type(item) is Batch else deserialize_batch(item)  # type: ignore[arg-type]
        channel.receiver.on_consumed()
        return channel.index, batch

    def block(self, channel_index: int) -> None:
        """Skips the channel until it is unblocked; what arrives meanwhile is kept, as far as credit goes."""
        channel = self.channels[channel_index]
        channel.blocked = True
        if channel.scheduled:
            channel.scheduled = False
            self.round.remove(channel)

    def unblock(self, channel_index: int) -> None:
        """Reads the channel again."""
        channel = self.channels[channel_index]
        channel.blocked = False
        if channel.queue and not channel.scheduled:
            channel.scheduled = True
            self.round.append(channel)
