"""Puts buffers that were in flight at an unaligned checkpoint back before a task's input."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.handles import ChannelStateHandle
from firesteel.runtime.deployment import InputDescriptor
from firesteel.runtime.elements import Batch, ControlEvent, EndOfData
from firesteel.runtime.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.network.gate import InFlightItem, InputGate
from firesteel.runtime.network.serialization import deserialize_batch, serialize_records
from firesteel.runtime.partitioner import KeyGroupPartitioner

__all__ = ["restore_channels"]


def restore_channels(
    handles: Iterable[ChannelStateHandle],
    gate: InputGate,
    inputs: Sequence[InputDescriptor],
    key_selectors: Sequence[Callable[[Any], Any]],
    key_groups: KeyGroupRange,
    max_parallelism: int,
    files: StateFileReader,
    *,
    rescaled: bool,
) -> None:
    """Queues the items of each channel in their order: first what was at the consumer, then at the producer.

    After rescaling a record may belong to another subtask: each takes those of its own key groups. They are read before
    anything that arrives, as a channel's producer may no longer read what it read before. Watermarks are left out for
    the same reason; new ones will come.
    """
    channels = iter(gate.channels)
    by_edge = {entry.edge: (entry, [next(channels) for _ in entry.channels]) for entry in inputs}
    for handle in sorted(handles, key=lambda h: (h.edge, h.producer, h.consumer, h.at_producer)):
        if handle.edge not in by_edge:
            continue  # the assignment has refused what no edge can take
        entry, own = by_edge[handle.edge]
        items: list[InFlightItem] = pickle.loads(files.read(handle.data))
        if rescaled:
            selector = None
            if isinstance(entry.partitioner, KeyGroupPartitioner):
                selector = key_selectors[entry.input_index]
            records = _own_records(items, selector, key_groups, max_parallelism)
            gate.restore_first(own[handle.producer % len(own)].index, records)
        else:
            index = next(i for i, channel in enumerate(entry.channels) if channel.producer == handle.producer)
            # a producer that has finished says so again
            own[index].restore(item for item in items if not isinstance(item, EndOfData))


def _own_records(
    items: Iterable[InFlightItem],
    key_selector: Callable[[Any], Any] | None,
    key_groups: KeyGroupRange,
    max_parallelism: int,
) -> list[bytes]:
    own: list[bytes] = []
    for item in items:
        if isinstance(item, ControlEvent):
            continue
        if key_selector is not None:
            batch = _filter(deserialize_batch(item), key_selector, key_groups, max_parallelism)
            if not len(batch):
                continue
            item = serialize_records(batch.values, batch.timestamps)
        own.append(item)
    return own


def _filter(batch: Batch, key_selector: Callable[[Any], Any], key_groups: KeyGroupRange, max_parallelism: int) -> Batch:
    kept = [
        index
        for index, value in enumerate(batch.values)
        if key_group_of(key_selector(value), max_parallelism) in key_groups
    ]
    timestamps = batch.timestamps
    return Batch(
        [batch.values[index] for index in kept],
        None if timestamps is None else [timestamps[index] for index in kept],
    )
