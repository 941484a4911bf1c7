"""Producer side of a keyed exchange in a batch: partitions records into buckets of keys.

A record costs what it costs in a stream: its key is looked up in a table of bound ``append`` methods. A bucket with a
few dozen records is pickled while these are still in the processor's cache; what stays is bytes, a frame per pickle.
Records of numbers are divided as columns instead (see ``columns``), many at a time. Frames become a row when a bucket
has enough of them, or when all together have too many.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.execution.batch.column_runs import ColumnRuns, KeyDivisions, field_of_key
from firesteel.execution.batch.columns import has_numpy
from firesteel.execution.stages.exchange_rows import GROUPS, pack_number, pack_row
from firesteel.execution.stages.row_order import bucket_order, grouped_sequence
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.codegen.loops import Loop, LoopWriter
from firesteel.runtime.model.deployment import OutputDescriptor
from firesteel.runtime.model.elements import ControlEvent
from firesteel.runtime.model.key_groups import RoutingTable, subtask_of
from firesteel.runtime.model.serialization import serialize_records
from firesteel.runtime.network.gate import HandedOver

__all__ = ["FRAME", "BucketedPartition", "GroupingOutput", "KeyBucketTable"]

FRAME = struct.Struct("<II")
"""Ahead of each pickle of a row: its length and how many records it has."""

_FRAME_RECORDS = 64
_FRAME_BYTES = 64 << 10
_ROW_BYTES = 256 << 10
_HELD_BYTES = 32 << 20
_QUEUED_BYTES = 64 << 20
_MAX_COLUMNAR_BUCKETS = 1 << 16


class KeyBucketTable(RoutingTable):
    """From key to the handler of its bucket. ``handlers`` are those of all buckets of subtask 0, then of 1, …

    The remainder of a key's hash by ``max_parallelism * buckets`` gives both: divided by ``max_parallelism`` it leaves
    the key's group and so its subtask, as in a stream; the quotient is the bucket.
    """

    __slots__ = ()

    def __init__(self, handlers: Sequence[Any], parallelism: int, max_parallelism: int, records: Callable[[], int]):
        super().__init__([None] * parallelism, max_parallelism, records)
        buckets = len(handlers) // parallelism
        first = [subtask_of(group, max_parallelism, parallelism) * buckets for group in range(max_parallelism)]
        self._by_group = [handlers[subtask + bucket] for bucket in range(buckets) for subtask in first]
        self._max_parallelism = max_parallelism * buckets


class _Bucket:
    """Records of some keys of one consumer, and what has been pickled of them."""

    __slots__ = ("bytes", "frames", "number", "order", "sequence", "timestamps", "values")

    def __init__(self, partition: int, order: int):
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.frames: list[bytes] = []
        self.bytes = 0
        self.order = order
        self.number = pack_number(partition, bucket_order(order))
        self.sequence = 0


class BucketedPartition:
    """What a GroupingOutput writes to, in the place of a ResultPartition.

    Records come into it in one of two ways. They are *gathered*, to be divided as columns; as long as that works, it
    ``is_columnar``. Or they are appended to the buckets as they are. ``take`` gives the rows that are ready.
    """

    has_room = True
    queued = 0
    usage = 0.0

    def __init__(self, edge: int, producer: int, partitions: Sequence[int], buckets: int):
        self._edge = edge
        self._producer = producer
        self.buckets = [_Bucket(partition, bucket) for partition in partitions for bucket in range(buckets)]
        self.is_columnar = False
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.subpartitions: list[Any] = []
        self.num_records_out = self.num_bytes_out = self.num_buffers_out = 0
        self.objects = HandedOver()
        self._runs: ColumnRuns | None = None
        self._divide_objects: Loop | None = None
        self._has_objects = False
        self._frame_records = 1
        self._with_timestamps = False
        self._held = 0
        self._queued = 0
        self._rows: list[bytes] = []
        # looking at every bucket after every batch would cost more than it frees
        self._interval = max(1, len(self.buckets) // 256)
        self._calls = 0

    def gather(self, runs: ColumnRuns, divide_objects: Loop) -> None:
        """Has records be gathered from now on; ``divide_objects`` appends those to buckets that are no columns."""
        self.is_columnar = len(self.buckets) <= _MAX_COLUMNAR_BUCKETS
        self._runs = runs
        self._divide_objects = divide_objects

    @property
    def is_overfull(self) -> bool:
        """Whether so many rows wait to be taken that they should be put aside."""
        return self._queued > _QUEUED_BYTES

    @property
    def records_emitted(self) -> int:
        """All records so far, as far as they are counted."""
        return self.num_records_out

    @property
    def held_records(self) -> int:
        """Records that are held as objects."""
        return len(self.values) + sum(len(bucket.values) for bucket in self.buckets)

    def begin(self, with_timestamps: bool, gathers: bool = False) -> None:
        """Sets whether the records to come carry timestamps, and in which form; a frame holds one kind only."""
        if with_timestamps is not self._with_timestamps:
            self._pickle_all()
            self._with_timestamps = with_timestamps
        elif not gathers:
            self._divide_gathered()
        if not gathers:
            self._write_runs()
            self._has_objects = True

    def add_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Takes records whose key is one of their fields."""
        self.begin(timestamps is not None, gathers=True)
        self._divide_gathered()
        self._divide(values, timestamps, None)

    def after_batch(self) -> None:
        """Divides what was gathered, and pickles what buckets with enough records hold."""
        self._divide_gathered()
        if self._has_objects:
            self._calls += 1
            if self._calls >= self._interval or self._frame_records < _FRAME_RECORDS:
                self._calls = 0
                most = self._frame_records
                for bucket in self.buckets:
                    if len(bucket.values) >= most:
                        self._pickle(bucket)
        if self._held > _HELD_BYTES:
            self._finish_all()

    def flush(self) -> None:
        """Converts all that is collected to rows."""
        self._pickle_all()
        self._finish_all()

    def broadcast_event(self, event: ControlEvent) -> None:
        """Events are not sent: in a batch a consumer detects the end of its input by itself."""

    def take(self) -> Iterator[bytes]:
        """The rows that are ready: number, row, number, row, …"""
        rows, self._rows = self._rows, []
        self._queued = 0
        return iter(rows)

    # -- columns ------------------------------------------------------------------------------------

    def _divide_gathered(self) -> None:
        if self.values:
            # the lists themselves are bound to loops
            values, timestamps, keys = self.values.copy(), self.timestamps.copy(), self.keys.copy()
            self.keys.clear()
            self.values.clear()
            self.timestamps.clear()
            self._divide(values, timestamps or None, keys or None)

    def _divide(self, values: Sequence[Any], timestamps: Sequence[int] | None, keys: list[Any] | None) -> None:
        runs = self._runs
        assert runs is not None
        columns = runs.to_columns(values, timestamps, keys)
        if columns is None:
            assert self._divide_objects is not None
            self.is_columnar = False
            self._write_runs()
            self._has_objects = True
            self._divide_objects(values, timestamps)
            return
        if self._has_objects:
            self._pickle_objects()
        if not runs.fits(columns):
            self._write_runs()
        runs.add(columns, len(values))
        self.num_records_out += len(values)

    def _write_runs(self) -> None:
        if self._runs is not None and self._runs.count:
            for place, count, frame in self._runs.take():
                self._add_frame(self.buckets[place], count, frame)

    # -- objects ------------------------------------------------------------------------------------

    def _pickle_all(self) -> None:
        self._divide_gathered()
        self._write_runs()
        self._pickle_objects()

    def _pickle_objects(self) -> None:
        for bucket in self.buckets:
            if bucket.values:
                self._pickle(bucket)
        self._has_objects = False

    def _pickle(self, bucket: _Bucket) -> None:
        values, timestamps = bucket.values, bucket.timestamps
        # in parts: where one key has most records its bucket is longer than others, and records may be large
        most = self._frame_records * 4
        for start in range(0, len(values), most):
            part = values if len(values) <= most else values[start : start + most]
            times = (timestamps if part is values else timestamps[start : start + most]) or None
            payload = serialize_records(part, times)
            self._frame_records = max(1, min(_FRAME_RECORDS, _FRAME_BYTES * len(part) // len(payload)))
            self.num_records_out += len(part)
            self._add_frame(bucket, len(part), payload)
        values.clear()
        timestamps.clear()

    # -- rows ---------------------------------------------------------------------------------------

    def _add_frame(self, bucket: _Bucket, count: int, payload: bytes) -> None:
        size = len(payload)
        bucket.frames += (FRAME.pack(size, count), payload)
        bucket.bytes += size
        self._held += size
        if bucket.bytes >= _ROW_BYTES:
            self._finish_row(bucket)

    def _finish_all(self) -> None:
        for bucket in self.buckets:
            if bucket.frames:
                self._finish_row(bucket)

    def _finish_row(self, bucket: _Bucket) -> None:
        row = pack_row(
            GROUPS,
            self._edge,
            self._producer,
            grouped_sequence(bucket.order, bucket.sequence),
            b"".join(bucket.frames),
        )
        self._rows += (bucket.number, row)
        self._held -= bucket.bytes
        self._queued += len(row)
        self.num_buffers_out += 1
        self.num_bytes_out += len(row)
        bucket.frames = []
        bucket.bytes = 0
        bucket.sequence += 1


class GroupingOutput(TaskOutput):
    """A keyed job edge as its producer sees it in a batch."""

    __slots__ = ("_key_is_field", "_object_loops")

    partition: BucketedPartition  # type: ignore[assignment]

    def __init__(self, descriptor: OutputDescriptor, partition: BucketedPartition, wait_for_room: Callable[[], None]):
        super().__init__(descriptor, partition, wait_for_room)  # type: ignore[arg-type]
        self._object_loops: dict[bool, Loop] = {}
        assert self._key_selector is not None
        field = field_of_key(self._key_selector)
        self._key_is_field = field is not None
        if has_numpy:
            divisions = KeyDivisions(
                len(descriptor.channels),
                descriptor.consumer_max_parallelism,
                len(partition.buckets) // len(descriptor.channels),
            )
            partition.gather(ColumnRuns(divisions, field, descriptor.reduction), self._divide_objects)

    def use_columns(self) -> None:
        """Refused: records of a key are grouped one by one."""
        raise InvalidProgramError(
            f"'{self.descriptor.consumer_name}' reads columns by key, which a batch cannot do.",
            hint="Set execution.runtime-mode to STREAMING.",
        )

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines that put one record into its bucket, or gather it to be put there."""
        target = self.partition
        if target.values:
            target.after_batch()  # the first records decide the form
        if target.is_columnar:
            self._write_gathering(writer, value)
        else:
            self._write_dividing(writer, value)
        writer.at_room_check(f"{writer.bind('room', self.make_room)}()")

    def _write_gathering(self, writer: LoopWriter, value: str) -> None:
        target = self.partition
        writer.prologue(f"{writer.bind('partition', target)}.begin({writer.with_timestamps}, True)")
        if not self._key_is_field:
            assert self._key_selector is not None
            add_key = writer.bind("add_key", target.keys.append)
            key = writer.call(self._key_selector, value)
            writer.line(f"{add_key}({key})", element=value, what="key_by", output=self)
        text = f"{writer.bind('add', target.values.append)}({value})"
        if writer.with_timestamps:
            text += f"; {writer.bind('add_time', target.timestamps.append)}({writer.timestamp})"
        writer.line(text)

    def _write_dividing(self, writer: LoopWriter, value: str) -> None:
        buckets = self.partition.buckets
        writer.prologue(f"{writer.bind('partition', self.partition)}.begin({writer.with_timestamps})")
        assert self._key_selector is not None
        key = writer.call(self._key_selector, value)
        if writer.with_timestamps:
            table = writer.bind("route", self._table([(b.values.append, b.timestamps.append) for b in buckets]))
            add, add_time = writer.new_variable("a"), writer.new_variable("b")
            writer.line(f"{add}, {add_time} = {table}[{key}]", element=value, what="key_by", output=self)
            writer.line(f"{add}({value}); {add_time}({writer.timestamp})")
        else:
            table = writer.bind("route", self._table([b.values.append for b in buckets]))
            writer.line(f"{table}[{key}]({value})", element=value, what="key_by", output=self)

    def batch_function(self) -> Loop | None:
        """What takes whole batches, where keys need not be computed."""
        return self.partition.add_batch if self.partition.is_columnar and self._key_is_field else None

    def _divide_objects(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Appends records to their buckets."""
        loop = self._object_loops.get(timestamps is not None)
        if loop is None:
            writer = LoopWriter(timestamps is not None, checked=False)
            self._write_dividing(writer, "v0")
            loop = self._object_loops[timestamps is not None] = writer.compile(self.descriptor.consumer_name)
        loop(values, timestamps)

    def _table(self, handlers: list[Any]) -> KeyBucketTable:
        descriptor, partition = self.descriptor, self.partition
        return KeyBucketTable(
            handlers,
            len(descriptor.channels),
            descriptor.consumer_max_parallelism,
            lambda: partition.num_records_out,
        )
