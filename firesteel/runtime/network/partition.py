"""Result partition: a task's output, with one subpartition per consumer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.errors import FiresteelError, RecordSerializationError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.exchange import gather, is_gathered
from firesteel.runtime.columns.wire import ColumnEncoder, EncodedColumns
from firesteel.runtime.model.elements import Batch, CheckpointBarrier, ControlEvent
from firesteel.runtime.model.serialization import preview_record, serialize_records
from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG, NetworkConfig
from firesteel.runtime.network.credit import CreditSender
from firesteel.runtime.network.gate import HandedOver, InFlightItem, to_in_flight

__all__ = ["OVERDRAFT_BUFFERS", "OutputCounters", "ResultPartition", "ResultSubpartition"]

_LONG_BUFFER = 4
"""An open buffer of more than this many times its target is closed as several buffers."""

_MIN_CAP = 256
"""Records a buffer may always hold: with fewer, the cost of a buffer outweighs that of its records."""

_PROBE_RECORDS = 16
"""Records measured before the first buffer of a subpartition is closed, if it holds many."""


OVERDRAFT_BUFFERS = 16
"""Buffers a batch that has begun may produce beyond the limit before its turn ends: a task should wait between batches,
where a checkpoint can be taken, and in the middle of one only if a single record or timer gives so many."""


class OutputCounters:
    """What the subpartitions of one partition count together."""

    __slots__ = ("full", "num_buffers_out", "num_bytes_out", "num_records_out", "objects", "queued")

    def __init__(self) -> None:
        self.queued = 0
        """Finished data buffers not yet sent."""
        self.full = 0
        """Subpartitions that hold as many of them as they may."""
        self.num_buffers_out = 0
        self.num_bytes_out = 0
        self.num_records_out = 0
        self.objects = HandedOver()


def _nobody_waits(_checkpoint_id: int) -> None:
    """What a subpartition calls for a barrier that leaves, unless a checkpoint waits for that."""


def _not_connected() -> None:
    """What a subpartition calls before it is connected: its buffers wait."""


class ResultSubpartition:
    """What one consumer gets: an open buffer that records are appended to, and a queue of finished ones.

    ``values`` and ``timestamps`` are the open buffer. They stay the same list objects for good, so generated
    code may hold on to their ``append``. ``timestamps`` is empty while records carry none. In a stream of columns
    ``values`` holds batches, which become one when the buffer is closed.
    """

    __slots__ = (
        "_columns",
        "_config",
        "_measured",
        "_most",
        "counters",
        "on_available",
        "on_barrier_sent",
        "sender",
        "serialized",
        "target",
        "timestamps",
        "values",
    )

    def __init__(self, *, serialized: bool = True, config: NetworkConfig = DEFAULT_NETWORK_CONFIG):
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.target = config.initial_records_per_buffer
        """Records at which the open buffer counts as full; follows the size of the records seen last."""
        self.serialized = serialized
        self.sender: CreditSender[bytes | Batch | EncodedColumns] = CreditSender()
        self.counters = OutputCounters()
        self.on_available: Callable[[], None] = _not_connected
        self.on_barrier_sent: Callable[[int], None] = _nobody_waits
        self._config = config
        self._most = config.max_records_per_buffer
        self._measured = not serialized
        self._columns: ColumnEncoder | None = None

    @property
    def queued(self) -> int:
        """Finished data buffers not yet sent."""
        return self.sender.backlog

    @property
    def open_records(self) -> int:
        """Records in the open buffer."""
        values = self.values
        return sum(map(len, values)) if values and values[0].__class__ is ColumnBatch else len(values)

    @property
    def is_available(self) -> bool:
        """Whether poll would return something."""
        return self.sender.is_available

    def set_serialized(self, serialized: bool) -> None:
        """Sets whether buffers leave as bytes or as Batch objects; only before anything is written."""
        self.serialized = serialized
        self._measured = not serialized

    def finish_buffer(self) -> None:
        """Closes the open buffer, if it holds anything, and queues it."""
        values = self.values
        count = len(values)
        if not count:
            return
        if values[0].__class__ is ColumnBatch:
            self._finish_columns()
            return
        timestamps = self.timestamps or None
        if timestamps is not None and len(timestamps) != count:
            raise ValueError(f"{count} records but {len(timestamps)} timestamps in one buffer")
        if not self._measured and count > _LONG_BUFFER * _PROBE_RECORDS:
            self._measure(len(serialize_records(values[:_PROBE_RECORDS], None)), _PROBE_RECORDS)
        if count <= self.target * _LONG_BUFFER:
            self._close(values, timestamps, count)
        else:
            start = 0
            while start < count:
                end = min(start + self.target, count)
                self._close(values[start:end], timestamps and timestamps[start:end], end - start)
                start = end
        values.clear()
        self.timestamps.clear()
        self.on_available()

    def add_columns(self, batch: ColumnBatch) -> None:
        """Adds rows, and closes the buffer if there are enough."""
        self.values.append(batch)
        if is_gathered(self.values, self._config.gathered_columns_size):
            self._finish_columns()

    def _finish_columns(self) -> None:
        parts = list(self.values)
        self.values.clear()
        for batch in gather(parts, self._config.max_columns_size):
            self._close_columns(batch)
        self.on_available()

    def _close_columns(self, batch: ColumnBatch) -> None:
        if not self.serialized:
            self.add_buffer(Batch(batch), len(batch))
            return
        for encoded, rows in self._encoded(batch):
            self.add_buffer(encoded, rows)

    def _encoded(self, batch: ColumnBatch) -> list[tuple[EncodedColumns, int]]:
        if self._columns is None:
            self._columns = ColumnEncoder()
        encoded, count = self._columns.encode(batch), len(batch)
        if len(encoded) <= self._config.max_frame_bytes:
            return [(encoded, count)]
        if count == 1:
            raise self._too_large(len(encoded), batch)
        # the schema was to be sent with the whole
        self._columns = None
        return [*self._encoded(batch[: count // 2]), *self._encoded(batch[count // 2 :])]

    def add_event(self, event: ControlEvent) -> None:
        """Queues an event behind everything appended so far."""
        if self.values:
            self.finish_buffer()
        self.sender.add(event)
        self.on_available()

    def overtake(self, barrier: CheckpointBarrier) -> list[InFlightItem]:
        """Sends a barrier ahead of everything that waits here; returns what it overtook.

        Where an aligned barrier of the same checkpoint is queued already, the new one takes its place and overtakes
        only what was before it.
        """
        if self.values:
            self.finish_buffer()
        sender = self.sender
        queued = next(
            (
                item
                for item in sender.items()
                if isinstance(item, CheckpointBarrier) and item.checkpoint_id == barrier.checkpoint_id
            ),
            None,
        )
        before = len(sender) if queued is None else sender.remove(queued)
        overtaken = sender.overtake(barrier, before)
        self.on_available()
        return [to_in_flight(item) for item in overtaken if not isinstance(item, CheckpointBarrier)]

    def holds_barrier(self, checkpoint_id: int) -> bool:
        """Whether the barrier of a checkpoint still waits to be sent."""
        return any(
            isinstance(item, CheckpointBarrier) and item.checkpoint_id == checkpoint_id for item in self.sender.items()
        )

    def add_buffer(self, buffer: bytes | Batch | EncodedColumns, records: int) -> None:
        """Queues a finished buffer without notifying the consumer yet."""
        sender = self.sender
        sender.add(buffer)
        counters = self.counters
        counters.queued += 1
        if sender.backlog == self._config.max_buffers_per_channel:
            counters.full += 1
        counters.num_buffers_out += 1
        counters.num_records_out += records
        if type(buffer) is Batch:
            counters.objects.add(buffer.values)
        else:
            counters.num_bytes_out += len(buffer)

    def poll(self) -> tuple[bytes | Batch | EncodedColumns | ControlEvent, int] | None:
        """The next buffer or event that may be sent, with the backlog behind it."""
        sender = self.sender
        before = sender.backlog
        polled = sender.poll()
        if sender.backlog != before:
            counters = self.counters
            counters.queued -= 1
            if before == self._config.max_buffers_per_channel:
                counters.full -= 1
        elif polled is not None and type(polled[0]) is CheckpointBarrier:
            self.on_barrier_sent(polled[0].checkpoint_id)
        return polled

    def _close(self, values: list[Any], timestamps: list[int] | None, count: int) -> None:
        if not self.serialized:
            self.add_buffer(Batch(list(values), timestamps and list(timestamps)), count)
            return
        for payload, records in self._payloads(values, timestamps, count):
            self.add_buffer(payload, records)

    def _payloads(self, values: list[Any], timestamps: list[int] | None, count: int) -> list[tuple[bytes, int]]:
        payload = serialize_records(values, timestamps)
        size = len(payload)
        self._measure(size, count)
        if size <= self._config.max_frame_bytes:
            return [(payload, count)]
        if count == 1:
            raise self._too_large(size, values[0])
        half = count // 2
        return [
            *self._payloads(values[:half], timestamps and timestamps[:half], half),
            *self._payloads(values[half:], timestamps and timestamps[half:], count - half),
        ]

    def _too_large(self, size: int, record: Any) -> RecordSerializationError:
        return RecordSerializationError(
            f"A record of {size} bytes cannot be sent to another task: the limit is "
            f"{self._config.max_frame_bytes} bytes.",
            record=preview_record(record),
            hint="Emit a reference to large data (a path, a key) or split the record.",
        )

    def limit(self, most: int) -> None:
        """Sets the most records of a buffer, however small they are.

        What all open buffers of a task hold together should stay in the processor's cache until it is pickled.
        """
        self._most = most
        self.target = min(self.target, most)

    def _measure(self, size: int, count: int) -> None:
        self._measured = True
        self.target = min(max(self._config.segment_size * count // size, 1), self._most)


class _BroadcastBuffer(ResultSubpartition):
    """The one open buffer of a broadcasting partition: serialised once, queued in every subpartition."""

    __slots__ = ("_subpartitions",)

    def __init__(self, subpartitions: Sequence[ResultSubpartition], config: NetworkConfig):
        super().__init__(serialized=any(s.serialized for s in subpartitions), config=config)
        self._subpartitions = subpartitions
        self.on_available = self._on_available

    def _close(self, values: list[Any], timestamps: list[int] | None, count: int) -> None:
        payloads = self._payloads(values, timestamps, count) if self.serialized else []
        for subpartition in self._subpartitions:
            if subpartition.serialized:
                for payload, records in payloads:
                    subpartition.add_buffer(payload, records)
            else:
                subpartition.add_buffer(Batch(list(values), timestamps and list(timestamps)), count)

    def _close_columns(self, batch: ColumnBatch) -> None:
        encoded = self._encoded(batch) if self.serialized else []
        for subpartition in self._subpartitions:
            if subpartition.serialized:
                for columns, rows in encoded:
                    subpartition.add_buffer(columns, rows)
            else:
                subpartition.add_buffer(Batch(batch), len(batch))

    def _on_available(self) -> None:
        for subpartition in self._subpartitions:
            subpartition.on_available()


class ResultPartition:
    """A task's output. One partition uses one way to emit: code that appends to the subpartitions' open
    buffers itself (between ``begin`` and ``after_batch``), or one of the ``emit_*`` methods, which do all."""

    __slots__ = (
        "_broadcast",
        "_max_queued",
        "_next_channel",
        "_open",
        "_with_timestamps",
        "config",
        "counters",
        "subpartitions",
    )

    def __init__(
        self,
        subpartitions: Sequence[ResultSubpartition],
        *,
        config: NetworkConfig = DEFAULT_NETWORK_CONFIG,
        first_channel: int = 0,
    ):
        if not subpartitions:
            raise ValueError("a partition needs at least one subpartition")
        self.subpartitions = list(subpartitions)
        self.config = config
        self.counters = OutputCounters()
        most = max(config.max_records_per_buffer // len(self.subpartitions), _MIN_CAP)
        for subpartition in self.subpartitions:
            subpartition.counters = self.counters
            subpartition.limit(most)
        self._open: list[ResultSubpartition] = self.subpartitions
        self._broadcast: _BroadcastBuffer | None = None
        self._with_timestamps = False
        self._next_channel = first_channel % len(self.subpartitions)
        count = len(self.subpartitions)
        self._max_queued = config.buffers_per_channel * count + config.floating_buffers_per_gate

    # -- room and counters --------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether the task may go on producing; it is a soft limit, nothing is refused."""
        counters = self.counters
        return not counters.full and counters.queued < self._max_queued

    @property
    def is_overfull(self) -> bool:
        """Whether even a task in the middle of a batch has to wait."""
        return self.counters.queued >= self._max_queued + OVERDRAFT_BUFFERS

    @property
    def queued(self) -> int:
        """Finished data buffers not yet sent."""
        return self.counters.queued

    @property
    def usage(self) -> float:
        """How much of the room there is has been taken; not more than all."""
        return min(self.counters.queued / self._max_queued, 1.0)

    @property
    def records_emitted(self) -> int:
        """All records so far, those in open buffers too."""
        return self.num_records_out + sum(subpartition.open_records for subpartition in self._open)

    @property
    def objects(self) -> HandedOver:
        """What was handed over as objects."""
        return self.counters.objects

    @property
    def num_bytes_out(self) -> int:
        """Serialised bytes; buffers handed over as objects have none."""
        return self.counters.num_bytes_out

    @property
    def num_buffers_out(self) -> int:
        """Finished data buffers, over all subpartitions."""
        return self.counters.num_buffers_out

    @property
    def num_records_out(self) -> int:
        """Records in finished buffers; one that is broadcast counts once."""
        records = self.counters.num_records_out
        return records if self._broadcast is None else records // len(self.subpartitions)

    # -- buffers ------------------------------------------------------------------------------------

    def begin(self, with_timestamps: bool) -> None:
        """Sets whether the records to come carry timestamps; a buffer holds one kind only."""
        if with_timestamps is not self._with_timestamps:
            self.flush()
            self._with_timestamps = with_timestamps

    def after_batch(self) -> None:
        """Finishes the open buffers that are full."""
        for subpartition in self._open:
            if len(subpartition.values) >= subpartition.target:
                subpartition.finish_buffer()

    def flush(self) -> None:
        """Finishes every open buffer that holds anything."""
        for subpartition in self._open:
            if subpartition.values:
                subpartition.finish_buffer()

    def broadcast_event(self, event: ControlEvent) -> None:
        """Queues an event for every consumer, behind everything emitted so far."""
        self.flush()
        for subpartition in self.subpartitions:
            subpartition.add_event(event)

    def overtake(self, barrier: CheckpointBarrier) -> list[list[InFlightItem]]:
        """Sends a barrier ahead of everything that waits; returns per consumer what it overtook."""
        self.flush()
        return [subpartition.overtake(barrier) for subpartition in self.subpartitions]

    # -- emission by partitioner --------------------------------------------------------------------

    def emit_to(self, index: int, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """All records to one consumer."""
        self.begin(timestamps is not None)
        subpartition = self.subpartitions[index]
        subpartition.values.extend(values)
        if timestamps is not None:
            subpartition.timestamps.extend(timestamps)
        if len(subpartition.values) >= subpartition.target:
            subpartition.finish_buffer()

    def emit_rebalance(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """One record to each consumer in turn, continuing where the last call stopped."""
        self.begin(timestamps is not None)
        subpartitions = self.subpartitions
        n = len(subpartitions)
        count = len(values)
        first = self._next_channel
        for offset in range(min(n, count)):
            subpartition = subpartitions[(first + offset) % n]
            subpartition.values.extend(values[offset::n])
            if timestamps is not None:
                subpartition.timestamps.extend(timestamps[offset::n])
        self._next_channel = (first + count) % n
        self.after_batch()

    def next_channel(self, count: int) -> int:
        """The channel of the next record in turn, after which that of ``count`` records later is the next one."""
        first = self._next_channel
        self._next_channel = (first + count) % len(self.subpartitions)
        return first

    def emit_broadcast(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Every record to every consumer."""
        broadcast = self._broadcast or self._open_broadcast()
        self.begin(timestamps is not None)
        broadcast.values.extend(values)
        if timestamps is not None:
            broadcast.timestamps.extend(timestamps)
        self.after_batch()

    def broadcast_columns(self, batch: ColumnBatch) -> None:
        """All rows to every consumer."""
        (self._broadcast or self._open_broadcast()).add_columns(batch)

    def _open_broadcast(self) -> _BroadcastBuffer:
        self.flush()
        self._broadcast = _BroadcastBuffer(self.subpartitions, self.config)
        self._open = [self._broadcast]
        return self._broadcast

    def emit_shuffle(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Each record to a random consumer."""
        channels = random.choices(range(len(self.subpartitions)), k=len(values))
        self._emit_each(values, timestamps, channels)

    def emit_custom(
        self, values: Sequence[Any], timestamps: Sequence[int] | None, channel_indexes: Sequence[int]
    ) -> None:
        """Each record to the consumer of the index at its place."""
        n = len(self.subpartitions)
        if len(channel_indexes) != len(values):
            raise ValueError(f"{len(values)} records but {len(channel_indexes)} channel indexes")
        if values and (min(channel_indexes) < 0 or max(channel_indexes) >= n):
            wrong, record = next((i, v) for i, v in zip(channel_indexes, values, strict=True) if not 0 <= i < n)
            raise FiresteelError(
                f"The partitioner chose channel {wrong} of {n} for the record {preview_record(record)}",
                hint=f"Partitioner.partition(key, num_partitions) must return an int in 0..{n - 1}.",
            )
        self._emit_each(values, timestamps, channel_indexes)

    def _emit_each(self, values: Sequence[Any], timestamps: Sequence[int] | None, channels: Sequence[int]) -> None:
        self.begin(timestamps is not None)
        append_to = [subpartition.values.append for subpartition in self.subpartitions]
        for channel, value in zip(channels, values, strict=True):
            append_to[channel](value)
        if timestamps is not None:
            stamp = [subpartition.timestamps.append for subpartition in self.subpartitions]
            for channel, timestamp in zip(channels, timestamps, strict=True):
                stamp[channel](timestamp)
        self.after_batch()
