"""What is answered about jobs, their failures and their metrics."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from firesteel.cluster.rest.handlers.metrics import aggregate
from firesteel.cluster.rest.request import RestError
from firesteel.cluster.rest.serialized_throwable import serialized_throwable
from firesteel.common.job_status import JobStatus
from firesteel.datastream import MapFunction, RuntimeContext
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import (
    clock_of_today,
    environment,
    no_job_goes_on,
    pairs,
    phases,
    source,
    start,
)
from tests.support.rest.shown_jobs import ShownJob, ShownJobs

_ = no_job_goes_on  # a fixture

VERTEX = "/jobs/:jobid/vertices/:vertexid"


class Counting(MapFunction):
    """Counts what it sees, in a metric group of its own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_metrics_group().add_group("shop").counter("orders")

    def map(self, value: Any) -> Any:
        self.seen.inc()
        return value


def _job(tmp_path: Path, function: Any = Counting(), sink: Any = None, **overrides: str) -> tuple[Any, ShownJobs]:
    """A job at parallelism 2 that has done all it can: the first source subtask has 50 records, the second 30."""
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **overrides)
    stream = source(env, phases(clock, pairs(0, 50), pairs(50, 60)), phases(clock, pairs(60, 90), pairs(90, 95)))
    job = start(stream.map(function).name("count: orders").rebalance().map(str), sink, name="shown").runs(clock)
    clock.advance(1000)
    return job, ShownJobs(ShownJob(job.handle))


def _vertices(job: Any) -> list[str]:
    return list(job.handle.snapshot.execution_graph.vertices)


def test_the_list_of_jobs(tmp_path: Path) -> None:
    job, _ = _job(tmp_path)
    waiting = ShownJob(job_id="b" * 32, name="waits")
    shown = ShownJobs(ShownJob(job.handle), waiting)
    assert shown.get("/jobs")["jobs"][1] == {"id": "b" * 32, "status": "INITIALIZING"}
    running, other = shown.get("/jobs/overview")["jobs"]
    assert (running["name"], running["state"], running["end-time"]) == ("shown", "RUNNING", -1)
    assert running["tasks"]["running"] == running["tasks"]["total"] == 4
    assert running["last-modification"] >= running["start-time"]
    assert (other["name"], other["state"], other["tasks"]["total"]) == ("waits", "INITIALIZING", 0)
    assert other["last-modification"] == other["start-time"] == waiting.submitted_at
    job.cancel()
    ended = shown.get("/jobs/overview")["jobs"][0]
    assert ended["state"] == "CANCELED"
    assert ended["tasks"]["canceled"] == 4
    assert ended["end-time"] == ended["start-time"] + ended["duration"]
    assert shown.get("/jobs/overview")["jobs"][0] == ended


@pytest.mark.parametrize(
    ("path", "names", "status"),
    [
        ("/jobs/:jobid", {"jobid": "f" * 32}, 404),
        ("/jobs/:jobid", {"jobid": "nonsense"}, 400),
        ("/jobs/:jobid", {"jobid": "../../etc/passwd"}, 400),
        (VERTEX, {"vertexid": "f" * 32}, 404),
        (VERTEX, {"vertexid": "x"}, 400),
        (f"{VERTEX}/subtasks/:subtaskindex", {"subtaskindex": "2"}, 404),
        (f"{VERTEX}/subtasks/:subtaskindex", {"subtaskindex": "-1"}, 400),
        (f"{VERTEX}/subtasks/:subtaskindex", {"subtaskindex": "²"}, 400),
        (f"{VERTEX}/subtasks/:subtaskindex/attempts/:attempt", {"subtaskindex": "0", "attempt": "9" * 30}, 400),
        ("/jobs/:jobid/checkpoints/details/:checkpointid", {"checkpointid": "one"}, 400),
        ("/jobs/:jobid/checkpoints/details/:checkpointid", {"checkpointid": "5"}, 404),
    ],
)
def test_what_is_not_there(tmp_path: Path, path: str, names: dict[str, str], status: int) -> None:
    job, shown = _job(tmp_path)
    with pytest.raises(RestError) as error:
        shown.get(path, **{"vertexid": _vertices(job)[0], **names})
    assert error.value.status == status


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    job, shown = _job(tmp_path, s3__secret_key="hunter2", pipeline__global_job_parameters="api-token:abc,topic:orders")
    entries = {entry["key"]: entry["value"] for entry in shown.get("/jobs/:jobid/jobmanager/config")}
    assert entries["s3.secret-key"] == "******"
    assert entries["pipeline.global-job-parameters"] == "{api-token: ******, topic: orders}"
    assert entries["restart-strategy.fixed-delay.attempts"] == "10"
    config = shown.get("/jobs/:jobid/config")["execution-config"]
    assert config["user-config"] == {"api-token": "******", "topic": "orders"}
    assert config["restart-strategy"] == "Fixed delay: 10 restarts, 1 ms apart"
    assert config["job-parallelism"] == 2
    job.cancel()


