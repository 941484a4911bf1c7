"""What a host on Spark keeps of the attempts of a job, which may be restarted for weeks."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.spark.pipelined.host import SparkHost
from firesteel.testing import eventually


class Quick(SparkHost):
    """Its stages are over at once."""

    def _run_stage(self, attempt: Any, post: Any) -> None:
        post(attempt.number)


class Connection:
    def limit_silence(self, seconds: float) -> None:
        pass


@pytest.fixture
def host() -> Iterator[SparkHost]:
    conf = SimpleNamespace(get=lambda _key: None)
    context: Any = SimpleNamespace(getConf=lambda: conf)
    host = Quick(context)
    yield host
    host.close()


def test_threads_and_slots_of_earlier_attempts_are_forgotten(host: SparkHost) -> None:
    ended: list[Any] = []
    for number in range(50):
        attempt: Any = SimpleNamespace(number=number, job_graph=SimpleNamespace(configuration=Configuration()))
        host.start(attempt, ended.append)
        for slot in range(3):
            connection: Any = Connection()
            host.registered(number, slot, connection)
        eventually(lambda: len(ended) == number + 1)
    assert sorted(host._slots) == [(49, 0), (49, 1), (49, 2)]
    assert len(host._threads) < 10
