"""REST handlers for jobs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from firesteel.cluster.diagnostics.known_jobs import KnownJobs, find_job, now_ms
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.cluster.rest.serialized_throwable import serialized_throwable
from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config import pipeline_options
from firesteel.config.configuration import shown
from firesteel.graph.execution_graph import ExecutionState, aggregate_state
from firesteel.jobmaster.restart_strategy import create_restart_strategy
from firesteel.jobmaster.view import vertices as job_view_vertices
from firesteel.jobmaster.view.diagnosis import diagnose
from firesteel.jobmaster.view.failures import stack_trace
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.vertices import VertexView
from firesteel.rest import jobs as rest

__all__ = ["failure_cause", "io_metrics", "job_overview", "routes", "shown_accumulators", "state_counts"]

OVERVIEW_CACHE_MS = 100
"""How old a list of jobs may be: a page that many look at costs as much as one that one does."""

_STATES = (
    ExecutionState.CREATED,
    ExecutionState.SCHEDULED,
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
    ExecutionState.FINISHED,
    ExecutionState.CANCELING,
    ExecutionState.CANCELED,
    ExecutionState.FAILED,
)
"""In the order of the fields of TaskCounts and StateCounts."""

_JOB_STATES = (
    JobStatus.INITIALIZING,
    JobStatus.CREATED,
    JobStatus.RUNNING,
    JobStatus.FAILING,
    JobStatus.FAILED,
    JobStatus.CANCELLING,
    JobStatus.CANCELED,
    JobStatus.FINISHED,
    JobStatus.RESTARTING,
    JobStatus.SUSPENDED,
    JobStatus.RECONCILING,
)
"""In the order of the fields of JobTimestamps."""

_APPLICATION_STATUS = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def routes(jobs: KnownJobs) -> list[Route]:
    handlers = _JobHandlers(jobs)
    return [
        Route(rest.JOBS, handlers.ids),
        Route(rest.JOBS_OVERVIEW, handlers.overview, cache_ms=OVERVIEW_CACHE_MS),
        Route(rest.JOB, handlers.details),
        Route(rest.JOB_PLAN, handlers.plan),
        Route(rest.JOB_STATUS, handlers.status),
        Route(rest.JOB_CONFIG, handlers.config),
        Route(rest.JOB_EXECUTION_RESULT, handlers.execution_result),
        Route(rest.JOB_ACCUMULATORS, handlers.accumulators),
        Route(rest.JOB_JOBMANAGER_CONFIG, handlers.jobmanager_config),
        Route(rest.JOB_JOBMANAGER_ENVIRONMENT, handlers.jobmanager_environment),
        Route(rest.JOB_RESOURCE_REQUIREMENTS, handlers.resource_requirements),
        Route(rest.JOB_DIAGNOSIS, handlers.diagnosis),
    ]


class _JobHandlers:
    def __init__(self, jobs: KnownJobs):
        self._jobs = jobs
        self._ended: dict[str, rest.JobOverview] = {}
        """Jobs that have ended, as they were shown last: most are, and nothing of them changes."""

    def ids(self, _request: RestRequest[Any]) -> rest.JobIds:
        return rest.JobIds([rest.JobIdWithStatus(job.job_id, job.status.name) for job in self._jobs.jobs()])

    def overview(self, _request: RestRequest[Any]) -> rest.JobsOverview:
        now = now_ms()
        shown, ended = [], {}
        for job in self._jobs.jobs():
            overview = self._ended.get(job.job_id)
            # a job can be submitted again under its id
            if overview is None or overview.state != job.status.name:
                overview = job_overview(job.view(), now)
            shown.append(overview)
            if overview.end_time >= 0:
                ended[job.job_id] = overview
        self._ended = ended
        return rest.JobsOverview(shown)

    def details(self, request: RestRequest[Any]) -> rest.JobDetails:
        view = find_job(self._jobs, request)
        now = now_ms()
        vertices = view.vertices()
        return rest.JobDetails(
            jid=view.job_id,
            application_id=view.job_id,
            name=view.name,
            is_stoppable=False,
            state=view.status.name,
            job_type=view.job_type,
            scheduler_type=_scheduler(view),
            start_time=view.start_time,
            end_time=view.end_time,
            duration=view.duration(now),
            max_parallelism=view.configuration.get(pipeline_options.MAX_PARALLELISM),
            now=now,
            timestamps=rest.JobTimestamps(*(view.timestamp(status) for status in _JOB_STATES)),
            vertices=[_vertex(vertex, now) for vertex in vertices],
            status_counts=state_counts([vertex.state for vertex in vertices]),
            plan=_plan(view),
        )

    def plan(self, request: RestRequest[Any]) -> rest.JobPlan:
        return rest.JobPlan(_plan(find_job(self._jobs, request)))

    def status(self, request: RestRequest[Any]) -> rest.JobStatusAnswer:
        return rest.JobStatusAnswer(find_job(self._jobs, request).status.name)

    def config(self, request: RestRequest[Any]) -> rest.JobConfig:
        view = find_job(self._jobs, request)
        configuration = view.configuration
        graph = view.job_graph
        widest = max((vertex.parallelism for vertex in graph.vertices), default=1) if graph is not None else 1
        return rest.JobConfig(
            view.job_id,
            view.name,
            rest.ExecutionConfig(
                restart_strategy=create_restart_strategy(configuration).describe().capitalize(),
                job_parallelism=configuration.get_optional(pipeline_options.DEFAULT_PARALLELISM) or widest,
                object_reuse_mode=configuration.get(pipeline_options.OBJECT_REUSE),
                user_config=_texts(configuration.get_optional(pipeline_options.GLOBAL_JOB_PARAMETERS)),
            ),
        )

    def execution_result(self, request: RestRequest[Any]) -> rest.ExecutionResult:
        view = find_job(self._jobs, request)
        if not view.status.is_globally_terminal_state():
            return rest.ExecutionResult(rest.QueueStatus("IN_PROGRESS"))
        return rest.ExecutionResult(rest.QueueStatus("COMPLETED"), _result(view))

    def accumulators(self, request: RestRequest[Any]) -> rest.JobAccumulators:
        known = find_job(self._jobs, request).accumulators()
        return rest.JobAccumulators([], shown_accumulators(known), {})

    def jobmanager_config(self, request: RestRequest[Any]) -> list[rest.ConfigurationEntry]:
        entries = find_job(self._jobs, request).configuration.to_dict()
        return [rest.ConfigurationEntry(key, shown(key, value)) for key, value in sorted(entries.items())]

    def jobmanager_environment(self, request: RestRequest[Any]) -> rest.Environment:
        find_job(self._jobs, request)
        version = f"{platform.python_implementation()} {platform.python_version()}"
        return rest.Environment(rest.Jvm(version, platform.machine(), []), list(sys.path))

    def resource_requirements(self, request: RestRequest[Any]) -> dict[str, rest.VertexRequirements]:
        view = find_job(self._jobs, request)
        return {
            vertex.id: rest.VertexRequirements(
                rest.ParallelismBounds(1 if view.is_adaptive else vertex.parallelism, vertex.parallelism)
            )
            for vertex in view.wanted_vertices()
        }

    def diagnosis(self, request: RestRequest[Any]) -> rest.JobDiagnosis:
        view = find_job(self._jobs, request)
        pool = None if view.snapshot is None else view.snapshot.slot_pool
        if pool is not None and pool.is_queued:
            slots = rest.SlotWait(pool.needed, pool.free or 0, pool.offered or 0, pool.ahead)
            return rest.JobDiagnosis(None, _waits_for(slots), slots)
        found = diagnose(view)
        if found is None:
            return rest.JobDiagnosis(None, "Nothing is backpressured.")
        skewed = found.skewed
        bottleneck = rest.Bottleneck(
            id=found.vertex.id,
            name=found.vertex.name,
            busy=found.load.busy,
            back_pressured=found.load.back_pressured,
            idle=found.load.idle,
            in_pool_usage=found.load.in_pool_usage,
            waiting=[vertex.id for vertex in found.waiting],
            explanation=found.explanation,
            skew=None if skewed is None else rest.Skew(skewed.subtask, skewed.share, skewed.records, skewed.skew),
        )
        return rest.JobDiagnosis(bottleneck, found.explanation)


def _waits_for(slots: rest.SlotWait) -> str:
    text = f"The job waits for slots: it requests {slots.needed}, and {slots.free} of {slots.total} are free"
    return f"{text}; {slots.ahead} ahead of it in the queue." if slots.ahead else f"{text}."


def job_overview(view: JobView, now: int) -> rest.JobOverview:
    """A job in a list of jobs."""
    states: list[ExecutionState] = []
    changed = end = view.end_time
    graph = view.execution_graph
    if graph is not None:
        for subtasks in graph.vertices.values():
            for subtask in subtasks:
                execution = subtask.current
                states.append(execution.state)
                # every state is entered once: the last one is the one it is in
                entered = list(execution.state_timestamps.values())[-1]
                if entered > changed:
                    changed = entered
    start = view.start_time
    return rest.JobOverview(
        view.job_id,
        view.name,
        view.status.name,
        start,
        end,
        max(0, (now if end < 0 else end) - start),
        changed if changed > 0 else start,
        rest.TaskCounts(len(states), *(states.count(state) for state in _STATES)),
        view.job_type,
        _scheduler(view),
    )


def shown_accumulators(accumulators: Mapping[str, Any]) -> list[rest.Accumulator]:
    """Accumulators, as the API shows them."""
    return [rest.Accumulator(name, type(value).__name__, str(value)) for name, value in accumulators.items()]


def state_counts(states: list[ExecutionState]) -> rest.StateCounts:
    return rest.StateCounts(*(states.count(state) for state in _STATES))


def io_metrics(io: job_view_vertices.TaskIo) -> rest.IoMetrics:
    """What was read and written, as the API shows it."""
    complete = io.is_complete
    return rest.IoMetrics(
        io.bytes_in,
        complete,
        io.bytes_out,
        complete,
        io.records_in,
        complete,
        io.records_out,
        complete,
        io.back_pressured_ms,
        io.idle_ms,
        io.busy_ms,
    )


def _vertex(vertex: VertexView, now: int) -> rest.JobVertex:
    executions = vertex.executions()
    states = [execution.state for execution in executions]
    span = job_view_vertices.span_of(executions, now)
    return rest.JobVertex(
        id=vertex.id,
        slot_sharing_group_id=vertex.slot_sharing_group_id,
        name=vertex.name,
        max_parallelism=vertex.max_parallelism,
        parallelism=vertex.parallelism,
        status=aggregate_state(states).name,
        start_time=span.start,
        end_time=span.end,
        duration=span.duration,
        tasks=state_counts(states),
        metrics=io_metrics(vertex.io()),
    )


def _texts(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(key): shown(str(key), str(value)) for key, value in (parameters or {}).items()}


def _plan(view: JobView) -> rest.Plan:
    return msgspec.convert(view.plan(), rest.Plan)


def _scheduler(view: JobView) -> str:
    return "Adaptive" if view.is_adaptive else "Default"


def failure_cause(failure: TaskFailure) -> rest.FailureCause:
    """Why something failed, also in the form that Flink's clients read."""
    error_type, account = failure.error_type or "JobExecutionError", stack_trace(failure)
    return rest.FailureCause(error_type, account, serialized_throwable(error_type, failure.message, account))


def _result(view: JobView) -> rest.JobExecutionResult:
    failed = view.status is JobStatus.FAILED
    exceptions = view.exceptions() if failed else []
    cause = failure_cause(exceptions[0].failure) if exceptions else msgspec.UNSET
    return rest.JobExecutionResult(
        id=view.job_id,
        name=view.name,
        application_status=_APPLICATION_STATUS[view.status],
        net_runtime=view.duration(view.end_time),
        application_id=view.job_id,
        start_time=view.start_time,
        end_time=view.end_time,
        failure_cause=cause,
    )
