"""What other threads read of a JobMaster: each answer is of one moment, and what was published never changes."""

from __future__ import annotations

import enum
import pickle
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import firesteel
from firesteel.cluster.rest.handlers import jobs as job_handlers
from firesteel.cluster.rest.request import RestRequest
from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionGraph, ExecutionState
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import with_parallelism
from firesteel.graph.slots import SlotAssignment
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model import events
from firesteel.jobmaster.model.instructions import SendToSlot, StoreMetadata
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.model.timers import Timer
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.model import messages
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.state_handles import TaskStateSnapshot
from firesteel.testing import test_environment
from tests.support.checkpoints.harness import location_of, savepoint_location_of
from tests.support.rest.shown_jobs import ShownJob, ShownJobs

_PRODUCT = str(Path(firesteel.__file__).parent)
_ANSWERS = ("/jobs/:jobid", "/jobs/overview", "/jobs/:jobid/checkpoints", "/jobs/:jobid/exceptions")
_QUERY = {"maxExceptions": 20}


def _job_graph() -> JobGraph:
    class Kept:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            self.job_graph = job_graph

    env = test_environment(2)
    env._executor = kept = Kept()  # type: ignore[assignment]
    env.from_sequence(1, 10).rebalance().map(str).name("text").print()
    env.execute_async("read")
    return kept.job_graph


class Driven:
    """A JobMaster whose slots, storage and clock the test plays; ``around`` may watch each event being handled."""

    def __init__(self, around: Callable[[Callable[[], Any]], Any] = lambda handle: handle()) -> None:
        graph = _job_graph()
        coordinator = CheckpointCoordinator(
            CheckpointSettings(interval=1000, timeout=600_000),
            graph.job_id,
            graph.job_name,
            location_of=location_of,
            savepoint_location_of=savepoint_location_of,
            random_source=lambda: 0.5,
        )
        settings = JobMasterSettings(checkpointing=True)
        self.master = JobMaster(ExecutionGraph(graph), FixedDelayRestartStrategy(3, 0), settings, coordinator)
        self.around = around
        self.now = 1_000
        self.triggered = 0
        self.storing: list[StoreMetadata] = []

    def handle(self, event: events.Event, after: int = 1) -> None:
        self.now += after
        for instruction in self.around(lambda: self.master.handle(event, self.now)):
            if isinstance(instruction, StoreMetadata):
                self.storing.append(instruction)
            elif isinstance(instruction, SendToSlot) and isinstance(instruction.message, messages.TriggerCheckpoint):
                self.triggered = instruction.message.checkpoint_id

    def say(self, slot: int, message: messages.SlotMessage) -> None:
        self.handle(events.MessageReceived(slot, message))

    @property
    def tasks(self) -> list[tuple[str, int, int]]:
        """Vertex id, subtask and slot of all."""
        return [(each.vertex_id, each.subtask_index, each.slot) for each in self.master.execution_graph.vertices()]

    def run(self) -> None:
        """Brings the next attempt to where all tasks run."""
        attempt = self.master.attempt
        for slot in range(self.master.execution_graph.slots.total):
            self.say(slot, messages.RegisterSlot(attempt, slot, "host", ("host", 5000 + slot), 100 + slot))
        for state in ("INITIALIZING", "RUNNING"):
            for vertex_id, subtask, slot in self.tasks:
                self.say(slot, messages.TaskStateChanged(attempt, vertex_id, subtask, state))
        source = self.master.execution_graph.job_graph.vertices[0]
        for subtask in range(source.parallelism):
            self.say(subtask, messages.ReaderStarted(attempt, source.id, source.head.node.operator_id, subtask))

    def report(self) -> None:
        for vertex_id, subtask, slot in self.tasks:
            metrics = {(vertex_id, "", subtask): {"numRecordsIn": self.now, "numRecordsOut": self.now}}
            self.say(slot, messages.MetricReport(self.master.attempt, slot, metrics, {(vertex_id, subtask): {"n": 1}}))
            self.say(slot, messages.Heartbeat(self.master.attempt, slot, self.now, 1 << 20, 5))

    def complete_checkpoint(self) -> None:
        due = self.master.checkpoints.coordinator.next_due()
        assert due is not None
        self.handle(events.TimerFired(Timer.CHECKPOINT.value), max(1, due - self.now))
        self.acknowledge()

    def acknowledge(self) -> None:
        """All tasks acknowledge the checkpoint that was triggered last, and it completes."""
        for vertex_id, subtask, slot in self.tasks:
            part = (self.triggered, vertex_id, subtask, TaskStateSnapshot({}), CheckpointMetrics(bytes_written=7))
            self.say(slot, messages.AcknowledgeCheckpoint(self.master.attempt, *part))
        stored = self.storing.pop()
        self.handle(events.MetadataStored(stored.checkpoint_id, stored.location.exclusive))

    def fail_and_restart(self) -> None:
        attempt = self.master.attempt
        vertex_id, subtask, slot = self.tasks[-1]
        failure = TaskFailure("boom", "ValueError", task=f"text ({subtask + 1}/2)#0")
        self.say(slot, messages.TaskStateChanged(attempt, vertex_id, subtask, "FAILED", failure))
        self.end_attempt()
        self.handle(events.TimerFired(Timer.RESTART.value))

    def end_attempt(self) -> None:
        attempt = self.master.attempt
        for slot in range(self.master.execution_graph.slots.total):
            self.say(slot, messages.SlotStopped(attempt, slot, {}))
        self.handle(events.AttemptEnded(attempt))

    def rescale(self) -> None:
        graph = self.master.execution_graph.job_graph
        self.handle(events.RescaleJob(with_parallelism(graph, {vertex.id: 3 for vertex in graph.vertices})))
        self.acknowledge()
        self.end_attempt()

    def live(self) -> None:
        """A whole life: a checkpoint, a failure, another parallelism, and the end."""
        self.handle(events.StartJob())
        self.run()
        self.report()
        self.complete_checkpoint()
        self.fail_and_restart()
        self.run()
        self.rescale()
        self.run()
        self.report()
        for vertex_id, subtask, slot in self.tasks:
            self.say(slot, messages.TaskStateChanged(self.master.attempt, vertex_id, subtask, "FINISHED"))
        self.end_attempt()
        assert (self.master.status, self.master.attempt) == (JobStatus.FINISHED, 2)


