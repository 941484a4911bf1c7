"""Prints how a job is doing, and what went wrong in it."""

from __future__ import annotations

import argparse

import msgspec

from firesteel.cli.connection import ClusterClient, on_cluster
from firesteel.cli.jobs import duration_text, find_job, local_time, print_json
from firesteel.cli.table import bytes_text, count, fitted_table, indented
from firesteel.config.redaction import printable
from firesteel.rest.checkpoints import CHECKPOINTS, CheckpointingStatistics
from firesteel.rest.client import RestClientError
from firesteel.rest.exceptions import JOB_EXCEPTIONS
from firesteel.rest.jobs import JOB, JOB_DIAGNOSIS, JobDetails, JobDiagnosis
from firesteel.rest.metrics import SUBTASKS_METRICS

__all__ = ["show_exceptions", "show_status"]

_BUSY = "busyTimeMsPerSecond"
_BACK_PRESSURED = "backPressuredTimeMsPerSecond"
_IN, _OUT = "numRecordsInPerSecond", "numRecordsOutPerSecond"
_FIGURES = (_BUSY, _BACK_PRESSURED, _IN, _OUT)


@on_cluster
def show_status(options: argparse.Namespace, client: ClusterClient) -> int:
    """Prints a job's state, vertices, last checkpoint and bottleneck."""
    job = find_job(client, options.job)
    path = {"jobid": job.jid}
    details = client.call(JOB, path)
    checkpoints = client.call(CHECKPOINTS, path)
    figures = {vertex.id: _figures(client, job.jid, vertex.id) for vertex in details.vertices}
    diagnosis = _diagnosis(client, job.jid)
    if options.json:
        print_json({"job": details, "checkpoints": checkpoints, "metrics": figures, "diagnosis": diagnosis})
        return 0
    lines = [
        f"{'job':<12} {details.name} ({details.jid})",
        f"{'state':<12} {details.state} for {duration_text(_in_state(details))}",
        f"{'started':<12} {local_time(details.start_time)}, {duration_text(details.duration)} ago"
        if details.end_time < 0
        else f"{'ended':<12} {local_time(details.end_time)}, after {duration_text(details.duration)}",
        f"{'checkpoints':<12} {_checkpoints(checkpoints)}",
    ]
    if diagnosis is not None and diagnosis.slots is not None:
        lines.append(f"{'slots':<12} {diagnosis.explanation}")
    if diagnosis is not None and diagnosis.bottleneck is not None:
        lines.append(f"{'bottleneck':<12} {diagnosis.explanation}")
    rows = []
    for vertex in details.vertices:
        measured = figures[vertex.id]
        rows.append(
            [
                vertex.name,
                vertex.status,
                vertex.parallelism,
                _per_cent(measured.get(_BUSY)),
                _per_cent(measured.get(_BACK_PRESSURED)),
                _rate(measured.get(_IN)),
                _rate(measured.get(_OUT)),
                f"{vertex.metrics.read_records:,}",
                f"{vertex.metrics.write_records:,}",
            ]
        )
    headers = ["vertex", "state", "tasks", "busy", "backp.", "in/s", "out/s", "read", "written"]
    # a job that could not be prepared has no vertices
    table = ["", *fitted_table(headers, rows, shrink="vertex", right=headers[2:])] if rows else []
    print(printable("\n".join([*lines, *table])))  # noqa: T201
    if details.state == "FAILED":
        print(f"\nfiresteel exceptions {details.jid} says why.")  # noqa: T201
    return 0


@on_cluster
def show_exceptions(options: argparse.Namespace, client: ClusterClient) -> int:
    """Prints a job's failures."""
    job = find_job(client, options.job)
    answer = client.call(JOB_EXCEPTIONS, {"jobid": job.jid}, {"maxExceptions": options.limit})
    if options.json:
        print_json(answer)
        return 0
    history = answer.exception_history
    if not history.entries:
        print(printable(f"Job '{job.name}' has had no failures."))  # noqa: T201
    for entry in history.entries:
        place = "" if entry.task_name is msgspec.UNSET else f", {entry.task_name}"
        where = "" if entry.endpoint is msgspec.UNSET else f" at {entry.endpoint}"
        print(printable(f"{local_time(entry.timestamp)}{place}{where}"))  # noqa: T201
        print(printable("\n".join(indented(entry.stacktrace.rstrip().splitlines()))))  # noqa: T201
        if entry.concurrent_exceptions:
            print(f"  (and {count(len(entry.concurrent_exceptions), 'failure')} at the same time)")  # noqa: T201
        print()  # noqa: T201
    if history.truncated:
        print("There were more: --limit N shows them.")  # noqa: T201
    return 0


def _figures(client: ClusterClient, job_id: str, vertex_id: str) -> dict[str, float]:
    """A vertex's figures: the times of its busiest subtask, the records of all together."""
    path = {"jobid": job_id, "vertexid": vertex_id}
    try:
        metrics = client.call(SUBTASKS_METRICS, path, {"get": _FIGURES})
    except RestClientError:
        return {}  # it has no tasks any more, or not yet
    figures = {}
    for metric in metrics:
        value = metric.max if metric.id in (_BUSY, _BACK_PRESSURED) else metric.sum
        if value is not msgspec.UNSET:
            figures[metric.id] = value
    return figures


def _diagnosis(client: ClusterClient, job_id: str) -> JobDiagnosis | None:
    try:
        return client.call(JOB_DIAGNOSIS, {"jobid": job_id})
    except RestClientError:
        return None  # one of Flink's JobManagers


def _in_state(details: JobDetails) -> int:
    entered: int = msgspec.to_builtins(details.timestamps).get(details.state, 0)
    return details.now - (entered or details.start_time)


def _checkpoints(statistics: CheckpointingStatistics) -> str:
    counts = statistics.counts
    if not counts.total:
        return "none"
    text = f"{counts.completed:,} completed, {counts.failed:,} failed, {counts.in_progress} under way"
    last = statistics.latest.completed
    if last is None:
        return text
    return (
        f"{text}; the last, {last.id}, at {local_time(last.latest_ack_timestamp)}: "
        f"{bytes_text(last.state_size)} in {last.end_to_end_duration:,} ms"
    )


def _per_cent(milliseconds_per_second: float | None) -> str | None:
    return None if milliseconds_per_second is None else f"{milliseconds_per_second / 10:.0f}%"


def _rate(per_second: float | None) -> str | None:
    return None if per_second is None else f"{per_second:,.0f}"
