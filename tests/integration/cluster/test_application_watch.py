"""A Spark cluster that has forgotten the JobManager's application counts as lost."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.cluster import spark_cluster
from firesteel.cluster.application_watch import LOST_AFTER_S, ApplicationWatch, can_reach_master
from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.config.configuration import Configuration
from firesteel.spark.session import liveness
from firesteel.testing import eventually


class Master:
    def __init__(self) -> None:
        self.is_there = True

    def __call__(self) -> bool:
        return self.is_there


def test_an_application_that_gets_no_executors_any_more_is_lost() -> None:
    watch = ApplicationWatch(Master())
    assert not watch.is_lost(4, 0)
    assert not watch.is_lost(0, 10)
    assert not watch.is_lost(0, 10 + LOST_AFTER_S - 1)
    assert watch.is_lost(0, 10 + LOST_AFTER_S)


def test_executors_that_come_back_or_are_still_to_come() -> None:
    watch = ApplicationWatch(Master())
    assert not any(watch.is_lost(0, now) for now in range(0, 1000, 10)), "none has come yet"
    assert not watch.is_lost(2, 1000)
    assert not watch.is_lost(0, 1010)
    assert not watch.is_lost(1, 1010 + LOST_AFTER_S)
    assert not watch.is_lost(0, 1020 + LOST_AFTER_S)
    assert not watch.is_lost(0, 1019 + 2 * LOST_AFTER_S)


def test_a_master_that_is_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    master = Master()
    watch = ApplicationWatch(master)
    master.is_there = False
    watch.is_lost(4, 0)
    assert not any(watch.is_lost(0, now) for now in range(10, 1000, 10))
    assert caplog.text.count("its Master cannot be reached") == 1
    master.is_there = True
    assert watch.is_lost(0, 1000)


def test_masters_are_looked_for_one_after_the_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        assert can_reach_master(f"spark://{there}")
        with socket.create_server(("127.0.0.1", 0)) as other:
            gone = f"127.0.0.1:{other.getsockname()[1]}"
        assert can_reach_master(f"spark://{gone},{there}")
        assert not can_reach_master(f"spark://{gone}")
    assert not can_reach_master("spark://no port")


class FakeSpark:
    """A SparkCluster whose Spark is a number of slots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **settings: str) -> None:
        for name in ("_CHECK_INTERVAL_S", "_SLOTS_CHECK_INTERVAL_S"):
            monkeypatch.setattr(spark_cluster, name, 0.001)
        monkeypatch.setattr(spark_cluster, "_ANSWER_TIMEOUT_S", 0.2)
        monkeypatch.setattr(liveness, "spark_lives", lambda _context: self.lives)
        self.lives = True
        self.slots: int | Exception = 4
        configuration = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
        self.cluster = SparkCluster(configuration, tmp_path / "spark.log")
        started: Future[Any] = self.cluster._started
        started.set_result((SimpleNamespace(master="spark://127.0.0.1:1"), self))

    @property
    def total(self) -> int:
        if isinstance(self.slots, Exception):
            raise self.slots
        return self.slots


@pytest.mark.parametrize(
    ("lives", "slots", "is_alive"),
    [(True, 4, True), (False, 4, False), (True, 0, False), (True, ConnectionError("Py4J"), False)],
)
def test_a_failure_counts_only_while_spark_is_there_and_has_executors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lives: bool, slots: Any, is_alive: bool
) -> None:
    spark = FakeSpark(monkeypatch, tmp_path)
    spark.lives, spark.slots = lives, slots
    assert spark.cluster.is_alive() is is_alive


def test_executors_that_come_and_go_need_not_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = FakeSpark(monkeypatch, tmp_path, spark_dynamicAllocation_enabled="true")
    spark.slots = 0
    assert spark.cluster.is_alive()


def test_a_lost_application_is_a_lost_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = FakeSpark(monkeypatch, tmp_path)
    now = iter(range(0, 100_000_000, int(LOST_AFTER_S)))
    monkeypatch.setattr(spark_cluster, "time", SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setattr(spark_cluster, "can_reach_master", lambda _master: True)
    lost: list[str] = []
    told = threading.Event()

    def on_lost(why: str) -> None:
        lost.append(why)
        told.set()

    looked = threading.Event()
    total = FakeSpark.total

    class Watched(FakeSpark):
        @property
        def total(self) -> int:
            looked.set()
            return int(total.__get__(self))

    spark.__class__ = Watched
    spark.cluster.watch_application(on_lost)
    try:
        assert looked.wait(60)
        assert not lost
        spark.slots = 0
        assert told.wait(60)
        assert "has dropped this application" in lost[0]
    finally:
        spark.cluster._stopped.set()
    eventually(lambda: not [thread for thread in threading.enumerate() if "watch" in thread.name])
