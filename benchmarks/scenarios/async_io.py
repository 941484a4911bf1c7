"""Async I/O in one subtask: how many calls a second, and what each costs."""

from __future__ import annotations

from typing import Any

from benchmarks.runner import Run
from benchmarks.scenarios.async_calls import CAPACITY, asyncio_rate, create_function, difference
from benchmarks.systems.firesteel import ReceivingSink
from firesteel.common import Configuration, Time, Types, WatermarkStrategy
from firesteel.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """The figures of the job, and the rate of asyncio alone."""
    params = run.params
    figures = difference(lambda records: _execute(run, records), params["few"], params["records"])
    return {**figures, "asyncio_per_s": asyncio_rate(params["latency_s"], params["alone"])}


def _execute(run: Run, records: int) -> None:
    config = Configuration()
    config.set_string("spark.master", "local[1]")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    if run.params.get("in_process"):
        from firesteel.testing.in_process import InProcessExecutor

        env._executor = InProcessExecutor()
    source = NumberSequenceSource(0, records - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    function = create_function(AsyncFunction, run.params["latency_s"])
    results = AsyncDataStream.unordered_wait(numbers, function, Time.seconds(60), CAPACITY, Types.LONG())
    results.sink_to(ReceivingSink())
    env.execute("bench")
