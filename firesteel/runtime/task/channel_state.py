"""Channel state: replays the in-flight buffers of an unaligned checkpoint before a task's input."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.columns.exchange import own_rows
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.deployment import InputDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.elements import Batch, ControlEvent, EndOfData, WatermarkStatus
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.partitioner import CustomPartitioner, KeyGroupPartitioner
from firesteel.runtime.model.state_handles import ChannelStateHandle
from firesteel.runtime.network.gate import InFlightItem, InputGate, read_in_flight

__all__ = ["restore_channels"]


def restore_channels(
    handles: Iterable[ChannelStateHandle],
    gate: InputGate,
    inputs: Sequence[InputDescriptor],
    key_selectors: Sequence[Callable[[Any], Any]],
    task: TaskDeploymentDescriptor,
    files: StateFileReader,
    *,
    rescaled: bool,
) -> None:
    """Queues the items of each channel in their order: first what was at the consumer, then at the producer.

    After rescaling a record may belong to another subtask: where its key decides that, each takes its own. They are
    read before anything that arrives, as a channel's producer may no longer read what it read before. Watermarks are
    left out for the same reason; new ones will come.
    """
    channels = iter(gate.channels)
    by_edge = {entry.edge: (entry, list(islice(channels, len(entry.channels)))) for entry in inputs}
    for handle in sorted(handles, key=lambda h: (h.edge, h.producer, h.consumer, h.at_producer)):
        if handle.edge not in by_edge:
            continue  # the assignment has refused what no edge can take
        entry, own = by_edge[handle.edge]
        items: list[InFlightItem] = pickle.loads(files.read(handle.data))
        if rescaled:
            records = _own_records(items, _choice(entry, key_selectors, task))
            gate.restore_first(own[handle.producer % len(own)].index, records)
        else:
            index = handle.producer - entry.channels[0].producer
            # a producer that has finished sends its end again, and all inputs begin as active: an idle status in
            # flight would stay, as the producer that sent it begins as active too and has no change to announce
            own[index].restore(item for item in items if not isinstance(item, (EndOfData, WatermarkStatus)))


def _choice(
    entry: InputDescriptor, key_selectors: Sequence[Callable[[Any], Any]], task: TaskDeploymentDescriptor
) -> Callable[[Batch], Batch] | None:
    """What takes the records of this subtask out of a batch; None where any subtask may have them."""
    partitioner = entry.partitioner
    if isinstance(partitioner, KeyGroupPartitioner):
        most = task.max_parallelism
        own = KeyGroupRange.of(task.subtask, most, task.parallelism)
        columns = partitioner.key_selector
        if isinstance(columns, ColumnKeySelector):
            return lambda batch: Batch(own_rows(batch.values, columns, most, own))  # type: ignore[arg-type]
        selector = key_selectors[entry.input_index]
        return lambda batch: _filter(batch, lambda value: key_group_of(selector(value), most) in own)
    if isinstance(partitioner, CustomPartitioner):
        choose = method_of(partitioner.partitioner, "partition")
        key_of = method_of(partitioner.key_selector, "get_key")
        return lambda batch: _filter(batch, lambda value: choose(key_of(value), task.parallelism) == task.subtask)
    return None


def _own_records(items: Iterable[InFlightItem], choose: Callable[[Batch], Batch] | None) -> list[bytes | Batch]:
    own: list[bytes | Batch] = []
    for item in items:
        if isinstance(item, ControlEvent):
            continue
        if choose is None:
            own.append(item)
        elif len(batch := choose(read_in_flight(item))):
            own.append(batch)
    return own


def _filter(batch: Batch, is_own: Callable[[Any], bool]) -> Batch:
    kept = [index for index, value in enumerate(batch.values) if is_own(value)]
    timestamps = batch.timestamps
    return Batch(
        [batch.values[index] for index in kept],
        None if timestamps is None else [timestamps[index] for index in kept],
    )
