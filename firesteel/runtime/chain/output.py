"""The end of a chain: a result partition, and the code that routes records into its channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.chain.column_routing import column_route
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.deployment import OutputDescriptor
from firesteel.runtime.model.elements import ControlEvent
from firesteel.runtime.model.key_groups import RoutingTable
from firesteel.runtime.model.partitioner import (
    BroadcastPartitioner,
    CustomPartitioner,
    ForwardPartitioner,
    GlobalPartitioner,
    KeyGroupPartitioner,
    ShufflePartitioner,
)
from firesteel.runtime.model.serialization import preview_record
from firesteel.runtime.network.partition import ResultPartition

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import Loop, LoopWriter

__all__ = ["TaskOutput"]


class TaskOutput:
    """One job edge as its producer sees it."""

    discards = False
    keeps_records = True
    """It holds them until its buffer is full."""

    __slots__ = ("_emit", "_key_selector", "_wait_for_room", "descriptor", "last_flush", "partition", "tag")

    def __init__(self, descriptor: OutputDescriptor, partition: ResultPartition, wait_for_room: Callable[[], None]):
        self.descriptor = descriptor
        self.partition = partition
        self.tag: OutputTag | None = descriptor.tag
        self.last_flush = 0.0
        self._wait_for_room = wait_for_room
        self._key_selector: Callable[[Any], Any] | None = None
        self._emit: Loop | None = None
        partitioner = descriptor.partitioner
        if isinstance(partitioner, KeyGroupPartitioner):
            self._key_selector = method_of(partitioner.key_selector, "get_key")
        elif isinstance(partitioner, (ForwardPartitioner, GlobalPartitioner)) or len(descriptor.channels) == 1:
            if not isinstance(partitioner, CustomPartitioner):
                self._emit = self._emit_to_first
            else:
                self._emit = self._emit_custom
        elif isinstance(partitioner, BroadcastPartitioner):
            self._emit = partition.emit_broadcast
        elif isinstance(partitioner, ShufflePartitioner):
            self._emit = partition.emit_shuffle
        elif isinstance(partitioner, CustomPartitioner):
            self._emit = self._emit_custom
        else:
            self._emit = partition.emit_rebalance

    def use_columns(self) -> None:
        """What comes here are batches of columns."""
        self._key_selector = None
        self._emit = column_route(self.descriptor, self.partition)

    @property
    def functions(self) -> list[Any]:
        """The user's functions that choose a record's channel."""
        partitioner = self.descriptor.partitioner
        if isinstance(partitioner, KeyGroupPartitioner):
            return [partitioner.key_selector]
        if isinstance(partitioner, CustomPartitioner):
            return [partitioner.key_selector, partitioner.partitioner]
        return []

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines that route one record."""
        what = f"sending to '{self.descriptor.consumer_name}'"
        partition = writer.bind("partition", self.partition)
        room = writer.bind("room", self.make_room)
        if self._key_selector is not None:
            writer.prologue(f"{partition}.begin({writer.with_timestamps})")
            key = writer.call(self._key_selector, value)
            subpartitions = self.partition.subpartitions
            if writer.with_timestamps:
                handlers: list[Any] = [(s.values.append, s.timestamps.append) for s in subpartitions]
                add, add_time = writer.new_variable("a"), writer.new_variable("b")
                routes = writer.bind("route", self._routing_table(handlers))
                writer.line(f"{add}, {add_time} = {routes}[{key}]", element=value, what="key_by", output=self)
                writer.line(f"{add}({value}); {add_time}({writer.timestamp})")
            else:
                handlers = [s.values.append for s in subpartitions]
                routes = writer.bind("route", self._routing_table(handlers))
                writer.line(f"{routes}[{key}]({value})", element=value, what="key_by", output=self)
        elif self._emit == self._emit_to_first:
            writer.prologue(f"{partition}.begin({writer.with_timestamps})")
            first = self.partition.subpartitions[0]
            writer.line(f"{writer.bind('add', first.values.append)}({value})", element=value, what=what)
            if writer.with_timestamps:
                writer.line(f"{writer.bind('add_time', first.timestamps.append)}({writer.timestamp})")
        else:
            assert self._emit is not None
            writer.collect(value, self._emit, what)
        writer.at_room_check(f"{room}()")

    def _routing_table(self, handlers: list[Any]) -> RoutingTable:
        counters = self.partition.counters
        return RoutingTable(handlers, self.descriptor.consumer_max_parallelism, lambda: counters.num_records_out)

    def batch_function(self) -> Loop | None:
        """What to call with a whole batch where this output is the only consumer."""
        return self._emit

    def _emit_to_first(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.partition.begin(timestamps is not None)
        self.partition.emit_to(0, values, timestamps)

    def _emit_custom(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        partitioner = self.descriptor.partitioner
        assert isinstance(partitioner, CustomPartitioner)
        choose = method_of(partitioner.partitioner, "partition")
        key_of = method_of(partitioner.key_selector, "get_key")
        channels = len(self.partition.subpartitions)
        indexes = [choose(key_of(value), channels) for value in values]
        for value, index in zip(values, indexes, strict=True):  # noqa: B007 - the failure's account shows the value
            if not isinstance(index, int) or not 0 <= index < channels:
                raise InvalidProgramError(
                    f"The partitioner returned {preview_record(index)}; expected an int from 0 to {channels - 1}.",
                    hint="partition(key, num_partitions) returns the index of a subtask: for instance hash(key) % "
                    "num_partitions for keys that are ints.",
                )
        self.partition.emit_custom(values, timestamps, indexes)

    def after_batch(self) -> None:
        """Closes full buffers."""
        self.partition.after_batch()

    def make_room(self) -> None:
        """Closes full buffers and, if that fills the queue, lets the consumers catch up."""
        partition = self.partition
        partition.after_batch()
        if partition.is_overfull:
            self._wait_for_room()

    def flush(self, now: float) -> None:
        self.last_flush = now
        self.partition.flush()

    def broadcast_event(self, event: ControlEvent) -> None:
        """Sends an event to every consumer, after all records before it."""
        self.partition.broadcast_event(event)
