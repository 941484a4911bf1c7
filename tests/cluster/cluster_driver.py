"""A driver that the cluster tests start and command: a JSON line in, a JSON line out.

It is a process of its own because a process can have one SparkContext only. ``run`` runs a job of tests/jobs; ``start``
starts an endless keyed job that tells where its records were, ``count`` one that counts into files, ``batch`` a
batch job; ``wait`` waits for its end.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Types
from firesteel.common.serialization import Encoder
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import ValueStateDescriptor
from tests.support.jobs.batch_faults import build
from tests.support.jobs.endless import collecting, ended, endless, status
from tests.support.jobs.golden_jobs import run_job


class Where(MapFunction):
    """Adds the process and the Spark executor that saw a record."""

    def __init__(self, field: str):
        self.field = field

    def open(self, runtime_context: RuntimeContext) -> None:
        self.here = os.getpid(), os.environ.get("SPARK_EXECUTOR_DIRS", ""), runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return {**value, self.field: self.here}


class Count(KeyedProcessFunction):
    """The how-manieth record of its key each is, and the parallelism at which it was counted."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value % 20} {count} {self.parallelism}"


class Commands:
    def __init__(self, configuration: dict[str, str]):
        self.configuration = configuration
        self.jobs: list[tuple[Any, Any]] = []

    def _env(self, parallelism: int, timeout: str) -> StreamExecutionEnvironment:
        config = Configuration()
        for key, value in {**self.configuration, "slot.request.timeout": timeout}.items():
            config.set_string(key, value)
        return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)

    def run(self, job: str, parallelism: int, timeout: str = "200 s") -> Any:
        """The job's results."""
        return run_job(job, self._env(parallelism, timeout), Path("unused"))[0]

    def crossing(self, parallelism: int) -> Any:
        """For each record where it was before and after key_by."""
        numbers = self._env(parallelism, "200 s").from_sequence(1, 200).map(lambda number: {"key": number % 20})
        return list(
            numbers.map(Where("from")).key_by(lambda record: record["key"]).map(Where("to")).execute_and_collect()
        )

    def start(self, parallelism: int, timeout: str = "200 s") -> Any:
        """Starts an endless job."""
        stream = endless(self._env(parallelism, timeout)).map(lambda number: {"number": number})
        self.jobs.append(collecting(stream.key_by(lambda record: record["number"] % 20).map(Where("to"))))
        return len(self.jobs) - 1

    def count(self, directory: str, parallelism: int, settings: dict[str, str]) -> Any:
        """Starts an endless job that counts by key and writes lines of key, count and parallelism, exactly once."""
        env = self._env(parallelism, "200 s")
        for key, value in settings.items():
            env.configure(Configuration().set_string(key, value))
        lines = endless(env, per_second=2000).key_by(lambda number: number % 20).process(Count())
        sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        lines.sink_to(sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build())
        self.jobs.append((env.execute_async("count"), None))
        return len(self.jobs) - 1

    def batch(self, directory: str, parallelism: int, held: str) -> Any:
        """Starts a batch job of three stages, one of which is held up."""
        env = self._env(parallelism, "200 s")
        build(env, Path(directory), held)
        self.jobs.append((env.execute_async("batch"), None))
        return len(self.jobs) - 1

    def stop(self, job: int, directory: str) -> Any:
        """Stops a job with a savepoint once all it has read is written."""
        return self.jobs[job][0].stop_with_savepoint(True, directory).result(200)

    def status(self, job: int) -> Any:
        """The status of a job that was started."""
        return status(self.jobs[job][0]).name

    def next(self, job: int) -> Any:
        """A job's next result."""
        return next(self.jobs[job][1])

    def cancel(self, job: int) -> Any:
        """Cancels a job and waits for its end."""
        self.jobs[job][0].cancel().result(200)

    def wait(self, job: int) -> Any:
        """How a job ended."""
        error = ended(self.jobs[job][0], 280)
        failure = getattr(error, "failure", None)
        cause = error.__cause__ if error is not None else None
        return {
            "status": self.status(job),
            "error": failure and failure.error_type,
            "message": failure and failure.message,
            "needed": getattr(cause, "needed", None),
            "available": getattr(cause, "available", None),
        }


def main() -> None:
    commands = Commands(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": getattr(commands, request["command"])(**request["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
