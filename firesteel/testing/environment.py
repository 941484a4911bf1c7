"""Runs whole jobs in a test, without Spark."""

from __future__ import annotations

from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.runtime.slot.mailbox import Clock
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["collect", "test_environment"]


def test_environment(
    parallelism: int = 1,  # noqa: PT028 - not a test
    configuration: Configuration | None = None,  # noqa: PT028
    clock: Clock | None = None,  # noqa: PT028
) -> StreamExecutionEnvironment:
    """An environment whose jobs run in a thread of this process, without Spark, within milliseconds.

    Everything else is the same as in production: graphs, JobMaster, tasks, channels with credits. Each slot
    has its own copy of every function, and records are pickled between slots. With a
    :class:`~firesteel.testing.FakeClock`, processing time moves only when the test says so.

    >>> env = test_environment(parallelism=2)
    >>> sorted(collect(env.from_sequence(1, 3).map(lambda x: x * 10)))
    [10, 20, 30]
    """
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment._executor = InProcessExecutor(clock)
    return environment.set_parallelism(parallelism)


# the name is made for tests, but it is not one
test_environment.__test__ = False  # type: ignore[attr-defined]


def collect(stream: DataStream, limit: int | None = None) -> list[Any]:
    """Runs the program and lists the records of a stream.

    With a limit, the job is cancelled after that many records; a job that does not end by itself needs one.

    >>> collect(test_environment().from_collection(["a", "b"]).map(str.upper))
    ['A', 'B']
    """
    return list(stream.execute_and_collect("test", limit))
