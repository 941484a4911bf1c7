"""The check that what a new leader would start a job from is never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.cluster.ha.job_store import PersistentJobStore
from firesteel.runtime.model.state_handles import FileSegment
from firesteel.testing.simulation.machine.scheduler import Scheduler
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.machine.storage import Storage
from firesteel.testing.simulation.machine.story import Story
from firesteel.testing.simulation.registered_checkpoints import RegisteredCheckpoints
from tests.support.checkpoints.handles import checkpoint_of

JOB = "job"
STORE: Any = None
"""The store's methods are replaced by ones that need none."""


class Disk(Storage):
    """A storage with a checkpoint or two."""

    def __init__(self) -> None:
        self.simulation = Scheduler(1, Story())
        super().__init__(self.simulation)
        self.checks = RegisteredCheckpoints(self.simulation, self)

    def register(self, checkpoint_id: int) -> None:
        directory = f"sim://store/{JOB}/chk-{checkpoint_id}"
        self.put(f"{directory}/state", b"state")
        metadata = checkpoint_of(FileSegment(f"{directory}/state", 0, 5, ""), checkpoint_id=checkpoint_id)
        self.put(f"{directory}/_metadata", metadata.to_bytes(directory))
        PersistentJobStore.add_checkpoint(STORE, JOB, checkpoint_id, directory)

    def delete(self, checkpoint_id: int, name: str) -> None:
        self.remove(f"sim://store/{JOB}/chk-{checkpoint_id}/{name}")


@pytest.fixture
def disk() -> Iterator[Disk]:
    written = lambda *_arguments: None
    made = Disk()
    with replaced(PersistentJobStore, add_checkpoint=written, remove_checkpoint=written, end=written):
        with made.checks.watched():
            yield made


@pytest.mark.parametrize("name", ["_metadata", "state"])
def test_the_newest_checkpoint_must_stay_whole(disk: Disk, name: str) -> None:
    disk.register(1)
    disk.register(2)
    disk.delete(1, name)
    assert disk.checks.problems == []
    disk.delete(2, name)
    assert len(disk.checks.problems) == 1
    assert f"chk-2/{name} was deleted" in disk.checks.problems[0]


def test_nothing_is_needed_of_a_job_that_has_ended(disk: Disk) -> None:
    disk.register(1)
    PersistentJobStore.end(STORE, SimpleNamespace(job_id=JOB))  # type: ignore[arg-type]
    disk.delete(1, "state")
    assert disk.checks.problems == []


def test_all_is_needed_of_a_job_whose_end_was_not_recorded() -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("full")

    disk = Disk()
    with replaced(PersistentJobStore, add_checkpoint=lambda *_arguments: None, end=refuse), disk.checks.watched():
        disk.register(1)
        with pytest.raises(OSError, match="full"):
            PersistentJobStore.end(STORE, SimpleNamespace(job_id=JOB))  # type: ignore[arg-type]
        disk.delete(1, "state")
    assert len(disk.checks.problems) == 1


def test_a_checkpoint_that_was_given_up_may_go(disk: Disk) -> None:
    disk.register(1)
    PersistentJobStore.remove_checkpoint(STORE, JOB, 1)
    disk.delete(1, "state")
    assert disk.checks.problems == []
