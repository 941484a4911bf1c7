"""``firesteel status``: how a job is doing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import bytes_text, fitted_table, local_time, print_json
from firesteel.cli.terminal.settings import add_cluster_options
from firesteel.config.redaction import printable

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient
    from firesteel.rest.checkpoints import CheckpointingStatistics
    from firesteel.rest.jobs import JobDetails, JobDiagnosis

__all__ = ["register", "run"]

_BUSY = "busyTimeMsPerSecond"
_BACK_PRESSURED = "backPressuredTimeMsPerSecond"
_IN, _OUT = "numRecordsInPerSecond", "numRecordsOutPerSecond"
_FIGURES = (_BUSY, _BACK_PRESSURED, _IN, _OUT)


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "status",
        help="show the status of a job",
        description="Shows the state of a job, its vertices with their record counts, the last checkpoint, and the "
        "bottleneck. Exit codes: 0, 1 if the job does not exist, 3 if no cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Prints a job's state, vertices, last checkpoint and bottleneck."""
    from firesteel.client.jobs import find_job
    from firesteel.client.progress import duration_text
    from firesteel.rest.checkpoints import CHECKPOINTS
    from firesteel.rest.jobs import JOB

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
        print(f"\nRun firesteel exceptions {details.jid} to see the cause.")  # noqa: T201
    return 0


def _figures(client: ClusterClient, job_id: str, vertex_id: str) -> dict[str, float]:
    """A vertex's figures: the times of its busiest subtask, the records of all together."""
    import msgspec

    from firesteel.rest.client import RestClientError
    from firesteel.rest.metrics import SUBTASKS_METRICS

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
    from firesteel.rest.client import RestClientError
    from firesteel.rest.jobs import JOB_DIAGNOSIS

    try:
        return client.call(JOB_DIAGNOSIS, {"jobid": job_id})
    except RestClientError:
        return None  # one of Flink's JobManagers


def _in_state(details: JobDetails) -> int:
    import msgspec

    entered: int = msgspec.to_builtins(details.timestamps).get(details.state, 0)
    return details.now - (entered or details.start_time)


def _checkpoints(statistics: CheckpointingStatistics) -> str:
    counts = statistics.counts
    if not counts.total:
        return "none"
    text = f"{counts.completed:,} completed, {counts.failed:,} failed, {counts.in_progress} in progress"
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
