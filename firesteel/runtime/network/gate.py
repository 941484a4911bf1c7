"""Input gate: a task's input, merged from one channel per producer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.wire import COLUMNS, ColumnDecoder, EncodedColumns, decode_columns, encode_columns
from firesteel.runtime.model.elements import Batch, CheckpointBarrier, ControlEvent, EndOfPartition
from firesteel.runtime.model.serialization import deserialize_batch, serialize_records
from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG, NetworkConfig
from firesteel.runtime.network.credit import CreditReceiver, FloatingBufferPool

__all__ = ["HandedOver", "InFlightItem", "InputChannel", "InputGate", "read_in_flight", "to_in_flight"]

InFlightItem = bytes | ControlEvent
"""What a channel holds, as a checkpoint stores it: the bytes of a serialised batch, or an event. Columns have their
schema with them."""


class _Uncounted:
    """A buffer in a channel's queue that took no credit: restored, or the rest of one that was read in part."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: bytes | bytearray | Batch):
        self.buffer = buffer


_Queued = bytes | bytearray | Batch | ControlEvent | _Uncounted


def to_in_flight(item: _Queued | EncodedColumns) -> InFlightItem:
    """A queued item as a checkpoint stores it."""
    if type(item) is _Uncounted:
        item = item.buffer
    if type(item) is Batch:
        if isinstance(item.values, ColumnBatch):
            return encode_columns(item.values)
        return serialize_records(item.values, item.timestamps)
    if type(item) is EncodedColumns:
        return item.to_bytes(with_schema=True)
    return item if isinstance(item, ControlEvent) else bytes(item)  # type: ignore[arg-type]


def read_in_flight(item: bytes) -> Batch:
    """The batch of a stored item that is not an event."""
    return Batch(decode_columns(item)) if item[0] == COLUMNS else deserialize_batch(item)


class HandedOver:
    """Counts records that tasks of one slot hand to each other as objects, which have no bytes to count."""

    __slots__ = ("records", "sample")

    MAX_SAMPLE_RECORDS = 4

    def __init__(self) -> None:
        self.records = 0
        self.sample: Sequence[Any] | None = ()
        """A few records, to see how large they are; empty while some are wanted, None while not."""

    def add(self, values: Sequence[Any]) -> None:
        """Counts the records of a buffer."""
        self.records += len(values)
        if self.sample is not None:
            self.sample = values[: self.MAX_SAMPLE_RECORDS]


class InputChannel:
    """Buffers and events that came from one producer and wait to be read."""

    __slots__ = ("_columns", "blocked", "gate", "index", "queue", "receiver", "recorded", "scheduled", "served")

    def __init__(self, gate: InputGate, index: int, receiver: CreditReceiver):
        self.gate = gate
        self.index = index
        self.receiver = receiver
        self.queue: deque[_Queued] = deque()
        self.blocked = False
        self.scheduled = False
        """Whether the gate has the channel among those to be read."""
        self.served = 0
        """Records read from the channel; after a time without any, as many as from the others."""
        self.recorded: list[InFlightItem] | None = None
        """While an unaligned checkpoint waits for this channel's barrier: what arrives before it."""
        self._columns: ColumnDecoder | None = None

    def on_data(self, buffer: bytes | bytearray | Batch, backlog: int) -> None:
        """A data buffer arrived, with that many more waiting at the producer."""
        gate = self.gate
        gate.num_buffers_in += 1
        if type(buffer) is Batch:
            gate.objects.add(buffer.values)
        else:
            gate.num_bytes_in += len(buffer)
            if buffer[0] == COLUMNS:  # type: ignore[index]
                buffer = self._read_columns(buffer)  # type: ignore[arg-type]
        # Queued first: announcing credit may bring the next buffer in, which must stand behind this one.
        self.queue.append(buffer)
        if self.recorded is not None:
            self.recorded.append(to_in_flight(buffer))
        if not self.scheduled and not self.blocked:
            gate.schedule(self)
        self.receiver.on_data(backlog)

    def _read_columns(self, payload: bytes | bytearray) -> Batch:
        # now, as the schema has come with an earlier batch; columns are read in place, so this copies nothing
        if self._columns is None:
            self._columns = ColumnDecoder()
        return Batch(self._columns.decode(payload))

    def on_event(self, event: ControlEvent, backlog: int) -> None:
        self.queue.append(event)
        if not self.scheduled and not self.blocked:
            self.gate.schedule(self)
        if type(event) is CheckpointBarrier or type(event) is EndOfPartition:
            self.gate.on_mark(self.index, event)
        elif self.recorded is not None:
            self.recorded.append(event)
        self.receiver.on_backlog(backlog)

    def restore(self, items: Iterable[InFlightItem]) -> None:
        """Puts what was in flight at a checkpoint before everything that will arrive."""
        self.queue.extend(item if isinstance(item, ControlEvent) else _Uncounted(_restored(item)) for item in items)
        if self.queue and not self.scheduled and not self.blocked:
            self.gate.schedule(self)

    def in_flight(self, checkpoint_id: int) -> tuple[list[InFlightItem], bool]:
        """What is queued before the barrier of a checkpoint, and whether that barrier is there."""
        items: list[InFlightItem] = []
        for item in self.queue:
            if isinstance(item, CheckpointBarrier):
                if item.checkpoint_id >= checkpoint_id:
                    return items, True
                continue  # of an older checkpoint, which is void by now
            if isinstance(item, EndOfPartition):
                return items, True
            items.append(to_in_flight(item))
        return items, False


