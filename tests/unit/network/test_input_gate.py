"""Reading a gate fairly, blocking channels, and channels within one process."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.model.elements import Batch, ControlEvent, EndOfData, Watermark
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.gate import InputGate
from firesteel.runtime.network.local import connect_local
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition


def gate_of(n: int, *, serialized: bool = True, **config: Any) -> tuple[ResultPartition, InputGate]:
    settings_ = NetworkConfig(**config)
    subs = [ResultSubpartition(config=settings_) for _ in range(n)]
    gate = InputGate(n, config=settings_)
    for sub, channel in zip(subs, gate.channels, strict=True):
        connect_local(sub, channel, serialized=serialized)
    return ResultPartition(subs, config=settings_), gate


def emit(part: ResultPartition, index: int, *values: Any) -> None:
    part.emit_to(index, values, None)
    part.flush()


def read(gate: InputGate) -> list[tuple[int, Any]]:
    items: list[tuple[int, Any]] = []
    while (polled := gate.poll()) is not None:
        index, item = polled
        items.append((index, list(item.values) if isinstance(item, Batch) else item))
    return items


def test_an_empty_gate_has_no_input() -> None:
    _, gate = gate_of(2)
    assert not gate.has_input
    assert gate.poll() is None


def test_channels_take_turns() -> None:
    part, gate = gate_of(3)
    for value in (1, 2):
        emit(part, 0, value)
    emit(part, 2, 3)
    assert gate.has_input
    assert gate.queued == 3
    assert read(gate) == [(0, [1]), (2, [3]), (0, [2])]
    assert not gate.has_input
    assert gate.num_buffers_in == 3
    assert gate.num_bytes_in == sum(len(pickle.dumps(([v], None), 5)) for v in (1, 2, 3))


def test_channels_with_small_buffers_get_as_many_records_as_others() -> None:
    part, gate = gate_of(2)
    for _ in range(2):
        emit(part, 0, *range(4))
    for value in range(8):
        emit(part, 1, value)
    assert [index for index, _ in read(gate)] == [0, 1, 1, 1, 1, 0, 1, 1, 1, 1]


def test_a_batch_is_read_in_parts_and_its_channel_keeps_its_place() -> None:
    part, gate = gate_of(2)
    emit(part, 0, 1, 2, 3, 4, 5)
    emit(part, 1, 6, 7)
    parts = []
    while (polled := gate.poll(most=2)) is not None:
        assert isinstance(polled[1], Batch)
        parts.append((polled[0], list(polled[1].values)))
    assert parts == [(0, [1, 2]), (1, [6, 7]), (0, [3, 4]), (0, [5])]


def test_what_is_put_back_counts_as_not_read() -> None:
    part, gate = gate_of(2)
    emit(part, 0, 1, 2, 3, 4)
    emit(part, 1, 5)
    emit(part, 1, 6)
    index, batch = gate.poll() or (None, None)
    assert index == 0
    assert isinstance(batch, Batch)
    gate.push_back(0, batch.split(1)[1])
    assert read(gate) == [(1, [5]), (0, [2, 3, 4]), (1, [6])]


def test_a_channel_does_not_save_up_its_share_while_it_is_empty() -> None:
    part, gate = gate_of(2)
    for value in range(6):
        emit(part, 0, value)
        assert gate.poll() is not None
    for value in range(3):
        emit(part, 0, value)
        emit(part, 1, value)
    assert [index for index, _ in read(gate)] == [1, 0, 1, 0, 1, 0]


def test_a_blocked_channel_is_skipped_and_keeps_its_order() -> None:
    part, gate = gate_of(2)
    emit(part, 0, 1)
    gate.block(0)
    emit(part, 0, 2)
    emit(part, 1, 3)
    part.subpartitions[0].add_event(Watermark(1))
    assert read(gate) == [(1, [3])]
    assert not gate.has_input
    gate.unblock(0)
    gate.unblock(0)
    assert read(gate) == [(0, [1]), (0, [2]), (0, Watermark(1))]


def test_a_blocked_channel_holds_what_credit_allows_and_the_rest_waits_at_the_producer() -> None:
    part, gate = gate_of(2)
    gate.block(0)
    for value in range(100):
        emit(part, 0, value)
    assert len(gate.channels[0].queue) == 2 + 8
    assert part.subpartitions[0].queued == 90
    assert not part.has_room
    for value in range(50):  # the other channel still has its exclusive buffers
        emit(part, 1, value)
        assert read(gate) == [(1, [value])]
    gate.unblock(0)
    assert read(gate) == [(0, [value]) for value in range(100)]
    assert part.has_room
    assert gate.floating_buffers.available == 8


def test_timestamps_arrive() -> None:
    part, gate = gate_of(1)
    part.emit_to(0, ["a", "b"], [1, 2])
    part.flush()
    polled = gate.poll()
    assert polled is not None
    batch = polled[1]
    assert isinstance(batch, Batch)
    assert (batch.values, batch.timestamps) == (["a", "b"], [1, 2])


def test_objects_mode_passes_the_very_objects() -> None:
    part, gate = gate_of(1, serialized=False)
    lock = threading.Lock()
    emit(part, 0, lock)
    assert read(gate)[0][1][0] is lock
    assert part.num_bytes_out == 0


def test_serialised_mode_really_pickles() -> None:
    part, gate = gate_of(1, serialized=True)
    original = [1, 2]
    emit(part, 0, original)
    ((_, (copy,)),) = read(gate)
    assert copy == original
    assert copy is not original
    with pytest.raises(RecordSerializationError):
        emit(part, 0, threading.Lock())


def test_buffers_written_before_the_channel_is_connected_are_kept() -> None:
    sub = ResultSubpartition()
    sub.values.append(1)
    sub.add_event(EndOfData())
    gate = InputGate(1)
    connect_local(sub, gate.channels[0], serialized=True)
    assert read(gate) == [(0, [1]), (0, EndOfData())]


def test_the_mode_cannot_change_once_records_are_there() -> None:
    sub = ResultSubpartition()
    sub.values.append(1)
    with pytest.raises(ValueError, match="before it is written"):
        connect_local(sub, InputGate(1).channels[0], serialized=False)


class Lopsided:
    def __reduce__(self) -> Any:
        return int, ("not a number",)


def test_a_record_that_does_not_unpickle_says_so() -> None:
    part, gate = gate_of(1)
    emit(part, 0, Lopsided())
    with pytest.raises(RecordSerializationError, match="could not be deserialized: ValueError"):
        gate.poll()


@given(
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from(["emit", "emit", "event", "poll", "block", "unblock"]), st.integers(0, 3))),
)
@settings(max_examples=150, deadline=None)
def test_any_use_of_local_channels_delivers_everything_in_order(
    n: int, serialized: bool, floating: int, steps: list[tuple[str, int]]
) -> None:
    part, gate = gate_of(n, serialized=serialized, floating_buffers_per_gate=floating)
    expected: list[list[Any]] = [[] for _ in range(n)]
    received: list[list[Any]] = [[] for _ in range(n)]
    blocked: set[int] = set()

    def take(index: int, item: Batch | ControlEvent) -> None:
        received[index] += item.values if isinstance(item, Batch) else [item]

    for number, (action, index) in enumerate(steps):
        index %= n
        if action == "emit":
            emit(part, index, number)
            expected[index].append(number)
        elif action == "event":
            part.subpartitions[index].add_event(Watermark(number))
            expected[index].append(Watermark(number))
        elif action == "poll":
            polled = gate.poll()
            if polled is not None:
                assert polled[0] not in blocked
                take(*polled)
        elif action == "block":
            gate.block(index)
            blocked.add(index)
        else:
            gate.unblock(index)
            blocked.discard(index)
        stored = sum(not isinstance(i, ControlEvent) for c in gate.channels for i in c.queue)
        assert stored <= 2 * n + floating
    for index in range(n):
        gate.unblock(index)
    while (polled := gate.poll()) is not None:
        take(*polled)
    assert received == expected
    assert part.queued == 0
    assert gate.floating_buffers.available == floating
