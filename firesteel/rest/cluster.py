"""REST endpoints: cluster overview, JobManager, applications and shutdown."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter, Text
from firesteel.rest.jobs import ConfigurationEntry, Environment, JobOverview
from firesteel.rest.metrics import Metric

__all__ = [
    "ENDPOINTS",
    "FLINK_VERSION",
    "Application",
    "ApplicationException",
    "ApplicationExceptionHistory",
    "ApplicationExceptions",
    "ApplicationOverview",
    "ApplicationTimestamps",
    "ApplicationsOverview",
    "ClusterOverview",
    "DashboardConfig",
    "DashboardFeatures",
    "DataSets",
    "LogInfo",
    "LogList",
    "Nothing",
    "ThreadDump",
    "ThreadInfo",
]

FLINK_VERSION = "2.3.0"
"""The version of Flink whose clients this API is for."""


class Nothing(msgspec.Struct):
    """An empty response."""


class ClusterOverview(msgspec.Struct, rename="kebab"):
    """Number of TaskManagers, slots and jobs."""

    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    """Jobs that have not ended, running or not."""
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    flink_version: str
    """The version of Flink whose clients this API is for."""
    flink_commit: str
    """``firesteel-`` and Firesteel's own version."""


class DashboardFeatures(msgspec.Struct, rename="kebab"):
    """Enabled features of the web UI."""

    web_submit: bool
    web_cancel: bool
    web_rescale: bool = False
    web_history: bool = False


class DashboardConfig(msgspec.Struct, rename="kebab"):
    """Configuration of the web UI."""

    refresh_interval: int
    """In milliseconds."""
    timezone_name: str
    timezone_offset: int
    """In milliseconds, east of Greenwich."""
    flink_version: str
    flink_revision: str
    features: DashboardFeatures


class ApplicationOverview(msgspec.Struct, rename="kebab"):
    """An application in a list of applications. Every job is an application."""

    id: str
    name: str
    start_time: int
    end_time: int
    duration: int
    status: str
    jobs: dict[str, int]
    """Number of its jobs by status."""


class ApplicationsOverview(msgspec.Struct):
    """All applications."""

    applications: list[ApplicationOverview]


class ApplicationTimestamps(msgspec.Struct, rename="upper"):
    """Time at which an application last entered each state; 0 if never."""

    created: int = 0
    running: int = 0
    failing: int = 0
    failed: int = 0
    canceling: int = 0
    canceled: int = 0
    finished: int = 0


class Application(msgspec.Struct, rename="kebab"):
    """An application and its jobs."""

    id: str
    name: str
    status: str
    start_time: int
    end_time: int
    duration: int
    timestamps: ApplicationTimestamps
    jobs: list[JobOverview]


class ApplicationException(msgspec.Struct, rename="camel"):
    """The cause of an application's failure."""

    exception_name: str
    stacktrace: str
    timestamp: int
    job_id: str


class ApplicationExceptionHistory(msgspec.Struct):
    """Newest first."""

    entries: list[ApplicationException]


class ApplicationExceptions(msgspec.Struct, rename="camel"):
    """The failures of an application."""

    exception_history: ApplicationExceptionHistory


class LogInfo(msgspec.Struct):
    """A log file; ``mtime`` in epoch milliseconds."""

    name: str
    size: int
    mtime: int


class LogList(msgspec.Struct):
    """Log files."""

    logs: list[LogInfo]


class ThreadInfo(msgspec.Struct, rename="camel"):
    """A thread and its stack."""

    thread_name: str
    stringified_thread_info: str


class ThreadDump(msgspec.Struct, rename="camel"):
    """The stacks of all threads."""

    thread_infos: list[ThreadInfo]


class DataSets(msgspec.Struct, rename="camel"):
    """Cached intermediate results; there are none."""

    data_sets: list[str]


_NO_APPLICATION = {404: "The application does not exist."}
_NO_FILE = {404: "The file does not exist."}
_GET = Parameter(
    "get",
    "Names of the metrics whose values are returned; without it, the names of all metrics are returned.",
    default=[],
    is_list=True,
)