class InputGate:
    """Reads one buffer or event at a time; order is kept within a channel only.

    The channel from which the fewest records were read goes first. Channels whose buffers are small, or cut into parts
    by a slow task, get the same share of the records as the others. What a channel did not use while it was empty is
    lost to it: it does not go before the others until it has caught up.
    """

    __slots__ = (
        "_buffers",
        "_ready",
        "_sequence",
        "_served",
        "channels",
        "floating_buffers",
        "num_buffers_in",
        "num_bytes_in",
        "objects",
        "on_mark",
        "on_restored_read",
        "restored",
    )

    def __init__(self, num_channels: int, *, config: NetworkConfig = DEFAULT_NETWORK_CONFIG):
        self.floating_buffers = FloatingBufferPool(config.floating_buffers_per_gate)
        self.channels = [
            InputChannel(self, index, CreditReceiver(config.buffers_per_channel, self.floating_buffers))
            for index in range(num_channels)
        ]
        self._ready: list[tuple[int, int, InputChannel]] = []
        """A heap of the channels that have something to read and are not blocked, by ``served`` and in turn."""
        self._sequence = 0
        self._served = 0
        """``served`` of the channel that was read last, when it was read."""
        self.restored: deque[tuple[int, bytes | Batch]] | None = None
        """After rescaling: channels and what was in flight there, to be read before anything that arrives."""
        self._buffers = config.buffers_per_channel * num_channels + config.floating_buffers_per_gate
        self.num_buffers_in = 0
        self.num_bytes_in = 0
        self.objects = HandedOver()
        self.on_mark: Callable[[int, ControlEvent], None] = _nobody_looks
        """Hears of a barrier or the end of a channel when it arrives, before it is read."""
        self.on_restored_read: Callable[[], None] = _nobody_waits
        """Called when the last of ``restored`` is read; a part of it may yet be put back."""

    @property
    def has_input(self) -> bool:
        """Whether poll would return something."""
        return bool(self._ready or self.restored)

    @property
    def queued(self) -> int:
        """Buffers and events waiting to be read, blocked ones included."""
        return sum(len(channel.queue) for channel in self.channels) + len(self.restored or ())

    @property
    def usage(self) -> float:
        """The share of its buffers that hold something which has not been read."""
        return sum(channel.receiver.in_use for channel in self.channels) / self._buffers

    def restore_first(self, channel_index: int, buffers: Iterable[bytes | Batch]) -> None:
        """Puts what was in flight at a checkpoint before everything that will arrive, in any channel.

        After rescaling the records of a split may come from another producer than before, and must not overtake it.
        """
        if self.restored is None:
            self.restored = deque()
        self.restored.extend((channel_index, _restored(buffer)) for buffer in buffers)

    def poll(self, most: int = 1 << 62) -> tuple[int, Batch | ControlEvent] | None:
        """The next event, or batch of at most so many records, with its channel's index.

        None if all channels are empty or blocked.
        """
        if self.restored is not None:
            return self._poll_restored(most)
        if not self._ready:
            return None
        channel = heappop(self._ready)[2]
        self._served = channel.served
        queue = channel.queue
        item = queue.popleft()
        if isinstance(item, ControlEvent):
            self._read_on(channel)
            return channel.index, item
        took_credit = type(item) is not _Uncounted
        buffer = item if took_credit else item.buffer  # type: ignore[union-attr]
        batch: Batch = buffer if type(buffer) is Batch else deserialize_batch(buffer)  # type: ignore[arg-type]
        if len(batch.values) > most:
            batch, rest = batch.split(most)
            queue.appendleft(_Uncounted(rest))
        channel.served += len(batch.values)
        self._read_on(channel)
        if took_credit:
            channel.receiver.on_consumed()
        return channel.index, batch

    def schedule(self, channel: InputChannel) -> None:
        """Adds a channel that has something to read."""
        if channel.served < self._served:
            channel.served = self._served
        channel.scheduled = True
        self._sequence += 1
        heappush(self._ready, (channel.served, self._sequence, channel))

    def _read_on(self, channel: InputChannel) -> None:
        if channel.queue:
            self._sequence += 1
            heappush(self._ready, (channel.served, self._sequence, channel))
        else:
            channel.scheduled = False

    def _remove(self, channel: InputChannel) -> None:
        channel.scheduled = False
        self._ready = [entry for entry in self._ready if entry[2] is not channel]
        heapify(self._ready)

    def _poll_restored(self, most: int) -> tuple[int, Batch | ControlEvent] | None:
        if not self.restored:
            self.restored = None  # not before: a part of the last one might have been put back
            return self.poll(most)
        channel_index, buffer = self.restored.popleft()
        batch = buffer if type(buffer) is Batch else deserialize_batch(buffer)  # type: ignore[arg-type]
        if len(batch.values) > most:
            batch, rest = batch.split(most)
            self.restored.appendleft((channel_index, rest))
        elif not self.restored:
            self.on_restored_read()
        return channel_index, batch

    def push_back(self, channel_index: int, rest: Batch) -> None:
        """Puts the unread rest of a batch back, to be read next from its channel."""
        if self.restored is not None:
            self.restored.appendleft((channel_index, rest))
            return
        channel = self.channels[channel_index]
        channel.queue.appendleft(_Uncounted(rest))
        channel.served -= len(rest.values)
        if channel.scheduled:
            self._remove(channel)
        if not channel.blocked:
            self.schedule(channel)

    def block(self, channel_index: int) -> None:
        """Skips the channel until it is unblocked; what arrives meanwhile is kept, as far as credit goes."""
        channel = self.channels[channel_index]
        channel.blocked = True
        if channel.scheduled:
            self._remove(channel)

    def unblock(self, channel_index: int) -> None:
        channel = self.channels[channel_index]
        channel.blocked = False
        if channel.queue and not channel.scheduled:
            self.schedule(channel)


def _restored(item: bytes | Batch) -> bytes | Batch:
    """A stored buffer as it is queued: columns are decoded at once, as when they arrive."""
    return item if type(item) is Batch or item[0] != COLUMNS else Batch(decode_columns(item))  # type: ignore[index, arg-type]


def _nobody_looks(_channel: int, _event: ControlEvent) -> None:
    """What a gate calls before its task takes part in checkpoints."""


def _nobody_waits() -> None:
    """What a gate calls when what was restored has been read, unless a checkpoint waits for that."""
