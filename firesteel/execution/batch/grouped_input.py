"""Consumer side of a keyed exchange in a batch: divides a bucket of keys into groups, one per key.

All rows of a bucket are there before its first key is processed. Within a group the records without timestamps come
first, in the order of edges, producers and sequence; then those with timestamps, sorted by them, and where these are
equal in the same order: as Flink sorts them, to which a record without a timestamp has the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from firesteel.execution.batch.columns import Columns, Layout, are_columns, decode_columns
from firesteel.execution.batch.grouping_output import FRAME
from firesteel.execution.stages.exchange_rows import ExchangeRow
from firesteel.runtime.codegen.loops import Loop, compile_loop
from firesteel.runtime.model.serialization import deserialize_batch

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator
    from firesteel.runtime.codegen.loops import LoopWriter

__all__ = ["Grouping", "count_records", "read_columns", "read_frames", "sort_by_timestamps"]


def frames_of(row: ExchangeRow) -> Iterator[tuple[int, memoryview]]:
    """The frames of a row, each with the number of its records."""
    payload, position = row.payload, 0
    while position < len(payload):
        size, count = FRAME.unpack_from(payload, position)
        position += FRAME.size
        yield count, payload[position : position + size]
        position += size


def count_records(row: ExchangeRow) -> int:
    """How many records a row has, without reading them."""
    return sum(count for count, _ in frames_of(row))


def read_frames(row: ExchangeRow) -> Iterator[tuple[Sequence[Any], Sequence[int] | None]]:
    """The records of a row, frame by frame."""
    for count, frame in frames_of(row):
        if are_columns(frame):
            yield decode_columns(frame).records(0, count)
        else:
            batch = deserialize_batch(frame)  # type: ignore[arg-type]
            yield batch.values, batch.timestamps


def read_columns(row: ExchangeRow, layout: Layout | None) -> list[Columns] | None:
    """The columns of a row if it has nothing else, and none of another layout."""
    columns = []
    for _, frame in frames_of(row):
        if not are_columns(frame):
            return None
        found = decode_columns(frame)
        if layout is not None and found.layout != layout:
            return None
        layout = found.layout
        columns.append(found)
    return columns


class _Lists(dict[Any, list[Any]]):
    """A list for every key that is asked for."""

    __slots__ = ()

    def __missing__(self, key: Any) -> list[Any]:
        values = self[key] = []
        return values


class _Stamped(dict[Any, tuple[Any, Any, list[Any], list[int]]]):
    """Two lists for every key that is asked for, and ahead of them how to append to them."""

    __slots__ = ()

    def __missing__(self, key: Any) -> tuple[Any, Any, list[Any], list[int]]:
        values: list[Any] = []
        timestamps: list[int] = []
        added = self[key] = (values.append, timestamps.append, values, timestamps)
        return added


class Grouping:
    """Divides records of one input of a keyed operator by key."""

    def __init__(self, head: RunningOperator, index: int):
        self.plain = _Lists()
        self.stamped = _Stamped()
        self._head = head
        self._index = index
        self._loops: dict[bool, Loop] = {}

    def add(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        with_timestamps = timestamps is not None
        loop = self._loops.get(with_timestamps)
        if loop is None:
            name = self._head.descriptor.name
            loop = self._loops[with_timestamps] = compile_loop(name, [self], with_timestamps)
        loop(values, timestamps)

    def add_row(self, row: ExchangeRow) -> int:
        """Takes the records of a row; returns how many there are."""
        records = 0
        for values, timestamps in read_frames(row):
            self.add(values, timestamps)
            records += len(values)
        return records

    def keys(self) -> Iterable[Any]:
        """The keys, in the order they were first seen."""
        if not self.stamped:
            return self.plain
        return dict.fromkeys([*self.plain, *self.stamped])

    def clear(self) -> None:
        self.plain.clear()
        self.stamped.clear()

    # -- as the target of a generated loop ----------------------------------------------------------

    discards = False
    keeps_records = True

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines that put a record into its group."""
        with writer.operator(self._head):
            key = writer.call(self._head.key_selectors[self._index], value)
            if writer.with_timestamps:
                add, add_time = writer.new_variable("a"), writer.new_variable("b")
                groups = writer.bind("groups", self.stamped)
                writer.line(f"{add}, {add_time}, _, _ = {groups}[{key}]", element=value, what="key_by")
                writer.line(f"{add}({value}); {add_time}({writer.timestamp})")
            else:
                groups = writer.bind("groups", self.plain)
                writer.line(f"{groups}[{key}].append({value})", element=value, what="key_by")

    def batch_function(self) -> Loop | None:
        """None: a record's group depends on its key."""
        return None


def sort_by_timestamps(values: list[Any], timestamps: list[int]) -> tuple[list[Any], list[int]]:
    """Records by their timestamps; those with the same stay as they are.

    >>> sort_by_timestamps(["b", "a", "c"], [2, 1, 2])
    (['a', 'b', 'c'], [1, 2, 2])
    """
    in_order = sorted(timestamps)
    if in_order == timestamps:
        return values, timestamps
    order = sorted(range(len(timestamps)), key=timestamps.__getitem__)
    return list(itemgetter(*order)(values)), in_order
