"""What a view tells of a job: times, states, and where subtasks run."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionGraph, ExecutionState
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model import events
from firesteel.jobmaster.model.timers import Timer
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.jobmaster.view import job as job_view
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.metrics import VertexMetrics, job_metrics, operator_scope_name
from firesteel.jobmaster.view.vertices import TaskIo, VertexView
from firesteel.runtime.model import messages
from firesteel.testing import test_environment


def _job_graph(parallelism: int = 2) -> JobGraph:
    class Kept:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            self.job_graph = job_graph

    env = test_environment(parallelism)
    env._executor = kept = Kept()  # type: ignore[assignment]
    env.from_sequence(1, 10).key_by(lambda number: number % 2).map(str).name("to text").print()
    env.execute_async("viewed")
    return kept.job_graph


class Driven:
    """A JobMaster whose slots and clock the test plays."""

    def __init__(self) -> None:
        self.now = 1_000
        self.master = JobMaster(ExecutionGraph(_job_graph()), FixedDelayRestartStrategy(attempts=1, delay=5))

    def handle(self, event: events.Event) -> None:
        self.now += 10
        self.master.handle(event, self.now)

    def says(self, message: messages.SlotMessage, slot: int = 0) -> None:
        self.handle(events.MessageReceived(slot, message))

    def register(self, port: int) -> None:
        attempt = self.master.attempt
        for slot in range(2):
            self.says(messages.RegisterSlot(attempt, slot, "host", ("host", port + slot), 7), slot)

    def all_enter(self, state: str) -> None:
        for vertex in self.master.execution_graph.vertices():
            self.says(
                messages.TaskStateChanged(self.master.attempt, vertex.vertex_id, vertex.subtask_index, state),
                vertex.slot,
            )

    def view(self) -> JobView:
        snapshot = self.master.snapshot
        return JobView("id", "viewed", 900, snapshot.status, {}, snapshot)

    def vertex(self, index: int) -> VertexView:
        return self.view().vertices()[index]


@pytest.fixture
def driven() -> Driven:
    driven = Driven()
    driven.handle(events.StartJob())
    return driven


def test_states_and_durations(driven: Driven) -> None:
    requested = driven.now
    view = driven.view()
    source = view.vertices()[0]
    assert source.state is ExecutionState.CREATED, "none is further than SCHEDULED"
    assert source.span(driven.now) == source.subtasks()[0].span(driven.now)
    assert source.span(driven.now).start == -1
    assert source.subtasks()[0].endpoint == "(unassigned)"
    driven.register(4000)
    deployed = driven.now
    driven.all_enter("INITIALIZING")
    driven.all_enter("RUNNING")
    assert source.state is ExecutionState.CREATED, "a view stays as it was"
    source = driven.vertex(0)
    assert source.state is ExecutionState.RUNNING
    first = source.subtasks()[0]
    span = source.span(driven.now)
    assert (span.start, span.end, span.duration) == (deployed, -1, driven.now - deployed)
    durations = first.status_durations(driven.now)
    assert durations[ExecutionState.CREATED] == 0
    assert durations[ExecutionState.SCHEDULED] == deployed - requested
    assert sum(durations.values()) == driven.now - requested
    assert view.timestamp(JobStatus.INITIALIZING) == view.start_time == 900
    assert view.timestamp(JobStatus.FAILED) == 0
    assert driven.view().end_time == -1


def test_where_subtasks_of_past_attempts_ran(driven: Driven) -> None:
    driven.register(4000)
    driven.all_enter("RUNNING")
    source = driven.view().vertices()[0]
    assert [subtask.endpoint for subtask in source.subtasks()] == ["host:4000", "host:4001"]
    failure = TaskFailure("boom", task=f"{source.name} (2/2)#0")
    driven.says(messages.TaskStateChanged(0, source.id, 1, "FAILED", failure), 1)
    for slot in range(2):
        driven.says(messages.SlotStopped(0, slot, {}), slot)
    driven.handle(events.AttemptEnded(0))
    driven.handle(events.TimerFired(Timer.RESTART.value))
    assert driven.master.attempt == 1
    assert driven.master.snapshot.live_slots() == []
    driven.register(5000)
    view = driven.view()
    source = view.vertices()[0]
    assert [subtask.endpoint for subtask in source.subtasks()] == ["host:5000", "host:5001"]
    past = source.attempt(1, 0)
    assert past is not None
    assert (past.endpoint, past.state) == ("host:4001", ExecutionState.FAILED)
    assert past.status_durations(driven.now)[ExecutionState.INITIALIZING] == -1
    assert past.span(driven.now).end < driven.now
    assert past.io() == TaskIo(is_complete=True)
    assert source.attempt(1, 2) is None
    assert len(driven.master.snapshot.live_slots()) == 2
    assert job_metrics(view, driven.now)["numRestarts"] == 1
    entry = view.exceptions()[0]
    assert (entry.attempt, entry.failure.message) == (0, "boom")


def test_metrics_of_operators_and_tasks(driven: Driven) -> None:
    driven.register(4000)
    last = driven.vertex(1)
    assert not last.io().is_complete, "nobody has reported yet"
    operators = last.job_vertex.operators
    driven.says(
        messages.MetricReport(
            0,
            0,
            {
                (last.id, "", 0): {"numRecordsIn": 7, "accumulatedBusyTimeMs": 3, "gauge": None},
                (last.id, operators[0].node.operator_id, 0): {"shop.orders": 4},
                (last.id, "", 1): {"numRecordsIn": 5},
            },
        )
    )
    last = driven.vertex(1)
    assert (last.io().records_in, last.io().busy_ms, last.io().is_complete) == (12, 3.0, True)
    metrics = VertexMetrics(driven.view(), last)
    assert metrics.of_subtask(0) == {"numRecordsIn": 7, "accumulatedBusyTimeMs": 3, "to_text.shop.orders": 4}
    assert metrics.value(0, "to_text.shop.orders") == 4
    assert metrics.indexed("1.numRecordsIn") == 5
    for absent in ("2.numRecordsIn", "x.numRecordsIn", "numRecordsIn", "1.nothing", "9999999999999.a"):
        assert metrics.indexed(absent) is None
    assert last.subtasks()[1].rate("nothing") == 0.0


def test_accumulators_of_the_job_its_vertices_and_their_subtasks(driven: Driven) -> None:
    driven.register(4000)
    driven.all_enter("RUNNING")
    first, last = driven.view().vertices()
    counted = {(first.id, 0): {"read": 5}, (last.id, 0): {"words": 3, "read": 1}, (last.id, 1): {"words": 4}}
    # a slot may report the tasks of several
    driven.says(messages.MetricReport(0, 0, {}, counted), 0)
    driven.says(messages.MetricReport(0, 1, {}), 1)
    assert driven.view().accumulators() == {"read": 6, "words": 7}
    first, last = driven.view().vertices()
    assert (first.accumulators(), last.accumulators()) == ({"read": 5}, {"words": 7, "read": 1})
    assert [subtask.accumulators() for subtask in last.subtasks()] == [{"words": 3, "read": 1}, {"words": 4}]
    assert [subtask.accumulators() for subtask in first.subtasks()] == [{"read": 5}, {}]
    # what a slot says at its end counts instead
    driven.all_enter("FINISHED")
    driven.says(messages.SlotStopped(0, 1, {(last.id, 1): {"words": 5}}), 1)
    driven.says(messages.SlotStopped(0, 0, {}), 0)
    assert driven.view().status is JobStatus.FINISHED
    assert driven.view().accumulators() == {"read": 6, "words": 8}
    assert driven.vertex(1).subtasks()[1].accumulators() == {"words": 5}


def test_the_accumulators_of_an_attempt_go_with_it(driven: Driven) -> None:
    driven.register(4000)
    driven.all_enter("RUNNING")
    last = driven.view().vertices()[1]
    driven.says(messages.MetricReport(0, 0, {}, {(last.id, 0): {"words": 3}}), 0)
    driven.says(messages.TaskStateChanged(0, last.id, 1, "FAILED", TaskFailure("boom")), 1)
    for slot in range(2):
        driven.says(messages.SlotStopped(0, slot, {(last.id, slot): {"words": 4}}), slot)
    assert driven.view().accumulators() == {"words": 8}
    driven.handle(events.AttemptEnded(0))
    driven.handle(events.TimerFired(Timer.RESTART.value))
    again = driven.view().vertices()[1]
    assert driven.view().accumulators() == again.accumulators() == {}
    driven.register(5000)
    driven.says(messages.MetricReport(1, 0, {}, {(last.id, 0): {"words": 1}}), 0)
    again = driven.vertex(1)
    assert [again.attempt(0, number).accumulators() for number in (0, 1)] == [{}, {"words": 1}]  # type: ignore[union-attr]


def test_names_of_operators_in_metrics() -> None:
    assert operator_scope_name("a" * 100) == "a" * 80


def test_a_plan_is_made_once_and_forgotten_with_its_graph(driven: Driven) -> None:
    view = driven.view()
    assert view.plan() is driven.view().plan()
    identity = id(view.job_graph)
    assert identity in job_view._plans
    del view
    driven.master = None  # type: ignore[assignment]
    gc.collect()
    assert identity not in job_view._plans
