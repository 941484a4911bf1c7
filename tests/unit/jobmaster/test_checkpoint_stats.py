"""Statistics in the shape of Flink's REST answers."""

from __future__ import annotations

import json

import pytest

from firesteel.jobmaster.checkpoints.statistics import StatsSummary
from firesteel.jobmaster.checkpoints.stats import StatsRecorder
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from tests.support.checkpoints.harness import JOB, TASKS, CoordinatorHarness

COMPLETED_FIELDS = {
    *("className", "id", "status", "is_savepoint", "savepointFormat", "trigger_timestamp", "latest_ack_timestamp"),
    *("checkpointed_size", "state_size", "end_to_end_duration", "alignment_buffered", "processed_data"),
    *("persisted_data", "num_subtasks", "num_acknowledged_subtasks", "checkpoint_type", "tasks", "external_path"),
    "discarded",
}
METRICS = CheckpointMetrics(
    start_delay_ms=1,
    alignment_ms=2,
    sync_ms=3,
    async_ms=4,
    bytes_persisted_in_flight=5,
    bytes_written=6,
    bytes_processed_during_alignment=7,
)


@pytest.fixture
def h():
    harness = CoordinatorHarness(tolerable_failures=9, timeout=60_000)
    harness.start()
    return harness


def snapshot_of(h):
    answer = h.coordinator.stats.snapshot().to_json()
    json.dumps(answer)
    return answer


def test_before_any_checkpoint(h):
    answer = snapshot_of(h)
    assert answer["counts"] == {"restored": 0, "total": 0, "in_progress": 0, "completed": 0, "failed": 0}
    assert answer["latest"] == {"completed": None, "savepoint": None, "failed": None, "restored": None}
    assert answer["history"] == []
    assert answer["summary"]["state_size"] == {
        "min": 0,
        "max": 0,
        "avg": 0,
        **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "NaN"),
    }


def test_a_completed_checkpoint(h):
    h.trigger()
    triggered = h.now
    h.coordinators(1)
    for task in TASKS:
        h.ack(1, task, [f"{JOB}/shared/{task}"], metrics=METRICS)
    acked = h.now
    h.now += 500
    h.store(1)
    answer = snapshot_of(h)
    latest = answer["latest"]["completed"]
    assert set(latest) == COMPLETED_FIELDS
    assert latest == answer["history"][0]
    assert latest["className"] == "completed"
    assert latest["status"] == "COMPLETED"
    assert latest["trigger_timestamp"] == triggered
    assert latest["latest_ack_timestamp"] == acked
    assert latest["end_to_end_duration"] == acked - triggered
    assert latest["checkpointed_size"] == 24
    assert latest["state_size"] == 40
    assert latest["processed_data"] == 28
    assert latest["persisted_data"] == 20
    assert latest["num_subtasks"] == latest["num_acknowledged_subtasks"] == 4
    assert latest["external_path"] == f"{JOB}/chk-1"
    assert not latest["discarded"]
    assert answer["summary"]["state_size"]["p99"] == 40.0
    assert answer["counts"]["completed"] == 1
    h.complete(h.trigger())
    assert snapshot_of(h)["history"][1]["discarded"]


def test_details_of_every_vertex_and_subtask(h):
    h.trigger()
    h.ack(1, ("sum", 1), metrics=METRICS)
    details = h.coordinator.stats.snapshot().details(1)
    assert set(details["tasks"]) == {"source", "sum"}
    assert details["tasks"]["sum"]["num_acknowledged_subtasks"] == 1
    assert details["tasks"]["source"]["latest_ack_timestamp"] == -1
    subtasks = h.coordinator.stats.snapshot().subtask_details(1, "sum")
    assert subtasks["subtasks"][0] == {"className": "pending", "index": 0, "status": "pending_or_failed"}
    known = subtasks["subtasks"][1]
    assert known["checkpoint"] == {"sync": 3, "async": 4}
    assert known["alignment"] == {"buffered": 0, "processed": 7, "persisted": 5, "duration": 2}
    assert known["start_delay"] == 1
    assert subtasks["summary"]["checkpoint_duration"]["sync"]["max"] == 3
    json.dumps(subtasks)
    assert h.coordinator.stats.snapshot().details(99) is None
    assert h.coordinator.stats.snapshot().subtask_details(1, "nobody") is None


def test_a_failed_checkpoint(h):
    h.trigger()
    h.now += 50
    h.call("decline", 1, *TASKS[0], "disk full")
    failed = snapshot_of(h)["latest"]["failed"]
    assert failed["className"] == "failed"
    assert failed["failure_timestamp"] == h.now
    assert failed["end_to_end_duration"] == 51
    assert "disk full" in failed["failure_message"]
    assert "external_path" not in failed
    h.ack(1, TASKS[1])
    assert h.coordinator.stats.snapshot().subtask_details(1, "source")["subtasks"][1]["aborted"]


@pytest.mark.parametrize(
    ("kind", "stop", "expected"),
    [
        (SnapshotKind.SAVEPOINT, None, ("SAVEPOINT", "CANONICAL")),
        (SnapshotKind.NATIVE_SAVEPOINT, StopMode.DRAIN, ("SYNC_SAVEPOINT", "NATIVE")),
    ],
)
def test_savepoints(h, kind, stop, expected):
    h.savepoint("r", kind, stop)
    h.complete(1)
    latest = snapshot_of(h)["latest"]
    assert latest["completed"] is None
    assert (latest["savepoint"]["checkpoint_type"], latest["savepoint"]["savepointFormat"]) == expected


def test_an_unaligned_checkpoint_is_called_so(h):
    h.trigger()
    h.ack(1, TASKS[0], metrics=CheckpointMetrics(unaligned=True))
    assert snapshot_of(h)["history"][0]["checkpoint_type"] == "UNALIGNED_CHECKPOINT"


def test_restored(h):
    h.complete(h.trigger())
    latest = h.coordinator.latest()
    h.call("restored", latest.metadata, latest.path, True)
    answer = snapshot_of(h)
    assert answer["counts"]["restored"] == 1
    assert answer["latest"]["restored"] == {
        "id": 1,
        "restore_timestamp": h.now,
        "is_savepoint": False,
        "external_path": f"{JOB}/chk-1",
    }


def test_the_history_is_bounded_and_newest_first(h):
    for _ in range(14):
        h.complete(h.trigger())
    answer = snapshot_of(h)
    assert [each["id"] for each in answer["history"]] == list(range(14, 4, -1))
    assert answer["counts"]["total"] == 14


def test_tasks_that_have_finished_count_as_acknowledged(h):
    h.call("task_finished", ("source", 0))
    h.trigger()
    assert snapshot_of(h)["history"][0]["num_acknowledged_subtasks"] == 1


def test_percentiles_lie_between_the_values():
    summary = StatsSummary.of(range(1, 101)).to_json()
    assert summary["min"] == 1
    assert summary["max"] == 100
    assert summary["avg"] == 50
    assert summary["p50"] == 50.5
    assert summary["p99"] == pytest.approx(99.99)
    assert summary["p999"] == 100.0


def test_percentiles_are_of_the_last_values_only() -> None:
    recorder = StatsRecorder(window=4)
    for value in range(1, 11):
        recorder.add(value)
    shown = recorder.snapshot().to_json()
    assert (shown["min"], shown["max"], shown["avg"]) == (1, 10, 5)
    assert shown["p50"] == 8.5
    assert shown["p999"] == 10.0
