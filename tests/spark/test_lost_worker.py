"""A Python worker of Spark is killed in the middle of a job."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from firesteel.common import JobStatus, WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import eventually
from tests.support.jobs.endless import collecting, ended, endless, status, with_pid
from tests.support.processes import is_alive

RECORDS = 60


@pytest.mark.parametrize("parallelism", [1, 2])
def test_without_a_restart_strategy_the_job_fails_with_the_reason(parallelism: int, spark_env: Any) -> None:
    stream = endless(spark_env(parallelism)).key_by(lambda number: number % 10).map(with_pid)
    client, results = collecting(stream)
    _, pid = next(results)
    os.kill(pid, signal.SIGKILL)
    error = ended(client)
    assert isinstance(error, JobExecutionError)
    failure = error.failure
    assert failure.error_type == "SlotLost"
    assert f"pid {pid}" in failure.message
    assert "killed" in (failure.hint or "")
    assert status(client) is JobStatus.FAILED
    eventually(lambda: not is_alive(pid), timeout=120)


class Total(KeyedProcessFunction):
    """Sums with state: what was counted before a restart must not be counted again."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()
        self.total = runtime_context.get_state(ValueStateDescriptor("total", None))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.attempt == 0 and value > RECORDS // 2:
            time.sleep(600)  # the first attempt cannot end before it is killed
        total = (self.total.value() or 0) + value
        self.total.update(total)
        yield self.attempt, ctx.get_current_key(), total, os.getpid()


def test_with_a_restart_strategy_the_job_starts_over_and_is_right(spark_env: Any) -> None:
    env = spark_env(
        2,
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1",
            "restart-strategy.fixed-delay.delay": "10 ms",
        },
    )
    source = DataGeneratorSource(lambda index: index, RECORDS, RateLimiterStrategy.per_second(100))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda number: number % 3)
    client, results = collecting(stream.process(Total()))
    first = next(results)
    os.kill(first[3], signal.SIGKILL)
    rest = list(results)
    assert ended(client) is None
    assert {attempt for attempt, *_ in rest} <= {0, 1}
    second = [(key, total) for attempt, key, total, _ in rest if attempt == 1]
    assert len(second) == RECORDS
    assert {key: max(t for k, t in second if k == key) for key in range(3)} == {
        key: sum(range(key, RECORDS, 3)) for key in range(3)
    }
    (entry,) = client._handle.snapshot.exception_history  # type: ignore[attr-defined]
    assert entry.failure.error_type == "SlotLost"
