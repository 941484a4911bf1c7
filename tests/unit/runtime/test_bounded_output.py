"""A function that makes very many results of one record: they leave bit by bit, and memory stays bounded."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.datastream import FlatMapFunction, KeyedProcessFunction, ProcessFunction
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.chain.running_operator import RunningOperator
from firesteel.runtime.codegen.loops import ROOM_CHECK_INTERVAL, compile_loop
from firesteel.runtime.model.deployment import (
    ChannelDescriptor,
    OperatorDescriptor,
    OutputDescriptor,
    TaskDeploymentDescriptor,
)
from firesteel.runtime.model.partitioner import (
    BroadcastPartitioner,
    ForwardPartitioner,
    KeyGroupPartitioner,
    RebalancePartitioner,
)
from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG
from firesteel.runtime.network.partition import OVERDRAFT_BUFFERS, ResultPartition, ResultSubpartition
from firesteel.runtime.operators.inline import FlatMapSpec, ProcessSpec
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import Turn
from firesteel.testing import FakeClock, collect, test_environment
from firesteel.testing.operator_context import FAKE_RUNTIME

MILLION = 1_000_000


class SlowConsumer:
    """Takes what is queued only when the producer must wait, and keeps the books."""

    def __init__(self, partition: ResultPartition):
        self.partition = partition
        self.waits = 0
        self.records = 0
        self.buffers = 0
        self.most_open = 0
        self.most_queued = 0

    def wait_for_room(self) -> None:
        self.waits += 1
        assert not self.partition.has_room
        self.take()
        assert self.partition.has_room

    def take(self) -> None:
        self.most_queued = max(self.most_queued, self.partition.queued)
        for subpartition in self.partition.subpartitions:
            self.most_open = max(self.most_open, len(subpartition.values))
            subpartition.sender.add_credit(1000)
            while (polled := subpartition.poll()) is not None:
                self.buffers += 1
                self.records += len(polled[0])  # type: ignore[arg-type]


class Services:
    """A task around one operator and one output."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.turn = Turn()
        self.input_clock = InputClock(lambda: 0)
        self.output: TaskOutput

    def processing_time(self) -> int:
        return self.clock.now

    def schedule(self, timestamp: int, callback: Any) -> None:
        self.clock.schedule(timestamp, callback)

    def monotonic_ms(self) -> int:
        return self.clock.monotonic_ms()

    def schedule_after(self, delay: int, callback: Any) -> None:
        self.clock.schedule_after(delay, callback)

    def make_room(self) -> None:
        self.output.make_room()


def operator_of(
    spec: Any, partitioner: Any, channels: int, keyed: bool = False
) -> tuple[RunningOperator, SlowConsumer]:
    partition = ResultPartition([ResultSubpartition(serialized=False) for _ in range(channels)])
    consumer = SlowConsumer(partition)
    services = Services()
    output = OutputDescriptor(
        1, None, partitioner, 128, "next", tuple(ChannelDescriptor(i, 0, i, 0, i) for i in range(channels))
    )
    services.output = TaskOutput(output, partition, consumer.wait_for_room)
    selectors = (lambda value: 0,) if keyed else ()
    descriptor = OperatorDescriptor(1, "id", "operator", spec, key_selectors=selectors)
    task = TaskDeploymentDescriptor("v", "task", 0, 1, 128, 0, 0, (descriptor,))
    chained = RunningOperator(descriptor, spec.create(FAKE_RUNTIME), task, services)
    chained.add_consumer(None, services.output)
    chained.open()
    return chained, consumer


def check_bounded(consumer: SlowConsumer, records: int, copies: int = 1) -> None:
    consumer.partition.flush()
    consumer.take()
    assert consumer.records == records * copies, "nothing is lost"
    config = DEFAULT_NETWORK_CONFIG
    channels = len(consumer.partition.subpartitions)
    room = config.buffers_per_channel * channels + config.floating_buffers_per_gate + OVERDRAFT_BUFFERS
    assert consumer.waits >= records / (room * config.max_records_per_buffer) - 1
    # never much more than the room there is: what one interval between two checks can add
    assert consumer.most_queued <= room + channels
    assert consumer.most_open <= config.max_records_per_buffer + ROOM_CHECK_INTERVAL
    assert consumer.buffers >= records * copies / config.max_records_per_buffer


PARTITIONERS = [
    pytest.param(ForwardPartitioner(), 1, id="forward"),
    pytest.param(KeyGroupPartitioner(lambda value: value % 100), 3, id="hash"),
    pytest.param(RebalancePartitioner(), 3, id="rebalance"),
]


@pytest.mark.parametrize(("partitioner", "channels"), PARTITIONERS)
@pytest.mark.parametrize("timed", [False, True])
def test_a_flat_map_that_makes_a_million_of_one(partitioner: Any, channels: int, timed: bool) -> None:
    chained, consumer = operator_of(FlatMapSpec(range), partitioner, channels)
    compile_loop("test", [chained], timed)([MILLION], [0] if timed else None)
    check_bounded(consumer, MILLION)
    assert consumer.waits > 10


def test_a_broadcast_of_many_results() -> None:
    chained, consumer = operator_of(FlatMapSpec(range), BroadcastPartitioner(), 2)
    compile_loop("test", [chained], False)([200_000], None)
    check_bounded(consumer, 200_000, copies=2)


def test_many_results_of_many_records_are_counted_together() -> None:
    chained, consumer = operator_of(FlatMapSpec(range), ForwardPartitioner(), 1)
    compile_loop("test", [chained], False)([100] * 5000, None)
    check_bounded(consumer, 500_000)


class Many(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield from range(value)


def test_a_process_function_that_yields_very_many() -> None:
    chained, consumer = operator_of(ProcessSpec(Many()), ForwardPartitioner(), 1)
    compile_loop("test", [chained], True)([300_000], [5])
    check_bounded(consumer, 300_000)


class ManyLater(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> None:
        self._many = value
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield from range(self._many)


def test_a_timer_that_yields_very_many() -> None:
    chained, consumer = operator_of(ProcessSpec(ManyLater()), ForwardPartitioner(), 1, keyed=True)
    compile_loop("test", [chained], True)([300_000], [5])
    chained.emit_watermark = lambda timestamp: None  # type: ignore[method-assign]
    chained.process_watermark(10)
    check_bounded(consumer, 300_000)


class Explode(FlatMapFunction):
    """Each result knows how many exist at once."""

    def flat_map(self, value: int) -> Any:
        yield from range(value)


def test_a_whole_job_with_a_million_results_of_one_record() -> None:
    env = test_environment(2)
    counted = (
        env.from_collection([MILLION])
        .flat_map(Explode())
        .key_by(lambda value: value % 2)
        .map(lambda value: (value % 2, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .filter(lambda pair: pair[1] == MILLION // 2)
    )
    assert sorted(collect(counted)) == [(0, MILLION // 2), (1, MILLION // 2)]
