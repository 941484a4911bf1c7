"""Between two attempts the files that nobody needs are deleted; a storage that hangs holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import current_stores
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.events import Event, LeftoversRemoved
from firesteel.jobmaster.model.instructions import RemoveLeftovers, Say, StartAttempt
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.jobmaster.shell import checkpoint_io
from firesteel.jobmaster.shell.checkpoint_io import CheckpointIO
from firesteel.process.concurrency import SYSTEM
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.testing import TestingSource, eventually, test_environment

SECONDS = 60


# -- the JobMaster's part ---------------------------------------------------------------------------


@pytest.fixture
def failed(make_harness: Any) -> Any:
    """A job with checkpoints whose first attempt has failed, and has just ended."""
    h = make_harness()
    settings = replace(h.jm.settings, storage_token="a token")
    h.jm = JobMaster(h.graph, FixedDelayRestartStrategy(10, 5_000), settings)
    h.run()
    h.failed(0, TaskFailure("boom"))
    h.stopped(1)
    assert not leftovers(h)
    h.attempt_ended()
    return h


def leftovers(h: Any) -> list[RemoveLeftovers]:
    return [each for each in h.instructions if isinstance(each, RemoveLeftovers)]


def test_the_next_attempt_waits_until_the_leftovers_are_gone(failed: Any) -> None:
    assert leftovers(failed) == [RemoveLeftovers(0, frozenset(), ())]
    failed.fire("restart-delay")
    assert failed.started == [0]
    failed.feed(LeftoversRemoved(0))
    assert failed.started == [0, 1]


def test_the_restart_delay_counts_all_the_same(failed: Any) -> None:
    failed.feed(LeftoversRemoved(0))
    assert failed.started == [0]
    failed.fire("restart-delay")
    assert failed.started == [0, 1]
    assert len(leftovers(failed)) == 1


def test_a_storage_that_does_not_answer_is_not_waited_for_any_longer(failed: Any) -> None:
    failed.fire("restart-delay")
    told = failed.fire("leftovers-timeout")
    assert failed.started == [0, 1]
    assert any(isinstance(each, Say) and "did not respond within 30 s" in each.text for each in told)
    failed.feed(LeftoversRemoved(0))  # at last
    assert failed.status is JobStatus.CREATED


def test_a_cancel_is_not_held_up(failed: Any) -> None:
    failed.cancel()
    assert failed.status is JobStatus.CANCELED


def test_without_checkpoints_there_are_no_leftovers(make_harness: Any) -> None:
    h = make_harness(FixedDelayRestartStrategy(10, 0))
    h.run()
    h.failed(0, TaskFailure("boom"))
    h.stopped(1)
    h.attempt_ended()
    h.fire("restart-delay")
    assert not leftovers(h)
    assert StartAttempt(1, 2) in h.instructions


# -- the shell's part -------------------------------------------------------------------------------


class Hanging:
    """A storage whose listing does not return until it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        original = CheckpointStorage.completed

        def hang(storage: CheckpointStorage) -> list[str]:
            self.reached.set()
            assert self.released.wait(SECONDS)
            return original(storage)

        monkeypatch.setattr(CheckpointStorage, "completed", hang)
        monkeypatch.setattr(checkpoint_io, "_CLOSE_TIMEOUT_S", 0.01)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    storage = Hanging(monkeypatch)
    yield storage
    storage.released.set()


class _Prepared:
    """A PreparedJob, as far as its storage is concerned."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage
        self.stores = current_stores()
        self.job_graph: Any = type("Graph", (), {"job_name": "a job"})
        self.settings: Any = type("Settings", (), {"directory": storage.base_dir})

    def discard(self) -> None:
        pass


def test_files_that_are_found_after_the_next_attempt_has_started_are_not_deleted(
    hanging: Hanging, tmp_path: Path
) -> None:
    """They may be those of a checkpoint that it is just writing."""
    storage = CheckpointStorage(str(tmp_path), "job")
    posted: list[Event] = []
    io = CheckpointIO(_Prepared(storage), JobServices(), posted.append, SYSTEM)  # type: ignore[arg-type]
    io.execute(RemoveLeftovers(0, frozenset(), ()))
    assert hanging.reached.wait(SECONDS)
    io.attempt_starts()
    written = Path(storage.location(7).exclusive) / "state"
    written.parent.mkdir(parents=True)
    written.touch()
    hanging.released.set()
    eventually(lambda: posted == [LeftoversRemoved(0)], SECONDS)
    assert written.exists()
    io.execute(RemoveLeftovers(1, frozenset(), ()))
    eventually(lambda: posted[1:] == [LeftoversRemoved(1)], SECONDS)
    assert not written.exists()
    io.close()


@pytest.mark.parametrize("error", [OSError("away"), RuntimeError("boom"), SystemExit(1)])
def test_a_storage_that_raises_anything_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException
) -> None:
    def broken(_storage: CheckpointStorage) -> list[str]:
        raise error

    monkeypatch.setattr(CheckpointStorage, "completed", broken)
    posted: list[Event] = []
    storage = CheckpointStorage(str(tmp_path), "job")
    io = CheckpointIO(_Prepared(storage), JobServices(), posted.append, SYSTEM)  # type: ignore[arg-type]
    for attempt in range(2):
        io.execute(RemoveLeftovers(attempt, frozenset(), ()))
    eventually(lambda: posted == [LeftoversRemoved(0), LeftoversRemoved(1)], SECONDS)
    io.close()


def test_a_job_is_cancelled_while_its_storage_hangs_between_two_attempts(hanging: Hanging, tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    settings = {
        "execution.checkpointing.interval": "1 h",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }

    def fails_once(value: int) -> int:
        if not failing.exists():
            failing.touch()
            raise RuntimeError("boom")
        return value

    environment = test_environment(configuration=Configuration.from_dict(settings))
    source = TestingSource([1, 2, 3], bounded=False)
    environment.from_source(source, WatermarkStrategy.no_watermarks(), "n").map(fails_once).print()
    client = environment.execute_async("endless")
    assert hanging.reached.wait(SECONDS)
    client.cancel().result(SECONDS)
    assert client.get_job_status().result() is JobStatus.CANCELED
