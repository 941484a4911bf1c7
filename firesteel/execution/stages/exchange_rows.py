"""Rows of a blocking exchange: bytes, each with a number by which it is partitioned and sorted.

The low half of the number is the partition: the consumer's subtask, counted from the first subtask of the first of
the producer's consumers (see ``partition_offsets``). The high half is the order within the partition. What it means
depends on the execution: in a batch it brings the rows of one bucket of keys together and puts a broadcast
side first; in an epoch, where nothing is sorted, it is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "BATCH",
    "EVENTS",
    "GROUPS",
    "REPORT",
    "ExchangeRow",
    "pack_number",
    "pack_row",
    "partition_offsets",
    "unpack_number",
    "unpack_row",
]

BATCH, GROUPS, EVENTS, REPORT = range(4)
"""Kinds of rows: a serialised batch as it crosses the network; records grouped by key; pickled control events; pickled
messages for the JobMaster, which every task on the way passes on."""

_NUMBER = struct.Struct(">q")
_HEADER = struct.Struct("<BIIQ")


class ExchangeRow(NamedTuple):
    """One row, read: which edge and producer it came through, and its place among those of that producer."""

    kind: int
    edge: int
    producer: int
    sequence: int
    payload: memoryview


def pack_number(partition: int, order: int = 0) -> bytes:
    """The number in front of a row. ``order`` has 31 bits.

    >>> unpack_number(pack_number(5, 7))
    (5, 7)
    """
    return _NUMBER.pack(order << 32 | partition)


def unpack_number(number: bytes) -> tuple[int, int]:
    """The partition and the order."""
    (value,) = _NUMBER.unpack(number)
    return value & 0xFFFFFFFF, value >> 32


def pack_row(kind: int, edge: int, producer: int, sequence: int, payload: bytes) -> bytes:
    """A row as it crosses the exchange."""
    return _HEADER.pack(kind, edge, producer, sequence) + payload


def unpack_row(row: bytes) -> ExchangeRow:
    """Reads a row; the payload is not copied.

    >>> unpack_row(pack_row(BATCH, 1, 2, 3, b"abc"))[:4]
    (0, 1, 2, 3)
    """
    kind, edge, producer, sequence = _HEADER.unpack_from(row)
    return ExchangeRow(kind, edge, producer, sequence, memoryview(row)[_HEADER.size :])


def partition_offsets(consumers: Sequence[tuple[str, int]]) -> dict[str, int]:
    """The first partition of each consumer of a vertex, given their ids and parallelisms in the order of its edges.

    >>> partition_offsets([("a", 2), ("b", 3), ("a", 2)])
    {'a': 0, 'b': 2}
    """
    offsets: dict[str, int] = {}
    total = 0
    for vertex_id, parallelism in consumers:
        if vertex_id not in offsets:
            offsets[vertex_id] = total
            total += parallelism
    return offsets
