"""REST endpoints: job lists, details, status, plan and results."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter

__all__ = [
    "ENDPOINTS",
    "Accumulator",
    "Bottleneck",
    "ConfigurationEntry",
    "Environment",
    "ExecutionConfig",
    "ExecutionResult",
    "FailureCause",
    "IoMetrics",
    "JobAccumulators",
    "JobConfig",
    "JobDetails",
    "JobDiagnosis",
    "JobExecutionResult",
    "JobIdWithStatus",
    "JobIds",
    "JobOverview",
    "JobPlan",
    "JobStatusAnswer",
    "JobTimestamps",
    "JobVertex",
    "JobsOverview",
    "Jvm",
    "ParallelismBounds",
    "Plan",
    "PlanExecution",
    "PlanInput",
    "PlanNode",
    "QueueStatus",
    "Skew",
    "StateCounts",
    "TaskCounts",
    "VertexRequirements",
]

NO_JOB = {404: "The job does not exist."}


class JobIdWithStatus(msgspec.Struct):
    """A job's id and status."""

    id: str
    status: str


class JobIds(msgspec.Struct):
    """All jobs."""

    jobs: list[JobIdWithStatus]


class TaskCounts(msgspec.Struct):
    """Number of subtasks of a job by state."""

    total: int = 0
    created: int = 0
    scheduled: int = 0
    deploying: int = 0
    initializing: int = 0
    running: int = 0
    finished: int = 0
    canceling: int = 0
    canceled: int = 0
    failed: int = 0
    reconciling: int = 0


class StateCounts(msgspec.Struct, rename="upper"):
    """Number of subtasks, or vertices, by state."""

    created: int = 0
    scheduled: int = 0
    deploying: int = 0
    initializing: int = 0
    running: int = 0
    finished: int = 0
    canceling: int = 0
    canceled: int = 0
    failed: int = 0
    reconciling: int = 0


class JobOverview(
    msgspec.Struct,
    rename={
        "job_type": "jobType",
        "scheduler_type": "schedulerType",
        "start_time": "start-time",
        "end_time": "end-time",
        "last_modification": "last-modification",
        "pending_operators": "pending-operators",
    },
):
    """A job in a list of jobs."""

    jid: str
    name: str
    state: str
    start_time: int
    end_time: int
    """-1 while the job has not ended."""
    duration: int
    last_modification: int
    tasks: TaskCounts
    job_type: str = "STREAMING"
    scheduler_type: str = "Default"
    pending_operators: int = 0


class JobsOverview(msgspec.Struct):
    """All jobs, in the order in which they were submitted."""

    jobs: list[JobOverview]


class IoMetrics(msgspec.Struct, rename="kebab"):
    """Input, output and idle, busy and backpressured time (in milliseconds) of one or more tasks."""

    read_bytes: int = 0
    read_bytes_complete: bool = True
    write_bytes: int = 0
    write_bytes_complete: bool = True
    read_records: int = 0
    read_records_complete: bool = True
    write_records: int = 0
    write_records_complete: bool = True
    accumulated_backpressured_time: int = 0
    accumulated_idle_time: int = 0
    accumulated_busy_time: float = 0.0


class JobVertex(
    msgspec.Struct,
    rename={
        "slot_sharing_group_id": "slotSharingGroupId",
        "max_parallelism": "maxParallelism",
        "start_time": "start-time",
        "end_time": "end-time",
    },
):
    """A vertex of a job."""

    id: str
    slot_sharing_group_id: str
    name: str
    max_parallelism: int
    parallelism: int
    status: str
    start_time: int
    end_time: int
    duration: int
    tasks: StateCounts
    metrics: IoMetrics


class JobTimestamps(msgspec.Struct, rename="upper"):
    """Time at which a job last entered each status; 0 if never."""

    initializing: int = 0
    created: int = 0
    running: int = 0
    failing: int = 0
    failed: int = 0
    cancelling: int = 0
    canceled: int = 0
    finished: int = 0
    restarting: int = 0
    suspended: int = 0
    reconciling: int = 0


class PlanInput(msgspec.Struct, omit_defaults=True):
    """An edge into a vertex."""

    id: str
    num: int
    exchange: str
    ship_strategy: str
    local_strategy: str | None = None
    exchange_reason: str | None = None
    """The reason for the exchange of this edge. Not in Flink."""