CLUSTER_OVERVIEW = Endpoint(
    "GET",
    "/overview",
    "Returns an overview of the cluster: TaskManagers, slots and jobs.",
    ClusterOverview,
    tag="cluster",
)
DASHBOARD_CONFIG = Endpoint(
    "GET", "/config", "Returns the configuration of the web UI.", DashboardConfig, tag="cluster"
)
CLUSTER_SHUTDOWN = Endpoint(
    "DELETE",
    "/cluster",
    "Shuts down the cluster. Jobs are suspended; they resume when the cluster is started again with the same "
    "directory.",
    Nothing,
    tag="cluster",
)
DATASETS = Endpoint("GET", "/datasets", "Lists cached intermediate results. Always empty.", DataSets, tag="cluster")
APPLICATIONS_OVERVIEW = Endpoint(
    "GET",
    "/applications/overview",
    "Lists all applications. Every job is an application.",
    ApplicationsOverview,
    tag="applications",
)
APPLICATION = Endpoint(
    "GET",
    "/applications/:applicationid",
    "Returns an application and its jobs.",
    Application,
    errors=_NO_APPLICATION,
    tag="applications",
)
APPLICATION_EXCEPTIONS = Endpoint(
    "GET",
    "/applications/:applicationid/exceptions",
    "Returns the failures of an application.",
    ApplicationExceptions,
    errors=_NO_APPLICATION,
    tag="applications",
)
APPLICATION_JOBMANAGER_CONFIG = Endpoint(
    "GET",
    "/applications/:applicationid/jobmanager/config",
    "Returns the configuration of an application's job.",
    list[ConfigurationEntry],
    errors=_NO_APPLICATION,
    tag="applications",
)
JOBMANAGER_CONFIG = Endpoint(
    "GET", "/jobmanager/config", "Returns the configuration of the cluster.", list[ConfigurationEntry], tag="jobmanager"
)
JOBMANAGER_ENVIRONMENT = Endpoint(
    "GET", "/jobmanager/environment", "Returns the environment of the JobManager.", Environment, tag="jobmanager"
)
JOBMANAGER_METRICS = Endpoint(
    "GET",
    "/jobmanager/metrics",
    "Returns the metrics of the JobManager.",
    list[Metric],
    query=(_GET,),
    tag="jobmanager",
)
JOBMANAGER_LOGS = Endpoint("GET", "/jobmanager/logs", "Lists the JobManager's log files.", LogList, tag="jobmanager")
JOBMANAGER_LOG_FILE = Endpoint(
    "GET",
    "/jobmanager/logs/:filename",
    "Returns a log file, at most its last 10 MB.",
    Text,
    errors=_NO_FILE,
    tag="jobmanager",
)
JOBMANAGER_LOG = Endpoint(
    "GET", "/jobmanager/log", "Returns the main log of the JobManager.", Text, errors=_NO_FILE, tag="jobmanager"
)
JOBMANAGER_STDOUT = Endpoint(
    "GET",
    "/jobmanager/stdout",
    "Returns the standard output of the JobManager.",
    Text,
    errors=_NO_FILE,
    tag="jobmanager",
)
JOBMANAGER_THREAD_DUMP = Endpoint(
    "GET", "/jobmanager/thread-dump", "Returns a thread dump of the JobManager.", ThreadDump, tag="jobmanager"
)

ENDPOINTS = (
    CLUSTER_OVERVIEW,
    DASHBOARD_CONFIG,
    CLUSTER_SHUTDOWN,
    DATASETS,
    APPLICATIONS_OVERVIEW,
    APPLICATION,
    APPLICATION_EXCEPTIONS,
    APPLICATION_JOBMANAGER_CONFIG,
    JOBMANAGER_CONFIG,
    JOBMANAGER_ENVIRONMENT,
    JOBMANAGER_METRICS,
    JOBMANAGER_LOGS,
    JOBMANAGER_LOG_FILE,
    JOBMANAGER_LOG,
    JOBMANAGER_STDOUT,
    JOBMANAGER_THREAD_DUMP,
)