class Reader:
    """Asks for all answers whenever a function of the product returns while an event is handled."""

    def __init__(self) -> None:
        self.driven = Driven(self.watch)
        job = ShownJob(self.driven.master)
        routes = {route.endpoint.path: route for route in ShownJobs(job).routes}
        self.asked = [(routes[path].handler, RestRequest({"jobid": job.job_id}, _QUERY, None)) for path in _ANSWERS]
        self.torn: list[str] = []
        self.events = self.looks = 0

    def read(self) -> list[Any]:
        return [handler(request) for handler, request in self.asked]

    def watch(self, handle: Callable[[], Any]) -> Any:
        before, seen = self.read(), []

        def look(frame: Any, what: str, _argument: Any) -> Any:
            if not frame.f_code.co_filename.startswith(_PRODUCT):
                return None
            if what == "return":
                seen.append((frame.f_code.co_name, self.read()))
            return look

        traced = sys.gettrace()
        sys.settrace(look)
        try:
            instructions = handle()
        finally:
            sys.settrace(traced)
        after = self.read()
        self.events += 1
        self.looks += len(seen)
        for where, answers in seen:
            for path, *moments in zip(_ANSWERS, answers, before, after, strict=True):
                if moments[0] not in moments[1:]:
                    self.torn.append(f"{path} after {where}: {moments[0]}")
        return instructions


