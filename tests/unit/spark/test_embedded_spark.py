"""The Spark that programs of one process share, without a JVM: when it is replaced, and when it must not be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from firesteel.config.configuration import Configuration
from firesteel.spark import executor
from firesteel.spark.session import session


class FakeContext:
    """What `session` sees of a SparkContext; ``has_jvm`` is False once its JVM was killed."""

    master = "local[2]"
    defaultParallelism = 2

    def __init__(self) -> None:
        self.has_jvm = True
        self.stopped = 0
        process = SimpleNamespace(
            poll=lambda: None if self.has_jvm else -9, stdin=SimpleNamespace(close=lambda: None), wait=lambda timeout: 0
        )
        self._gateway = SimpleNamespace(proc=process, shutdown=self._ask)
        self._jsc: Any = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))

    def _ask(self) -> None:
        if not self.has_jvm:
            raise ConnectionRefusedError(111, "Connection refused")

    def stop(self) -> None:
        jsc, self._jsc = self._jsc, None
        if jsc is not None:
            self._ask()
        self.stopped += 1
        SparkContext._active_spark_context = None


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[FakeContext]:
    contexts: list[FakeContext] = []

    def create(_settings: dict[str, str], **_options: Any) -> Any:
        contexts.append(FakeContext())
        SparkContext._active_spark_context = contexts[-1]  # type: ignore[assignment]
        directory = tmp_path / str(len(contexts))
        directory.mkdir()
        return contexts[-1], directory

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(session, "_own", None)
    monkeypatch.setattr(session, "_create", create)
    monkeypatch.setattr(session, "require_java", lambda: None)
    return contexts


def test_one_whose_jvm_was_killed_is_replaced(created: list[FakeContext], tmp_path: Path) -> None:
    session.get_spark_context(Configuration(), 1)
    created[0].has_jvm = False
    assert session.get_spark_context(Configuration(), 1, lambda: True) is created[1]
    assert created[0].stopped == 1
    assert not (tmp_path / "1").exists()


def test_at_the_end_one_whose_jvm_was_killed_leaves_nothing(created: list[FakeContext], tmp_path: Path) -> None:
    session.get_spark_context(Configuration(), 1)
    created[0].has_jvm = False
    session.stop_spark_context()
    assert not list(tmp_path.iterdir())


def test_a_job_that_is_being_started_keeps_its_spark(created: list[FakeContext]) -> None:
    """Of two threads that execute a job each, the one with more slots must not stop what the other was just given."""
    with executor._starts() as others_of_small, executor._starts() as others_of_large:
        given = session.get_spark_context(Configuration(), 2, others_of_small)
        assert session.get_spark_context(Configuration(), 8, others_of_large) is given
    assert created[0].stopped == 0
    with executor._starts() as others:
        assert session.get_spark_context(Configuration(), 8, others) is created[1]