class PlanNode(msgspec.Struct):
    """A vertex of a plan."""

    id: str
    parallelism: int
    operator: str
    operator_strategy: str
    description: str
    """The operators, as a tree in HTML."""
    optimizer_properties: dict[str, Any]
    inputs: list[PlanInput] | msgspec.UnsetType = msgspec.UNSET


class PlanExecution(msgspec.Struct):
    """How a job is executed. Not in Flink."""

    kind: str
    reason: str


class Plan(msgspec.Struct):
    """The vertices of a job and their edges."""

    jid: str
    name: str
    type: str
    nodes: list[PlanNode]
    execution: PlanExecution | msgspec.UnsetType = msgspec.UNSET


class JobPlan(msgspec.Struct):
    """A job's plan."""

    plan: Plan


class JobDetails(
    msgspec.Struct,
    rename={
        "application_id": "application-id",
        "is_stoppable": "isStoppable",
        "job_type": "job-type",
        "scheduler_type": "schedulerType",
        "start_time": "start-time",
        "end_time": "end-time",
        "max_parallelism": "maxParallelism",
        "status_counts": "status-counts",
        "pending_operators": "pending-operators",
    },
):
    """A job with its vertices."""

    jid: str
    application_id: str
    name: str
    is_stoppable: bool
    state: str
    job_type: str
    scheduler_type: str
    start_time: int
    end_time: int
    duration: int
    max_parallelism: int
    now: int
    timestamps: JobTimestamps
    vertices: list[JobVertex]
    status_counts: StateCounts
    plan: Plan
    pending_operators: int = 0


class JobStatusAnswer(msgspec.Struct):
    """A job's status."""

    status: str


class ExecutionConfig(msgspec.Struct, rename="kebab"):
    """How a job is executed."""

    restart_strategy: str
    job_parallelism: int
    object_reuse_mode: bool
    user_config: dict[str, str]


class JobConfig(msgspec.Struct, rename={"execution_config": "execution-config"}):
    """The configuration set by the program."""

    jid: str
    name: str
    execution_config: ExecutionConfig


class QueueStatus(msgspec.Struct):
    """Status of an operation: ``IN_PROGRESS`` or ``COMPLETED``."""

    id: str


class FailureCause(
    msgspec.Struct,
    omit_defaults=True,
    rename={"class_name": "class", "stack_trace": "stack-trace", "serialized_throwable": "serialized-throwable"},
):
    """The cause of a failure."""

    class_name: str
    stack_trace: str
    serialized_throwable: str | None = None


class JobExecutionResult(
    msgspec.Struct,
    rename={
        "application_status": "application-status",
        "accumulator_results": "accumulator-results",
        "net_runtime": "net-runtime",
        "application_id": "application-id",
        "start_time": "start-time",
        "end_time": "end-time",
        "failure_cause": "failure-cause",
    },
):
    """The result of a job."""

    id: str
    name: str
    application_status: str
    net_runtime: int
    application_id: str
    start_time: int
    end_time: int
    accumulator_results: dict[str, str] = {}
    failure_cause: FailureCause | msgspec.UnsetType = msgspec.UNSET


class ExecutionResult(msgspec.Struct, rename={"job_execution_result": "job-execution-result"}):
    """The status of a job's execution, and its result if it has ended."""

    status: QueueStatus
    job_execution_result: JobExecutionResult | msgspec.UnsetType = msgspec.UNSET


class Accumulator(msgspec.Struct):
    """The current value of an accumulator, as text."""

    name: str
    type: str
    value: str


class JobAccumulators(msgspec.Struct, rename="kebab"):
    """A job's accumulators."""

    job_accumulators: list[Accumulator]
    user_task_accumulators: list[Accumulator]
    serialized_user_task_accumulators: dict[str, str]


class ConfigurationEntry(msgspec.Struct):
    """An option that is set."""

    key: str
    value: str


class Jvm(msgspec.Struct):
    """The interpreter of the JobManager; the field names are Flink's."""

    version: str
    arch: str
    options: list[str]


class Environment(msgspec.Struct):
    """The environment of the JobManager."""

    jvm: Jvm
    classpath: list[str]


class ParallelismBounds(msgspec.Struct, rename="camel"):
    """Minimum and desired parallelism of a vertex."""

    lower_bound: int
    upper_bound: int