def test_a_failure_shows_the_users_own_line(tmp_path: Path) -> None:
    def divide(pair: tuple[str, int]) -> float:
        return 1 / (pair[1] - 20)  # the line to be shown

    job, shown = _failing(tmp_path, divide)
    error = job.fails()
    history = shown.get("/jobs/:jobid/exceptions")["exceptionHistory"]
    assert not history["truncated"]
    (entry,) = history["entries"]
    assert entry["exceptionName"] == "ZeroDivisionError"
    assert entry["stacktrace"].startswith("ZeroDivisionError: ")
    assert "return 1 / (pair[1] - 20)" in entry["stacktrace"]
    assert Path(__file__).name in entry["stacktrace"]
    assert "Traceback (most recent call last)" in entry["stacktrace"]
    assert entry["taskName"].endswith("(1/2) - execution #0")
    assert entry["endpoint"] == "localhost:0"
    assert entry["failureLabels"] == {}
    result = shown.get("/jobs/:jobid/execution-result")["job-execution-result"]
    assert result["application-status"] == "FAILED"
    assert result["failure-cause"]["class"] == "ZeroDivisionError"
    assert error.failure.describe() in result["failure-cause"]["stack-trace"]
    assert b"org.apache.flink.util.SerializedThrowable" in base64.b64decode(
        result["failure-cause"]["serialized-throwable"]
    )


def _failing(tmp_path: Path, function: Any, **overrides: str) -> tuple[Any, ShownJobs]:
    env = environment(tmp_path, 2, **{"restart_strategy__type": "none", **overrides})
    job = start(source(env, pairs(0, 50), pairs(60, 90)).map(function), name="fails")
    return job, ShownJobs(ShownJob(job.handle))


def test_the_newest_failures_come_first_and_only_as_many_as_wanted(tmp_path: Path) -> None:
    def never(_pair: Any) -> Any:
        raise ValueError("no")

    job, shown = _failing(
        tmp_path, never, restart_strategy__type="fixed-delay", restart_strategy__fixed_delay__attempts="2"
    )
    job.fails()
    entries = shown.get("/jobs/:jobid/exceptions")["exceptionHistory"]["entries"]
    assert [entry["taskName"][-2:] for entry in entries] == ["#2", "#1", "#0"]
    assert entries[0]["timestamp"] >= entries[2]["timestamp"]
    some = shown.get("/jobs/:jobid/exceptions", query={"maxExceptions": 1})["exceptionHistory"]
    assert some == {"entries": entries[:1], "truncated": True}
    assert shown.get("/jobs/:jobid/metrics", query={"get": ["numRestarts"]}) == [{"id": "numRestarts", "value": "2"}]
    with pytest.raises(RestError):
        shown.get("/jobs/:jobid/exceptions", query={"maxExceptions": -1})


def test_accumulators_of_a_job_its_vertices_and_their_subtasks(tmp_path: Path) -> None:
    job, shown = _job(tmp_path)
    first, second = _vertices(job)

    def orders(count: int) -> list[dict[str, str]]:
        return [{"name": "shop.orders", "type": "int", "value": str(count)}]

    def subtasks(vertex: str) -> Any:
        return shown.get(f"{VERTEX}/subtasks/accumulators", vertexid=vertex)

    def are(count: int) -> None:
        assert shown.get("/jobs/:jobid/accumulators")["user-task-accumulators"] == orders(count)

    eventually(lambda: are(80))
    assert shown.get(f"{VERTEX}/accumulators", vertexid=first) == {"id": first, "user-accumulators": orders(80)}
    assert shown.get(f"{VERTEX}/accumulators", vertexid=second) == {"id": second, "user-accumulators": []}
    answer = subtasks(first)
    assert (answer["id"], answer["parallelism"]) == (first, 2)
    assert [(each["subtask"], each["attempt"], each["user-accumulators"]) for each in answer["subtasks"]] == [
        (0, 0, orders(50)),
        (1, 0, orders(30)),
    ]
    assert [each["user-accumulators"] for each in subtasks(second)["subtasks"]] == [[], []]
    path = f"{VERTEX}/subtasks/:subtaskindex/attempts/:attempt/accumulators"
    assert shown.get(path, vertexid=first, subtaskindex=1, attempt=0)["user-accumulators"] == orders(30)
    # they stay when the job is over
    job.cancel()
    are(80)
    assert subtasks(first)["subtasks"][0]["user-accumulators"] == orders(50)