def test_every_answer_is_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that comes between any two steps of an event sees the job before the event, or after it."""
    monkeypatch.setattr(job_handlers, "now_ms", lambda: 2_000_000_000_000)
    reader = Reader()
    reader.driven.live()
    assert reader.looks > 20 * reader.events, "the reader comes at many points of an event"
    assert reader.torn == []


def test_a_snapshot_stays_as_it_was() -> None:
    driven = Driven()
    published = [driven.master.snapshot]
    driven.around = lambda handle: (handle(), published.append(driven.master.snapshot))[0]
    driven.live()
    first, last = published[0], published[-1]
    assert (first.status, first.attempt, first.exception_history) == (JobStatus.INITIALIZING, -1, ())
    assert {subtask.current.state for subtasks in first.execution_graph.vertices.values() for subtask in subtasks} == {
        ExecutionState.CREATED
    }
    assert (first.checkpoints.counts["total"], last.checkpoints.counts["total"]) == (0, 2)
    assert (first.metrics.by_scope(), first.slot_pool, first.past_slot_pools) == ({}, None, ())
    assert [len(subtasks) for subtasks in last.execution_graph.vertices.values()] == [3, 3]
    assert [pool.attempt for pool in last.past_slot_pools] == [0, 1]


def test_a_snapshot_can_be_pickled() -> None:
    driven = Driven()
    driven.live()
    snapshot = driven.master.snapshot
    copy = pickle.loads(pickle.dumps(snapshot))
    # configurations and functions of the program are compared by identity
    of_program = {"execution_graph", "wanted_job_graph"}
    for name in set(type(snapshot).__struct_fields__) - of_program:
        assert getattr(copy, name) == getattr(snapshot, name), name
    assert copy.execution_graph.vertices == snapshot.execution_graph.vertices


def test_what_an_event_does_not_change_is_shared() -> None:
    driven = Driven()
    driven.handle(events.StartJob())
    driven.run()
    driven.report()
    before = driven.master.snapshot
    driven.say(0, messages.Heartbeat(0, 0, driven.now, 1 << 21, 6))
    after = driven.master.snapshot
    assert after is not before
    assert after.slot_pool is not None
    assert before.slot_pool is not None
    assert after.slot_pool.slots[0].rss_bytes == 1 << 21
    assert after.slot_pool.slots[1] is before.slot_pool.slots[1]
    unchanged = set(type(after).__struct_fields__) - {"slot_pool"}
    assert {name for name in unchanged if getattr(after, name) is not getattr(before, name)} == set()
    vertex_id, subtask, slot = driven.tasks[-1]
    driven.say(slot, messages.MetricReport(0, slot, {(vertex_id, "", subtask): {"numRecordsIn": 99}}))
    reported = driven.master.snapshot.metrics
    assert reported.values(vertex_id, "", subtask)["numRecordsIn"] == 99
    assert reported.values(vertex_id, "", 0) is after.metrics.values(vertex_id, "", 0)


def test_a_snapshot_is_immutable_through_and_through() -> None:
    driven = Driven()
    driven.live()
    snapshot = driven.master.snapshot
    seen: dict[int, Any] = {}
    _check_immutable(snapshot, "snapshot", seen)
    kinds = {type(value).__name__ for value in seen.values()}
    assert {"SlotPoolSnapshot", "ExecutionSnapshot", "CheckpointStats", "ExceptionHistoryEntry"} <= kinds
    with pytest.raises(TypeError):
        snapshot.status_timestamps[JobStatus.FAILED] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.attempt = 7  # type: ignore[misc]


_OPAQUE = (JobGraph, SlotAssignment, BaseException)
"""The program, which nothing changes once it is compiled, and errors."""
_PLAIN = (str, bytes, int, float, bool, enum.Enum, type(None))


def _check_immutable(value: Any, where: str, seen: dict[int, Any]) -> None:
    if id(value) in seen or isinstance(value, (*_PLAIN, *_OPAQUE)):
        return
    seen[id(value)] = value
    if isinstance(value, msgspec.Struct):
        assert type(value).__struct_config__.frozen, where
        parts = {name: getattr(value, name) for name in value.__struct_fields__}
    elif is_dataclass(value):
        assert value.__dataclass_params__.frozen, where  # type: ignore[attr-defined]
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, dict):
        with pytest.raises(TypeError):
            value["new"] = 1
        parts = {str(key): each for key, each in value.items()}
    else:
        assert isinstance(value, (tuple, frozenset)), f"{where} is a {type(value).__name__}"
        parts = {str(index): each for index, each in enumerate(value)}
    for name, part in parts.items():
        _check_immutable(part, f"{where}.{name}", seen)
