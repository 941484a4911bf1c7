"""REST handlers for the cluster as a whole, and its shutdown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import firesteel
from firesteel.cluster.diagnostics.known_jobs import KnownJobs, find_job, now_ms
from firesteel.cluster.diagnostics.task_managers import TaskManagerInventory
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.cluster.rest.handlers.jobs import job_overview
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.common.job_status import JobStatus
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration, shown
from firesteel.jobmaster.view.job import JobView
from firesteel.rest import cluster as rest
from firesteel.rest.jobs import ConfigurationEntry

__all__ = ["configuration_entries", "routes"]

_CACHE_MS = 200
_APPLICATION_STATES: Mapping[JobStatus, str] = {
    JobStatus.INITIALIZING: "CREATED",
    JobStatus.CREATED: "RUNNING",
    JobStatus.CANCELLING: "CANCELING",
    JobStatus.RESTARTING: "RUNNING",
    JobStatus.SUSPENDED: "RUNNING",
    JobStatus.RECONCILING: "RUNNING",
}
"""Where the state of an application has another name than that of its job."""


def routes(
    jobs: KnownJobs,
    resources: ResourceManager,
    task_managers: TaskManagerInventory,
    configuration: Configuration,
    shut_down: Callable[[], None],
) -> list[Route]:
    """The handlers of each endpoint; ``shut_down`` ends the JobManager, and returns at once."""
    handlers = _ClusterHandlers(jobs, resources, task_managers, configuration, shut_down)
    return [
        Route(rest.CLUSTER_OVERVIEW, handlers.overview, blocking=True, cache_ms=_CACHE_MS),
        Route(rest.DASHBOARD_CONFIG, handlers.config),
        Route(rest.CLUSTER_SHUTDOWN, handlers.shut_down),
        Route(rest.DATASETS, handlers.datasets),
        Route(rest.APPLICATIONS_OVERVIEW, handlers.applications, cache_ms=_CACHE_MS),
        Route(rest.APPLICATION, handlers.application),
        Route(rest.APPLICATION_EXCEPTIONS, handlers.application_exceptions),
        Route(rest.APPLICATION_JOBMANAGER_CONFIG, handlers.application_config),
    ]


class _ClusterHandlers:
    def __init__(
        self,
        jobs: KnownJobs,
        resources: ResourceManager,
        task_managers: TaskManagerInventory,
        configuration: Configuration,
        shut_down: Callable[[], None],
    ):
        self._jobs = jobs
        self._resources = resources
        self._task_managers = task_managers
        self._configuration = configuration
        self._shut_down = shut_down

    def overview(self, _request: RestRequest[Any]) -> rest.ClusterOverview:
        statuses = Counter(job.status for job in self._jobs.jobs())
        finished, cancelled, failed = (
            statuses[status] for status in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)
        )
        return rest.ClusterOverview(
            self._task_managers.count(),
            self._resources.total,
            self._resources.free,
            statuses.total() - finished - cancelled - failed,
            finished,
            cancelled,
            failed,
            rest.FLINK_VERSION,
            f"firesteel-{firesteel.__version__}",
        )

    def config(self, _request: RestRequest[Any]) -> rest.DashboardConfig:
        get = self._configuration.get
        local = time.localtime()
        return rest.DashboardConfig(
            get(cluster_options.WEB_REFRESH_INTERVAL).to_millis(),
            local.tm_zone or "UTC",
            local.tm_gmtoff * 1000,
            rest.FLINK_VERSION,
            f"firesteel-{firesteel.__version__}",
            rest.DashboardFeatures(
                web_submit=get(cluster_options.WEB_SUBMIT_ENABLED), web_cancel=get(cluster_options.WEB_CANCEL_ENABLED)
            ),
        )

    def shut_down(self, _request: RestRequest[Any]) -> rest.Nothing:
        self._shut_down()
        return rest.Nothing()

    def datasets(self, _request: RestRequest[Any]) -> rest.DataSets:
        return rest.DataSets([])

    # -- applications: every job is one, of the same id -----------------------------------------------

    def applications(self, _request: RestRequest[Any]) -> rest.ApplicationsOverview:
        now = now_ms()
        found = []
        for job in self._jobs.jobs():
            view = job.view()
            found.append(
                rest.ApplicationOverview(
                    view.job_id,
                    view.name,
                    view.start_time,
                    view.end_time,
                    view.duration(now),
                    _state(view.status),
                    {view.status.name: 1},
                )
            )
        return rest.ApplicationsOverview(found)

    def application(self, request: RestRequest[Any]) -> rest.Application:
        view = self._find(request)
        now = now_ms()
        return rest.Application(
            view.job_id,
            view.name,
            _state(view.status),
            view.start_time,
            view.end_time,
            view.duration(now),
            rest.ApplicationTimestamps(
                created=view.start_time,
                running=view.timestamp(JobStatus.CREATED) or view.timestamp(JobStatus.RUNNING),
                failing=view.timestamp(JobStatus.FAILING),
                failed=view.timestamp(JobStatus.FAILED),
                canceling=view.timestamp(JobStatus.CANCELLING),
                canceled=view.timestamp(JobStatus.CANCELED),
                finished=view.timestamp(JobStatus.FINISHED),
            ),
            [job_overview(view, now)],
        )

    def application_exceptions(self, request: RestRequest[Any]) -> rest.ApplicationExceptions:
        view = self._find(request)
        entries = [
            rest.ApplicationException(
                entry.failure.error_type or "JobExecutionError", entry.failure.describe(), entry.at, view.job_id
            )
            for entry in (view.exceptions() if view.status is JobStatus.FAILED else ())
        ]
        return rest.ApplicationExceptions(rest.ApplicationExceptionHistory(entries[:1]))

    def application_config(self, request: RestRequest[Any]) -> list[ConfigurationEntry]:
        return configuration_entries(self._find(request).configuration)

    def _find(self, request: RestRequest[Any]) -> JobView:
        return find_job(self._jobs, request, "applicationid", "Application")


def configuration_entries(configuration: Configuration) -> list[ConfigurationEntry]:
    """What is configured, by key; secrets are not shown."""
    entries = sorted(configuration.to_dict().items())
    return [ConfigurationEntry(key, shown(key, value)) for key, value in entries]


def _state(status: JobStatus) -> str:
    return _APPLICATION_STATES.get(status, status.name)
