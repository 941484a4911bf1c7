"""Column batches in result partitions and input gates."""

from __future__ import annotations

import random
from typing import Any

import pytest

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.exchange import rebalance
from firesteel.runtime.columns.wire import EncodedColumns, decode_columns
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.elements import Batch, CheckpointBarrier, ControlEvent, Watermark
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.gate import InputGate
from firesteel.runtime.network.local import connect_local
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition
from tests.support.columns import bids, rows_of, simple

OPTIONS = CheckpointOptions(SnapshotKind.CHECKPOINT, CheckpointLocation("/nowhere", "/nowhere"), unaligned=True)
BARRIER = CheckpointBarrier(1, 0, OPTIONS)


def _joined(serialized: bool, channels: int = 1, **config: Any) -> tuple[ResultPartition, list[InputGate]]:
    settings = NetworkConfig(**config)
    subpartitions = [ResultSubpartition(serialized=serialized, config=settings) for _ in range(channels)]
    gates = [InputGate(1, config=settings) for _ in range(channels)]
    for subpartition, gate in zip(subpartitions, gates, strict=True):
        connect_local(subpartition, gate.channels[0], serialized=serialized)
    return ResultPartition(subpartitions, config=settings), gates


def _read(gate: InputGate, most: int = 1 << 62) -> list[Any]:
    read: list[Any] = []
    while (polled := gate.poll(most)) is not None:
        read.append(polled[1] if isinstance(polled[1], ControlEvent) else polled[1].values)
    return read


@pytest.mark.parametrize("serialized", [True, False])
def test_small_batches_are_gathered_until_the_buffer_is_flushed(serialized: bool) -> None:
    partition, (gate,) = _joined(serialized)
    for number in range(10):
        partition.subpartitions[0].add_columns(simple(number, kinds=[number % 4]))
    assert not gate.has_input
    assert partition.records_emitted == 10
    partition.flush()
    (batch,) = _read(gate)
    assert rows_of(batch) == rows_of(simple(*range(10), kinds=[number % 4 for number in range(10)]))
    assert partition.num_records_out == 10
    assert partition.num_buffers_out == 1
    assert (partition.num_bytes_out > 0) is serialized
    assert gate.num_bytes_in == partition.num_bytes_out


def test_many_rows_make_buffers_of_a_good_size() -> None:
    partition, (gate,) = _joined(True, max_buffers_per_channel=1000, floating_buffers_per_gate=1000)
    batches = [bids(500, seed) for seed in range(50)]
    for batch in batches:
        partition.subpartitions[0].add_columns(batch)
    partition.flush()
    read = _read(gate)
    assert rows_of(*read) == rows_of(*batches)
    gathered = partition.config.gathered_columns_size
    assert all(gathered / 2 < batch.nbytes < 2 * gathered for batch in read[:-1])
    partition.subpartitions[0].add_columns(bids(200_000))
    assert max(batch.nbytes for batch in _read(gate)) <= 1.1 * partition.config.max_columns_size


@pytest.mark.parametrize("serialized", [True, False])
def test_events_stay_behind_the_rows_before_them(serialized: bool) -> None:
    partition, (gate,) = _joined(serialized)
    partition.subpartitions[0].add_columns(simple(1))
    partition.broadcast_event(Watermark(5))
    partition.subpartitions[0].add_columns(simple(2))
    partition.flush()
    assert _read(gate) == [simple(1), Watermark(5), simple(2)]


def test_a_broadcast_is_encoded_once() -> None:
    partition, gates = _joined(True, 3)
    for number in range(3):
        partition.broadcast_columns(simple(number))
    partition.flush()
    assert [_read(gate) for gate in gates] == [[simple(0, 1, 2)]] * 3
    assert partition.num_records_out == 3


def test_a_gate_cuts_batches_and_counts_rows() -> None:
    partition, (gate,) = _joined(True)
    partition.subpartitions[0].add_columns(simple(*range(10)))
    partition.flush()
    assert [len(batch) for batch in _read(gate, 4)] == [4, 4, 2]
    assert gate.channels[0].served == 10


def test_batches_in_flight_can_be_stored_and_restored_by_themselves() -> None:
    """At the consumer, which has credit for two, one of them read in part; and those that wait at the producer."""
    partition, (gate,) = _joined(True, floating_buffers_per_gate=0)
    sent = [bids(300, seed) for seed in range(6)]
    for batch in sent:
        partition.subpartitions[0].add_columns(batch)
        partition.flush()
    polled = gate.poll(100)
    assert polled is not None
    at_consumer, _ = gate.channels[0].in_flight(1)
    (at_producer,) = partition.overtake(BARRIER)
    stored = [*at_consumer, *at_producer]
    assert rows_of(*(decode_columns(item) for item in stored)) == rows_of(*sent)[100:]  # type: ignore[arg-type]
    restored = InputGate(1)
    restored.channels[0].restore(stored)
    assert rows_of(*_read(restored)) == rows_of(*sent)[100:]
    rescaled = InputGate(1)
    rescaled.restore_first(0, [Batch(bids(5)), *stored])  # type: ignore[list-item]
    assert rows_of(*_read(rescaled)) == rows_of(bids(5)) + rows_of(*sent)[100:]


def test_what_arrives_before_an_unaligned_barrier_is_recorded_with_its_schema() -> None:
    partition, (gate,) = _joined(True)
    channel = gate.channels[0]
    partition.subpartitions[0].add_columns(simple(1))
    partition.flush()
    assert _read(gate) == [simple(1)]
    channel.recorded = []
    partition.subpartitions[0].add_columns(simple(2))
    partition.flush()
    assert [decode_columns(item) for item in channel.recorded] == [simple(2)]  # type: ignore[arg-type]


def test_rebalance_gives_every_channel_the_same_number_of_rows() -> None:
    counts = [0] * 3
    draw = random.Random(7)
    first = 0
    for _ in range(200):
        batch = simple(*range(draw.randrange(1, 9)))
        parts = list(rebalance(batch, 3, first))
        assert rows_of(*(part for _, part in parts)) == rows_of(batch)
        for channel, part in parts:
            counts[channel] += len(part)
        first = (first + len(batch)) % 3
    assert max(counts) - min(counts) <= 1


def test_batches_of_other_columns_are_not_joined() -> None:
    partition, (gate,) = _joined(True)
    other = ColumnBatch(simple(1).data.select(["text"]))
    for batch in (simple(1), other, other, simple(2, rowtime=0)):
        partition.subpartitions[0].add_columns(batch)
    partition.flush()
    assert [len(batch) for batch in _read(gate)] == [1, 2, 1]


def test_a_batch_larger_than_a_frame_is_cut_and_a_row_is_not() -> None:
    partition, (gate,) = _joined(True, max_frame_bytes=2000, max_buffers_per_channel=1000, floating_buffers_per_gate=99)
    partition.subpartitions[0].add_columns(bids(200))
    partition.flush()
    assert rows_of(*_read(gate)) == rows_of(bids(200))
    partition, _ = _joined(True, max_frame_bytes=100)
    partition.subpartitions[0].add_columns(simple(1))
    with pytest.raises(RecordSerializationError, match="limit is 100 bytes"):
        partition.flush()


def test_queued_batches_are_not_copied_to_be_sent() -> None:
    subpartition = ResultSubpartition()
    ResultPartition([subpartition])
    subpartition.add_columns(bids(1000))
    subpartition.finish_buffer()
    subpartition.sender.add_credit(1)
    polled = subpartition.poll()
    assert polled is not None
    assert isinstance(polled[0], EncodedColumns)
    assert isinstance(polled[0].parts()[1], memoryview)
