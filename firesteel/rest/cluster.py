"""The cluster as a whole: overview, JobManager, applications, and its end."""

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
    """An answer that says no more than that it was done."""


class ClusterOverview(msgspec.Struct, rename="kebab"):
    """How many TaskManagers, slots and jobs there are."""

    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    """Those that have not ended, whether or not they run."""
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    flink_version: str
    """The version of Flink whose clients this API is for."""
    flink_commit: str
    """``firesteel-`` and Firesteel's own version."""


class DashboardFeatures(msgspec.Struct, rename="kebab"):
    """What the web pages may be used for."""

    web_submit: bool
    web_cancel: bool
    web_rescale: bool = False
    web_history: bool = False


class DashboardConfig(msgspec.Struct, rename="kebab"):
    """How the web pages are to behave."""

    refresh_interval: int
    """In milliseconds."""
    timezone_name: str
    timezone_offset: int
    """In milliseconds, east of Greenwich."""
    flink_version: str
    flink_revision: str
    features: DashboardFeatures


class ApplicationOverview(msgspec.Struct, rename="kebab"):
    """An application in a list of applications. Every job is one of its own."""

    id: str
    name: str
    start_time: int
    end_time: int
    duration: int
    status: str
    jobs: dict[str, int]
    """How many of its jobs are in each status."""


class ApplicationsOverview(msgspec.Struct):
    """All applications."""

    applications: list[ApplicationOverview]


class ApplicationTimestamps(msgspec.Struct, rename="upper"):
    """When an application entered each state last; 0 if it never did."""

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
    """Why an application failed."""

    exception_name: str
    stacktrace: str
    timestamp: int
    job_id: str


class ApplicationExceptionHistory(msgspec.Struct):
    """Newest first."""

    entries: list[ApplicationException]


class ApplicationExceptions(msgspec.Struct, rename="camel"):
    """What went wrong with an application."""

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
    """What every thread is doing."""

    thread_infos: list[ThreadInfo]


class DataSets(msgspec.Struct, rename="camel"):
    """Cached intermediate results; there are none."""

    data_sets: list[str]


_NO_APPLICATION = {404: "There is no such application."}
_NO_FILE = {404: "There is no such file."}
_GET = Parameter(
    "get", "The metrics whose values are wanted; without, their names are listed.", default=[], is_list=True
)

CLUSTER_OVERVIEW = Endpoint("GET", "/overview", "Counts TaskManagers, slots and jobs.", ClusterOverview, tag="cluster")
DASHBOARD_CONFIG = Endpoint("GET", "/config", "Tells how the web pages are to behave.", DashboardConfig, tag="cluster")
CLUSTER_SHUTDOWN = Endpoint(
    "DELETE",
    "/cluster",
    "Shuts the cluster down. Jobs are suspended: started again with the same directory, it goes on with them.",
    Nothing,
    tag="cluster",
)
DATASETS = Endpoint("GET", "/datasets", "Lists cached intermediate results: none.", DataSets, tag="cluster")
APPLICATIONS_OVERVIEW = Endpoint(
    "GET",
    "/applications/overview",
    "Lists all applications; every job is one.",
    ApplicationsOverview,
    tag="applications",
)
APPLICATION = Endpoint(
    "GET",
    "/applications/:applicationid",
    "Shows an application and its jobs.",
    Application,
    errors=_NO_APPLICATION,
    tag="applications",
)
APPLICATION_EXCEPTIONS = Endpoint(
    "GET",
    "/applications/:applicationid/exceptions",
    "Shows why an application failed.",
    ApplicationExceptions,
    errors=_NO_APPLICATION,
    tag="applications",
)
APPLICATION_JOBMANAGER_CONFIG = Endpoint(
    "GET",
    "/applications/:applicationid/jobmanager/config",
    "Shows the options that an application's job runs with.",
    list[ConfigurationEntry],
    errors=_NO_APPLICATION,
    tag="applications",
)
JOBMANAGER_CONFIG = Endpoint(
    "GET", "/jobmanager/config", "Shows the options of the cluster.", list[ConfigurationEntry], tag="jobmanager"
)
JOBMANAGER_ENVIRONMENT = Endpoint(
    "GET", "/jobmanager/environment", "Shows what the JobManager runs in.", Environment, tag="jobmanager"
)
JOBMANAGER_METRICS = Endpoint(
    "GET",
    "/jobmanager/metrics",
    "Shows what the JobManager measures of itself.",
    list[Metric],
    query=(_GET,),
    tag="jobmanager",
)
JOBMANAGER_LOGS = Endpoint("GET", "/jobmanager/logs", "Lists the JobManager's log files.", LogList, tag="jobmanager")
JOBMANAGER_LOG_FILE = Endpoint(
    "GET",
    "/jobmanager/logs/:filename",
    "Gives a log file; of one that is larger, the last 10 MB.",
    Text,
    errors=_NO_FILE,
    tag="jobmanager",
)
JOBMANAGER_LOG = Endpoint(
    "GET", "/jobmanager/log", "Gives the JobManager's log.", Text, errors=_NO_FILE, tag="jobmanager"
)
JOBMANAGER_STDOUT = Endpoint(
    "GET", "/jobmanager/stdout", "Gives what the JobManager printed.", Text, errors=_NO_FILE, tag="jobmanager"
)
JOBMANAGER_THREAD_DUMP = Endpoint(
    "GET", "/jobmanager/thread-dump", "Shows what the JobManager's threads are doing.", ThreadDump, tag="jobmanager"
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
