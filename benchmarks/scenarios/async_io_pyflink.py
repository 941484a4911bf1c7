"""Async I/O in one subtask of PyFlink."""

from __future__ import annotations

from typing import Any

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.datastream import AsyncDataStream, AsyncFunction
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from benchmarks.runner import Run
from benchmarks.scenarios.async_calls import CAPACITY, create_function, difference
from benchmarks.systems.pyflink import _discard, _environment

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """The figures of the job."""
    return difference(lambda records: _execute(run, records), run.params["few"], run.params["records"])


def _execute(run: Run, records: int) -> None:
    env = _environment(run)
    env.set_parallelism(1)
    source = NumberSequenceSource(0, records - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    function = create_function(AsyncFunction, run.params["latency_s"])
    _discard(AsyncDataStream.unordered_wait(numbers, function, Time.seconds(60), CAPACITY, Types.LONG()))
    env.execute("bench")