def test_metrics_of_a_vertex_by_flinks_names(tmp_path: Path) -> None:
    job, shown = _job(tmp_path)
    first, second = _vertices(job)

    def seen() -> None:
        values = shown.get(f"{VERTEX}/metrics", vertexid=first, query={"get": ["0.count__orders.shop.orders"]})
        assert values == [{"id": "0.count__orders.shop.orders", "value": "50"}]

    eventually(seen)
    names = {metric["id"] for metric in shown.get(f"{VERTEX}/metrics", vertexid=first)}
    assert {"0.numRecordsOut", "1.numRecordsOut", "1.busyTimeMsPerSecond"} <= names
    wanted = ["numRecordsOut", "count__orders.shop.orders", "no.such.metric"]
    of_subtask = shown.get(
        f"{VERTEX}/subtasks/:subtaskindex/metrics", vertexid=first, subtaskindex=1, query={"get": wanted}
    )
    assert of_subtask == [
        {"id": "numRecordsOut", "value": "30"},
        {"id": "count__orders.shop.orders", "value": "30"},
    ]
    together = shown.get(f"{VERTEX}/subtasks/metrics", vertexid=first, query={"get": ["numRecordsOut"]})
    assert together == [{"id": "numRecordsOut", "min": 30.0, "max": 50.0, "avg": 40.0, "sum": 80.0, "skew": 25.0}]
    some = shown.get(
        f"{VERTEX}/subtasks/metrics",
        vertexid=first,
        query={"get": ["numRecordsOut"], "agg": ["max"], "subtasks": ["1-7"]},
    )
    assert some == [{"id": "numRecordsOut", "max": 30.0}]
    for query in ({"agg": ["median"]}, {"subtasks": ["x"]}, {"subtasks": ["1-"]}):
        with pytest.raises(RestError) as error:
            shown.get(f"{VERTEX}/subtasks/metrics", vertexid=first, query={"get": ["numRecordsOut"], **query})
        assert error.value.status == 400
    details = shown.get("/jobs/:jobid")["vertices"]
    assert details[0]["metrics"]["write-records"] == details[1]["metrics"]["read-records"] == 80
    assert details[0]["metrics"]["write-records-complete"]
    assert shown.get(f"{VERTEX}/watermarks", vertexid=first) == []
    assert [metric["id"] for metric in shown.get(f"{VERTEX}/watermarks", vertexid=second)] == [
        "0.currentInputWatermark",
        "1.currentInputWatermark",
    ]
    whole = shown.get(VERTEX, vertexid=first)
    assert whole["aggregated"]["metrics"]["write-records"]["sum"] == 80
    assert [subtask["metrics"]["write-records"] for subtask in whole["subtasks"]] == [50, 30]
    (manager,) = shown.get(f"{VERTEX}/taskmanagers", vertexid=first)["taskmanagers"]
    assert manager["status-counts"]["RUNNING"] == 2


def test_metrics_over_several_jobs(tmp_path: Path) -> None:
    job, _ = _job(tmp_path)
    shown = ShownJobs(ShownJob(job.handle), ShownJob(job_id="b" * 32))
    assert {"id": "uptime"} in shown.get("/jobs/metrics")
    (both,) = shown.get("/jobs/metrics", query={"get": ["runningState"]})
    assert (both["min"], both["max"], both["sum"]) == (0.0, 1.0, 1.0)
    (one,) = shown.get("/jobs/metrics", query={"get": ["runningState"], "jobs": ["b" * 32], "agg": ["sum"]})
    assert one == {"id": "runningState", "sum": 0.0}


