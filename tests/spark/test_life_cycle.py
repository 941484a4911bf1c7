"""The life of a job on embedded Spark: status, cancellation, failure, and several jobs on one Spark."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.common.errors import JobCancelledError, JobExecutionError
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from firesteel.testing import eventually
from tests.support.jobs.endless import collecting, ended, endless, running, status, with_pid

DEADLINE_S = 120.0


def test_status_goes_from_created_to_running_to_finished(spark_env: Any) -> None:
    client, results = collecting(spark_env(2).from_sequence(1, 100).map(lambda number: number * 2))
    assert sorted(results) == list(range(2, 201, 2))
    result = client.get_job_execution_result().result(DEADLINE_S)
    assert result.get_job_id() == client.get_job_id()
    assert result.get_net_runtime() > 0
    assert status(client) is JobStatus.FINISHED
    times = client._handle.snapshot.status_timestamps  # type: ignore[attr-defined]
    assert list(times) == [JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED]
    assert list(times.values()) == sorted(times.values())


def test_an_endless_job_is_cancelled_and_leaves_nothing(spark_env: Any) -> None:
    """The leak check looks for threads, sockets, and workers that are still slots."""
    keyed = endless(spark_env(3)).key_by(lambda number: number % 7).map(with_pid)
    client, results = collecting(keyed)
    pids: set[int] = set()
    # a slot may be slow to begin
    for _, pid in itertools.islice(results, 20_000):
        pids.add(pid)
        if len(pids) == 3:
            break
    assert len(pids) == 3
    assert status(client) is JobStatus.RUNNING
    client.cancel().result(DEADLINE_S)
    assert isinstance(ended(client), JobCancelledError)
    assert status(client) is JobStatus.CANCELED
    assert not [thread.name for thread in _firesteel_threads()]


def _firesteel_threads() -> list[threading.Thread]:
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("firesteel")]

    eventually(lambda: not threads(), timeout=120)
    return threads()


def test_cancelling_twice_and_after_the_end_is_harmless(spark_env: Any) -> None:
    client, _ = collecting(endless(spark_env(1)))
    running(client)
    first, second = client.cancel(), client.cancel()
    first.result(DEADLINE_S)
    second.result(DEADLINE_S)
    assert isinstance(ended(client), JobCancelledError)
    client.cancel().result(DEADLINE_S)
    assert status(client) is JobStatus.CANCELED


def test_a_job_can_be_cancelled_before_it_runs(spark_env: Any) -> None:
    client, _ = collecting(endless(spark_env(2)))
    client.cancel().result(DEADLINE_S)
    assert isinstance(ended(client), JobCancelledError)
    assert status(client) is JobStatus.CANCELED


def test_closing_the_results_early_cancels_the_job(spark_env: Any) -> None:
    assert endless(spark_env(1)).map(lambda number: number + 1).execute_and_collect(limit=3) == [1, 2, 3]
    with endless(spark_env(1)).execute_and_collect() as results:
        assert next(results) == 0


def test_code_that_blocks_is_interrupted_when_the_job_is_cancelled(spark_env: Any, tmp_path: Path) -> None:
    class Sleeper(MapFunction):
        def map(self, value: Any) -> Any:
            (tmp_path / "asleep").touch()
            time.sleep(600)
            return value

    client, _ = collecting(endless(spark_env(1)).map(Sleeper()))
    eventually(lambda: (tmp_path / "asleep").exists(), timeout=DEADLINE_S)
    client.cancel().result(DEADLINE_S)
    assert isinstance(ended(client), JobCancelledError)
    assert status(client) is JobStatus.CANCELED


def test_code_that_swallows_exceptions_is_interrupted_too(spark_env: Any, tmp_path: Path) -> None:
    class Stubborn(MapFunction):
        def map(self, value: Any) -> Any:
            (tmp_path / "asleep").touch()
            while True:
                try:
                    time.sleep(600)
                except Exception:
                    continue

    client, _ = collecting(endless(spark_env(1)).map(Stubborn()))
    eventually(lambda: (tmp_path / "asleep").exists(), timeout=DEADLINE_S)
    client.cancel().result(DEADLINE_S)
    assert isinstance(ended(client), JobCancelledError)
    assert status(client) is JobStatus.CANCELED


class Fragile(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield 10 // (value - 5)  # LINE


def test_a_failure_names_the_users_line_operator_key_and_element(spark_env: Any) -> None:
    stream = spark_env(2).from_sequence(1, 9).key_by(lambda number: number % 2).process(Fragile()).name("fragile")
    client, _ = collecting(stream, "breaks")
    error = ended(client)
    assert isinstance(error, JobExecutionError)
    assert status(client) is JobStatus.FAILED
    failure = error.failure
    lines = Path(__file__).read_text().splitlines()
    assert failure.error_type == "ZeroDivisionError"
    assert failure.user_file == __file__
    assert lines[(failure.user_line or 0) - 1].endswith("# LINE")
    assert (failure.operator, failure.key, failure.element) == ("fragile", "1", "5")
    assert "breaks" in str(error)
    # the other tasks were cancelled because of it, and the failed one was not cancelled on top
    (entry,) = client._handle.snapshot.exception_history  # type: ignore[attr-defined]
    assert entry.concurrent == ()


def test_a_job_runs_after_one_that_failed(spark_env: Any) -> None:
    env = spark_env(2)
    failing, _ = collecting(env.from_sequence(0, 3).map(lambda number: 1 // number))
    assert isinstance(ended(failing), JobExecutionError)
    assert sorted(env.from_sequence(1, 3).execute_and_collect()) == [1, 2, 3]
    assert sorted(spark_env(3).from_sequence(1, 3).execute_and_collect()) == [1, 2, 3]


def test_two_jobs_run_at_once(spark_env: Any) -> None:
    first, first_results = collecting(endless(spark_env(2)).map(lambda number: ("first", number)))
    running(first)
    second, second_results = collecting(endless(spark_env(2)).map(lambda number: ("second", number)))
    seen = {next(first_results)[0], next(second_results)[0], next(first_results)[0]}
    assert seen == {"first", "second"}
    assert (status(first), status(second)) == (JobStatus.RUNNING, JobStatus.RUNNING)
    first.cancel().result(DEADLINE_S)
    ended(first)
    assert next(second_results)[0] == "second"
    assert status(second) is JobStatus.RUNNING
    second.cancel().result(DEADLINE_S)
    ended(second)
    assert (status(first), status(second)) == (JobStatus.CANCELED, JobStatus.CANCELED)


class FailsUntil(MapFunction):
    def __init__(self, attempt: int):
        self.attempt = attempt

    def open(self, runtime_context: RuntimeContext) -> None:
        self.now = runtime_context.get_attempt_number()

    def map(self, value: Any) -> Any:
        if self.now < self.attempt:
            raise ValueError(f"attempt {self.now}")
        return self.now, value


FIXED_DELAY = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


def test_a_restart_strategy_starts_the_job_over(spark_env: Any) -> None:
    client, results = collecting(spark_env(2, FIXED_DELAY).from_sequence(1, 4).map(FailsUntil(2)))
    assert sorted(results) == [(2, number) for number in range(1, 5)]
    assert ended(client) is None
    assert JobStatus.RESTARTING in client._handle.snapshot.status_timestamps  # type: ignore[attr-defined]


def test_a_restart_strategy_gives_up(spark_env: Any) -> None:
    client, _ = collecting(spark_env(1, FIXED_DELAY).from_sequence(1, 4).map(FailsUntil(9)))
    error = ended(client)
    assert isinstance(error, JobExecutionError)
    assert error.failure.message == "attempt 2"
    assert status(client) is JobStatus.FAILED


class Alarm(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 50)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), ctx.time_domain().name


def test_processing_time_timers_fire_while_there_is_no_input(spark_env: Any) -> None:
    """The second record comes after an hour."""
    source = endless(spark_env(2), per_second=1 / 3600).set_parallelism(1)
    stream = source.key_by(lambda number: number).process(Alarm())
    assert stream.execute_and_collect(limit=1) == [(0, "PROCESSING_TIME")]


@pytest.mark.parametrize(("how", "error_type"), [("sys.exit", "SystemExit"), ("os._exit", "SlotLost")])
def test_code_that_ends_its_process_fails_the_job(how: str, error_type: str, spark_env: Any) -> None:
    end = (lambda _: sys.exit(3)) if how == "sys.exit" else (lambda _: os._exit(3))
    client, _ = collecting(spark_env(2).from_sequence(1, 4).map(end))
    error = ended(client)
    assert isinstance(error, JobExecutionError)
    assert error.failure.error_type == error_type
    assert status(client) is JobStatus.FAILED