class VertexRequirements(msgspec.Struct):
    """The resource requirements of a vertex."""

    parallelism: ParallelismBounds


class Skew(msgspec.Struct, rename="kebab"):
    """Data skew: one subtask receives far more records than the others."""

    subtask: int
    share: float
    """Its fraction of all records received by the vertex, from 0 to 1."""
    records: int
    skew: float
    """Mean deviation from the mean, in percent of the mean, as in the aggregated metrics."""


class Bottleneck(msgspec.Struct, rename="kebab"):
    """The vertex that causes backpressure; times in milliseconds per second, of its busiest subtask."""

    id: str
    name: str
    busy: float
    back_pressured: float
    idle: float
    in_pool_usage: float
    waiting: list[str]
    """The backpressured vertices upstream of it, nearest first."""
    explanation: str
    skew: Skew | None = None


class SlotWait(msgspec.Struct):
    """A job that waits for slots held by other jobs."""

    needed: int
    """Number of slots requested; batch jobs and jobs that run in epochs start with fewer."""
    free: int
    total: int
    ahead: int
    """Number of jobs that are served before it."""


class JobDiagnosis(msgspec.Struct):
    """The bottleneck of a job; empty if nothing is backpressured."""

    bottleneck: Bottleneck | None
    explanation: str
    slots: SlotWait | None = None
    """The missing slots, if the job waits for slots."""


JOBS = Endpoint("GET", "/jobs", "Returns the ids and states of all jobs.", JobIds)
JOBS_OVERVIEW = Endpoint("GET", "/jobs/overview", "Returns an overview of all jobs.", JobsOverview)
JOB = Endpoint("GET", "/jobs/:jobid", "Returns the details of a job and its vertices.", JobDetails, errors=NO_JOB)
JOB_PLAN = Endpoint("GET", "/jobs/:jobid/plan", "Returns the plan of a job.", JobPlan, errors=NO_JOB)
JOB_STATUS = Endpoint("GET", "/jobs/:jobid/status", "Returns the status of a job.", JobStatusAnswer, errors=NO_JOB)
JOB_CONFIG = Endpoint(
    "GET", "/jobs/:jobid/config", "Returns the execution configuration of a job.", JobConfig, errors=NO_JOB
)
JOB_EXECUTION_RESULT = Endpoint(
    "GET",
    "/jobs/:jobid/execution-result",
    "Returns the result of a job, or that it has not ended.",
    ExecutionResult,
    errors=NO_JOB,
)
JOB_ACCUMULATORS = Endpoint(
    "GET",
    "/jobs/:jobid/accumulators",
    "Returns the accumulators of a job.",
    JobAccumulators,
    query=(
        Parameter(
            "includeSerializedValue",
            "Include serialized values. Accepted for compatibility with Flink's clients; no serialized values are "
            "returned.",
            bool,
            False,
        ),
    ),
    errors=NO_JOB,
)
JOB_JOBMANAGER_CONFIG = Endpoint(
    "GET",
    "/jobs/:jobid/jobmanager/config",
    "Returns the configuration of a job.",
    list[ConfigurationEntry],
    errors=NO_JOB,
)
JOB_JOBMANAGER_ENVIRONMENT = Endpoint(
    "GET",
    "/jobs/:jobid/jobmanager/environment",
    "Returns the environment of the JobManager of a job.",
    Environment,
    errors=NO_JOB,
)
JOB_RESOURCE_REQUIREMENTS = Endpoint(
    "GET",
    "/jobs/:jobid/resource-requirements",
    "Returns the resource requirements of a job: the parallelism of each vertex by id.",
    dict[str, VertexRequirements],
    errors=NO_JOB,
)
JOB_DIAGNOSIS = Endpoint(
    "GET",
    "/jobs/:jobid/diagnosis",
    "Returns the bottleneck of a job, with an explanation.",
    JobDiagnosis,
    errors=NO_JOB,
    is_ours=True,
)

ENDPOINTS = (
    JOBS,
    JOBS_OVERVIEW,
    JOB,
    JOB_PLAN,
    JOB_STATUS,
    JOB_CONFIG,
    JOB_EXECUTION_RESULT,
    JOB_ACCUMULATORS,
    JOB_JOBMANAGER_CONFIG,
    JOB_JOBMANAGER_ENVIRONMENT,
    JOB_RESOURCE_REQUIREMENTS,
    JOB_DIAGNOSIS,
)
