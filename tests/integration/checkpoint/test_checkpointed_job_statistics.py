"""What a running job tells of its checkpoints."""

from __future__ import annotations

import time
from pathlib import Path

from firesteel.testing import ABORT, eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    Numbered,
    clock_of_today,
    environment,
    files_in,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    number_pairs,
    pairs,
    phases,
    source,
    start,
)


def test_sizes_durations_and_subtasks(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, execution__checkpointing__data_inline_threshold="0 b")
    job = start(number_pairs(env, phases(clock, pairs(0, 3000, keys=1000), []), bounded=False)).runs(clock)
    began = time.time_ns() // 1_000_000
    path = job.checkpoint()
    ended = time.time_ns() // 1_000_000
    latest = job.statistics["latest"]["completed"]
    metadata = metadata_of(path)
    assert latest["id"] == 1
    assert latest["status"] == "COMPLETED"
    assert latest["is_savepoint"] is False
    assert latest["external_path"] == path
    assert began <= latest["trigger_timestamp"] <= latest["latest_ack_timestamp"] <= ended
    assert 0 <= latest["end_to_end_duration"] <= ended - began
    on_disk = sum(Path(file).stat().st_size for file in files_in(Path(path).parent) if "_metadata" not in file)
    assert latest["checkpointed_size"] <= on_disk
    enumerator = metadata.operator("source").coordinator.length  # type: ignore[union-attr]
    assert latest["state_size"] == metadata.size - enumerator > 5000
    assert latest["persisted_data"] == 0
    assert (latest["num_subtasks"], latest["num_acknowledged_subtasks"]) == (4, 4)

    details = job.tracker.details(1)
    assert set(details["tasks"]) == set(job.tracker.history[0].vertices)
    subtasks = [
        subtask for vertex in details["tasks"] for subtask in job.tracker.subtask_details(1, vertex)["subtasks"]
    ]
    assert [subtask["status"] for subtask in subtasks] == ["completed"] * 4
    assert sum(subtask["state_size"] for subtask in subtasks) == latest["state_size"]
    assert sum(subtask["checkpointed_size"] for subtask in subtasks) == latest["checkpointed_size"]
    for subtask in subtasks:
        assert began <= subtask["ack_timestamp"] <= ended
        assert 0 <= subtask["checkpoint"]["sync"] <= ended - began
        assert 0 <= subtask["checkpoint"]["async"] <= ended - began
        assert 0 <= subtask["alignment"]["duration"] <= ended - began
        assert subtask["unaligned_checkpoint"] is False

    # nothing has changed: an incremental one writes nearly nothing
    job.checkpoint()
    second = job.statistics["latest"]["completed"]
    assert second["checkpointed_size"] < latest["checkpointed_size"] / 4
    assert second["state_size"] >= latest["state_size"]
    job.savepoint()
    assert job.statistics["latest"]["savepoint"]["id"] == 3
    assert job.statistics["latest"]["completed"]["id"] == 2
    counts = job.statistics["counts"]
    assert counts == {"restored": 0, "total": 3, "in_progress": 0, "completed": 3, "failed": 0}
    summary = job.statistics["summary"]
    assert summary["state_size"]["max"] >= latest["state_size"] >= summary["state_size"]["min"] > 0
    job.cancel()


def test_failures_restores_and_a_checkpoint_under_way(tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate(is_open=True)
    env = environment(tmp_path, 2, clock)
    items = phases(clock, pairs(0, 100), [ABORT(), *pairs(100, 3000)], [])
    job = start(number_pairs(env, items, bounded=False), GatedSink("results", gate)).runs(clock)
    job.checkpoint()
    gate.close()
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs()
    restored = job.statistics["latest"]["restored"]
    assert restored["id"] == 1
    assert restored["is_savepoint"] is False
    waiting = job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    (under_way,) = [each for each in job.statistics["history"] if each["status"] == "IN_PROGRESS"]
    assert under_way["id"] == 2
    assert under_way["num_acknowledged_subtasks"] < under_way["num_subtasks"]
    gate.open()
    waiting.result(120)
    assert job.statistics["counts"]["in_progress"] == 0
    job.cancel()


def test_alignment_takes_time(tmp_path: Path) -> None:
    """One channel's barrier is there long before the other's."""
    gate = Gate()
    stream = source(environment(tmp_path, 2), pairs(0, 9000), [], bounded=False).key_by(lambda pair: pair[0])
    job = start(stream.process(Numbered()).uid("numbered"), GatedSink("results", gate)).runs()
    waiting = job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    held = time.monotonic()
    eventually(lambda: time.monotonic() > held + 0.1)
    gate.open()
    waiting.result(120)
    latest = job.statistics["latest"]["completed"]
    assert latest["end_to_end_duration"] >= 50
    vertices = job.tracker.details(1)["tasks"]
    delays = [
        subtask["start_delay"] + subtask["alignment"]["duration"]
        for vertex in vertices
        for subtask in job.tracker.subtask_details(1, vertex)["subtasks"]
    ]
    assert max(delays) >= 50
    job.cancel()
