"""Routing of column batches into the channels of an output, by partitioner."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.exchange import KeyExchange, rebalance
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import (
    BroadcastPartitioner,
    CustomPartitioner,
    ForwardPartitioner,
    GlobalPartitioner,
    KeyGroupPartitioner,
    ShufflePartitioner,
)

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import Loop
    from firesteel.runtime.model.deployment import OutputDescriptor
    from firesteel.runtime.network.partition import ResultPartition

__all__ = ["column_route"]


def column_route(descriptor: OutputDescriptor, partition: ResultPartition) -> Loop:
    """Returns what carries batches of columns to their consumers."""
    send = _route(descriptor, partition)

    def emit(values: Sequence[Any], _timestamps: Sequence[int] | None) -> None:
        assert isinstance(values, ColumnBatch), values
        if len(values):
            send(values)

    return emit


def _route(descriptor: OutputDescriptor, partition: ResultPartition) -> Callable[[ColumnBatch], None]:
    partitioner = descriptor.partitioner
    channels = len(partition.subpartitions)
    if isinstance(partitioner, KeyGroupPartitioner):
        selector = partitioner.key_selector
        if not isinstance(selector, ColumnKeySelector):
            raise _needs_columns(descriptor, "key selector")
        exchange = KeyExchange(selector, descriptor.consumer_max_parallelism, channels)
        return lambda batch: _send(partition, exchange.split(batch))
    if isinstance(partitioner, CustomPartitioner):
        raise _needs_columns(descriptor, "partitioner")
    if isinstance(partitioner, BroadcastPartitioner):
        return partition.broadcast_columns
    if isinstance(partitioner, (ForwardPartitioner, GlobalPartitioner)) or channels == 1:
        return partition.subpartitions[0].add_columns
    if isinstance(partitioner, ShufflePartitioner):
        return lambda batch: _send(partition, rebalance(batch, channels, random.randrange(channels)))
    return lambda batch: _send(partition, rebalance(batch, channels, partition.next_channel(len(batch))))


def _send(partition: ResultPartition, parts: Any) -> None:
    subpartitions = partition.subpartitions
    for channel, batch in parts:
        subpartitions[channel].add_columns(batch)


def _needs_columns(descriptor: OutputDescriptor, what: str) -> InvalidProgramError:
    return InvalidProgramError(
        f"The {what} of '{descriptor.consumer_name}' is a function of records, but columns are sent there.",
        hint="Key columns by ColumnKeySelector, or convert them to rows before.",
    )
