"""SHOW JOBS, DESCRIBE JOB and STOP JOB."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from firesteel.config import checkpointing_options
from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.jobs import JobSummary
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok, strings
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser.statements.utility import DescribeJob, StopJob
from firesteel.table.values.zones import find_zone

__all__ = ["show_jobs"]

_COLUMNS = ["job id", "job name", "status", "start time"]
_ID = re.compile(r"[0-9a-fA-F]{32}")


def show_jobs(session: TableSession) -> TableResult:
    """SHOW JOBS."""
    return strings(_COLUMNS, [_line(job, session) for job in session.jobs.jobs()])


@execute_statement.register
def _describe(statement: DescribeJob, session: TableSession) -> TableResult:
    job_id = _checked(statement.job_id)
    found = [job for job in session.jobs.jobs() if job.job_id == job_id]
    if not found:
        raise ValidationError(f"Described job {job_id} does not exist in the cluster.", hint="SHOW JOBS lists them.")
    return strings(_COLUMNS, [_line(found[0], session)])


@execute_statement.register
def _stop(statement: StopJob, session: TableSession) -> TableResult:
    path = session.jobs.stop(
        _checked(statement.job_id),
        with_savepoint=statement.with_savepoint,
        with_drain=statement.with_drain,
        directory=session.configuration.get(checkpointing_options.SAVEPOINTS_DIRECTORY),
    )
    return ok() if path is None else strings(["savepoint path"], [(path,)])


def _checked(job_id: str) -> str:
    if not _ID.fullmatch(job_id):
        raise ValidationError(f"'{job_id}' is not a job id.", hint="A job id has 32 hexadecimal digits.")
    return job_id.lower()


def _line(job: JobSummary, session: TableSession) -> tuple[str, str, str, str]:
    zone = find_zone(session.config.get_local_timezone())
    started = datetime.fromtimestamp(job.start_time_ms / 1000, timezone.utc).astimezone(zone)
    return job.job_id, job.name, job.status, started.strftime("%Y-%m-%dT%H:%M:%S.") + f"{job.start_time_ms % 1000:03d}"
