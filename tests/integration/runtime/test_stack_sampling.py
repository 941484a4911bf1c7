"""Samples of a slot's stack belong to the task that runs, on the CPU or not."""

from __future__ import annotations

import time
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.connectors import DiscardingSink
from firesteel.connectors.generators.number_sequence import NumberSequenceSource
from firesteel.runtime.slot.stack_sampling import BACKPRESSURED_STACK, SampleStacks, StackSample
from firesteel.testing import eventually, test_environment

ANSWER_S = 60.0


def _compute(value: int) -> int:
    total = 0
    for number in range(1_000):
        total += number
    return total + value


def _sleep(value: int) -> int:
    time.sleep(0.01)
    return value


def _job(function: Any) -> Any:
    env = test_environment(1)
    numbers = env.from_source(NumberSequenceSource(0, 1 << 50), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda value: value % 10).map(function).name("worker").sink_to(DiscardingSink())
    client = env.execute_async("sampled")
    runner = client._handle
    eventually(lambda: len(runner.metrics()) > 0)  # type: ignore[attr-defined]
    return client, runner


def _samples(runner: Any, name: str) -> tuple[list[StackSample], list[StackSample]]:
    """Those of the vertex with that operator, and those of the others."""
    vertex = next(vertex for vertex in runner.job_graph.vertices if name in vertex.name)
    samples = runner.ask(0, SampleStacks(20, 0.002), ANSWER_S).result()
    return [each for each in samples if each[0] == vertex.id], [each for each in samples if each[0] != vertex.id]


def _count(samples: list[StackSample], *, on_cpu: bool | None = None, part: str = "") -> int:
    return sum(
        count
        for _, _, is_on_cpu, stack, count in samples
        if on_cpu in (None, is_on_cpu) and any(part in name for name in stack)
    )


def test_a_function_that_computes_is_on_the_cpu_and_holds_back_its_producer() -> None:
    client, runner = _job(_compute)

    def computes() -> None:
        worker, source = _samples(runner, "worker")
        assert _count(worker) == _count(source) == 20
        assert _count(worker, on_cpu=True, part="_compute (test_stack_sampling.py:") >= 10
        assert _count(source, on_cpu=False, part=BACKPRESSURED_STACK[0]) >= 10

    try:
        eventually(computes)
    finally:
        client.cancel().result()


def test_a_function_that_waits_is_off_the_cpu() -> None:
    client, runner = _job(_sleep)

    def waits() -> None:
        worker, _source = _samples(runner, "worker")
        assert _count(worker, on_cpu=False, part="_sleep (test_stack_sampling.py:") >= 15

    try:
        eventually(waits)
    finally:
        client.cancel().result()


def test_lines_of_generated_loops_are_named_after_their_operators() -> None:
    client, runner = _job(lambda value: sum(i for i in range(value % 7 + 3_000)))

    def is_named() -> None:
        worker, _source = _samples(runner, "worker")
        assert _count(worker, part="worker") > 0
        seen.extend(worker)

    seen: list[StackSample] = []
    try:
        eventually(is_named)
    finally:
        client.cancel().result()
    assert not [stack for *_, stack, _ in seen if any("<firesteel" in name for name in stack)]
