"""No task of a slot starves, whatever keeps the others busy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import Any

import pytest

from firesteel.runtime.slot.scheduling import MAX_WAIT_S
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.testing import test_environment
from tests.support.jobs.virtual_slots import VirtualSlots, endless_numbers, now_ms, spend

SLOW_S = 0.0002
FAST_S = 1e-6
PLACES = ("at source", "first", "second", "third")


def at(place: str, slow: str) -> Any:
    def pass_on(number: int) -> int:
        spend(SLOW_S if place == slow else FAST_S)
        return number

    return pass_on


def three_exchanges(parallelism: int, slow: str) -> VirtualSlots:
    env = test_environment(parallelism)
    stream = endless_numbers(env).map(at("at source", slow)).name("at source")
    stream = stream.key_by(lambda number: number % 200).map(at("first", slow)).name("first")
    stream = stream.rebalance().map(at("second", slow)).name("second")
    stream = stream.key_by(lambda number: number % 300).map(at("third", slow)).name("third")
    stream.filter(lambda _number: False).print()
    return VirtualSlots(env)


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("slow", PLACES)
def test_all_subtasks_get_on_under_backpressure(slots: int, slow: str) -> None:
    job = three_exchanges(slots, slow)
    read: list[list[int]] = []
    job.run(24.0, lambda: read.append([task.records_in for task in job.tasks("at source")]))
    # in the first seconds sources run ahead, until the buffers on their way are full
    progress = [after - before for before, after in zip(read[7], read[-1], strict=True)]
    assert len(progress) == slots
    assert min(progress) >= 0.8 * max(progress)
    for waits in job.waits:
        assert 0 < waits.longest <= MAX_WAIT_S + 4 * waits.longest_turn


class _Gate(Sink):
    """Takes records only from time to time."""

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        return _GateWriter()


class _GateWriter(SinkWriter[Any]):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        spend(FAST_S * len(values))

    def has_room(self) -> bool:
        return now_ms() % 100 < 50


@pytest.mark.parametrize("slots", [1, 2])
def test_tasks_that_multiply_their_records_do_not_wait_for_each_other_for_ever(slots: int) -> None:
    """Both exceed their outputs in the middle of a batch, the producer while the consumer waits for room."""
    env = test_environment(slots)
    many = endless_numbers(env, at_a_time=1).flat_map(lambda n: repeat(n, 60_000 if n % 2 else 64)).name("producer")
    many = many.rebalance().flat_map(lambda n: repeat(n, 1 if n % 2 else 3_000)).name("consumer")
    many.rebalance().sink_to(_Gate()).name("gate")
    job = VirtualSlots(env)
    written: list[int] = []
    job.run(4.0, lambda: written.append(sum(task.records_in for task in job.tasks("gate"))))
    assert all(after > before for before, after in pairwise(written[:4]))
