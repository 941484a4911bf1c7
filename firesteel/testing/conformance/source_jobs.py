"""Whole jobs around a source under test."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Sequence
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.connectors.base import TwoPhaseCommitSink
from firesteel.datastream.functions import MapFunction
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.spi.source import Boundedness, Source
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.faulty_stage_runner import FaultyStageRunner
from firesteel.testing.conformance.paced_source import PacedSource
from firesteel.testing.environment import test_environment
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["FailsOnce", "MemorySink", "job_environment", "run_source_job"]

_committed: dict[str, dict[str, list[Any]]] = {}
_failures: dict[str, int] = {}


class MemorySink(TwoPhaseCommitSink[list[Any], tuple[str, list[Any]]]):
    """Keeps records exactly once in this process, for tests whose jobs run there."""

    def __init__(self) -> None:
        self.key = uuid.uuid4().hex
        _committed[self.key] = {}

    def begin(self, transaction_id: str) -> list[Any]:
        """A list whose first item is the id."""
        return [transaction_id]

    def write(self, transaction: list[Any], values: Sequence[Any]) -> None:
        """Appends."""
        transaction += values

    def prepare(self, transaction: list[Any]) -> tuple[str, list[Any]]:
        """The id, and the records themselves: they travel in the checkpoint."""
        return transaction[0], transaction[1:]

    def commit(self, committable: tuple[str, list[Any]]) -> None:
        """Keeps the records under the id: a second time changes nothing."""
        _committed[self.key][committable[0]] = committable[1]

    def records(self) -> list[Any]:
        """What was committed."""
        return [record for records in list(_committed[self.key].values()) for record in records]

    def forget(self) -> None:
        """Drops all."""
        _committed.pop(self.key, None)


class FailsOnce(MapFunction):
    """Passes records on, and fails once in one of its subtasks after so many records."""

    def __init__(self, records: int) -> None:
        self.key = uuid.uuid4().hex
        _failures[self.key] = records

    def open(self, runtime_context: Any) -> None:
        """Begins to count."""
        self.count = 0

    def map(self, value: Any) -> Any:
        """The record."""
        self.count += 1
        if self.key in _failures and self.count >= _failures[self.key]:
            del _failures[self.key]
            raise RuntimeError("The conformance suite fails the job here, once, on purpose.")
        return value


def job_environment(directory: str, execution: str) -> StreamExecutionEnvironment:
    """Where a job takes checkpoints and restarts, with two subtasks, in one of the three ways to execute it."""
    settings = {
        "execution.checkpointing.dir": directory,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    if execution == "batch":
        settings["execution.runtime-mode"] = "BATCH"
    else:
        settings["execution.runtime-mode"] = "STREAMING"
        settings["execution.checkpointing.interval"] = "20 ms"
    if execution == "epochs":
        settings |= {"execution.exchange": "spark", "execution.epoch.max-records": "10"}
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = test_environment(2, configuration)
    env._executor = InProcessExecutor(create_stages=FaultyStageRunner)
    return env


def run_source_job(source: Source[Any], count: int, execution: str, timeout_s: float) -> list[Any]:
    """What a job with two readers reads that fails once half way, and has written when it is over."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory(prefix="conformance") as directory:
        env = job_environment(directory, execution)
        paced = PacedSource(source) if execution == "pipelined" else source
        stream = env.from_source(paced, WatermarkStrategy.no_watermarks(), "source under test")
        stream.map(FailsOnce(max(1, count // 4))).sink_to(sink)
        client = env.execute_async("conformance")
        deadline = time.monotonic() + timeout_s
        try:
            if source.get_boundedness() is Boundedness.BOUNDED:
                client.get_job_execution_result().result(timeout_s)
            else:
                while len(sink.records()) < count:
                    if time.monotonic() > deadline:
                        raise ConformanceError(
                            f"The job has written {len(sink.records())} of {count} records after {timeout_s:g} s."
                        )
                    time.sleep(0.005)
                # one more checkpoint: what comes twice may come late
                time.sleep(0.1)
            return sink.records()
        finally:
            client.cancel().result(timeout_s)
            sink.forget()