def test_what_values_have_in_common() -> None:
    assert aggregate("x", [0.0, 0.0]).skew == 0.0
    assert aggregate("x", [100.0, 0.0, 0.0, 0.0]).skew == 100.0
    assert aggregate("x", [-5.0]).min == -5.0


def _samples(text: str, name: str, **labels: str) -> list[Sample]:
    return [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def test_prometheus_has_flinks_names_and_labels(tmp_path: Path) -> None:
    job, shown = _job(tmp_path)
    first = _vertices(job)[0]
    eventually(lambda: "shop_orders" in shown.prometheus.text())
    text = shown.prometheus.text()
    job_id = job.handle.job_graph.job_id
    assert _samples(text, "flink_jobmanager_taskSlotsTotal", host="here")[0].value == 4
    assert _samples(text, "flink_jobmanager_numRunningJobs")[0].value == 1
    assert _samples(text, "flink_jobmanager_job_numberOfCompletedCheckpoints", job_id=job_id)[0].value == 0
    (records,) = _samples(text, "flink_taskmanager_job_task_numRecordsOut", task_id=first, subtask_index="1")
    assert records.value == 30
    assert set(records.labels) == {
        "job_id",
        "job_name",
        "task_id",
        "task_name",
        "task_attempt_num",
        "subtask_index",
        "host",
        "tm_id",
    }
    (user,) = _samples(
        text, "flink_taskmanager_job_task_operator_shop_orders", operator_name="count: orders", subtask_index="0"
    )
    assert user.value == 50
    assert shown.get("/metrics").startswith("# HELP flink_jobmanager_numRunningJobs")
    job.cancel()
    assert job_id not in shown.prometheus.text(), "the metrics of jobs that are over are gone"


def _slowly(pair: Any) -> Any:
    time.sleep(0.001)
    return pair


def test_a_task_that_waits_for_those_after_it(tmp_path: Path) -> None:
    env = environment(tmp_path, 1, metrics__fetcher__update_interval="20 ms")
    job = start(source(env, pairs(0, 100_000)).rebalance().map(_slowly), name="slow")
    shown = ShownJobs(ShownJob(job.handle))
    first, second = _vertices(job)

    def waits() -> Any:
        answer = shown.get(f"{VERTEX}/backpressure", vertexid=first)
        assert answer["backpressureLevel"] == answer["backpressure-level"] == "high"
        assert answer["subtasks"][0]["ratio"] > 0.5
        diagnosis = shown.get("/jobs/:jobid/diagnosis")
        assert diagnosis["bottleneck"] is not None
        assert diagnosis["bottleneck"]["id"] == second
        assert diagnosis["bottleneck"]["waiting"] == [first]
        return diagnosis

    diagnosis = eventually(waits, timeout=60)
    assert diagnosis["explanation"].startswith("'Map -> Sink: ")
    job.cancel()
    assert shown.get("/jobs/:jobid/diagnosis")["bottleneck"] is None


def test_a_serialised_throwable_is_javas() -> None:
    """What a Java process has read, and given the same texts back: with a NUL, and a character of two units."""
    written = base64.b64decode(serialized_throwable("ValueError", "b\x00😀", "s" * 70_000))
    assert written.startswith(b"\xac\xed\x00\x05sr\x00\x29org.apache.flink.util.SerializedThrowable\x65\x16\x9d\xf5")
    assert b"t\x00\x09b\xc0\x80\xed\xa0\xbd\xed\xb8\x80u" in written
    assert b"|" + (70_000).to_bytes(8, "big") + b"s" * 70_000 + b"t\x00\x0aValueErrorp" in written


def test_a_job_that_is_submitted_again_under_its_id() -> None:
    job = ShownJob(status=JobStatus.FAILED)
    shown = ShownJobs(job)
    assert shown.get("/jobs/overview")["jobs"][0]["state"] == "FAILED"
    job.status = JobStatus.INITIALIZING
    again = shown.get("/jobs/overview")["jobs"][0]
    assert (again["state"], again["end-time"]) == ("INITIALIZING", -1)


def test_statuses_are_those_of_the_dispatcher() -> None:
    assert ShownJobs(ShownJob(status=JobStatus.FAILED)).get("/jobs/:jobid/status") == {"status": "FAILED"}
