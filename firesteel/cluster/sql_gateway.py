"""The SQL Gateway in a JobManager: its jobs, and the port of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.managed_job import ManagedJobHandle
from firesteel.cluster.ha.services import JobSubmission
from firesteel.cluster.rest.handlers import sql_routes
from firesteel.cluster.rest.request import RestError
from firesteel.cluster.rest.server import RestServer
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import PipelineExecutor
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.rest.token import read_or_create_token
from firesteel.runtime.dependencies.collection import dependency_artifacts
from firesteel.runtime.state.registry import configured_backend

if TYPE_CHECKING:
    from firesteel.cluster.rest.handlers.sql_gateway import SqlHandlers
    from firesteel.gateway.gateway import SqlGateway

__all__ = ["LazyGateway", "SessionExecutor", "gateway_server", "start_own_port"]


class SessionExecutor:
    """Submits the jobs of SQL sessions to the Dispatcher of the same process."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Submits a job and waits until it is initialized; raises the error if it cannot be."""
        configured_backend(configuration)
        artifacts = dependency_artifacts(configuration)
        submission = JobSubmission(job_graph.job_id, job_graph.job_name, serialize_job(job_graph), artifacts)
        job = self._dispatcher.job(self._dispatcher.submit(submission))
        if job.await_prepared() is None and job.status is JobStatus.FAILED:
            job.result_future().result()
        return JobClient(ManagedJobHandle(job))


class LazyGateway:
    """The gateway of a process, which begins with the first request to it.

    In a JobManager its jobs are those of the Dispatcher.
    """

    def __init__(
        self,
        configuration: Configuration,
        executor: PipelineExecutor | None = None,
        dispatcher: Dispatcher | None = None,
    ) -> None:
        self._configuration = configuration
        self._executor = executor if dispatcher is None else SessionExecutor(dispatcher)
        self._dispatcher = dispatcher
        self._lock = threading.Lock()
        self._gateway: SqlGateway | None = None
        self._handlers: SqlHandlers | None = None
        self._is_closed = False

    def handlers(self) -> SqlHandlers:
        """What answers requests."""
        with self._lock:
            if self._handlers is not None:
                return self._handlers
            if self._is_closed:
                raise RestError(503, "The SQL Gateway is shutting down.")
            try:
                from firesteel.cluster.rest.handlers.sql_gateway import SqlHandlers
                from firesteel.gateway.gateway import SqlGateway
                from firesteel.gateway.jobs import ClusterJobs
            except ImportError as error:
                raise RestError(501, str(error)) from None
            jobs = None
            if self._dispatcher is not None:
                jobs = ClusterJobs(self._dispatcher.jobs, lambda job: JobClient(ManagedJobHandle(job)))
            self._gateway = SqlGateway(self._configuration, self._executor, jobs)
            self._handlers = SqlHandlers(self._gateway)
            return self._handlers

    def close(self) -> None:
        """Ends all sessions."""
        with self._lock:
            self._is_closed = True
            gateway = self._gateway
        if gateway is not None:
            gateway.close()


def start_own_port(gateway: LazyGateway, configuration: Configuration, directory: Path) -> RestServer | None:
    """Opens the port of the gateway, if there is to be one besides that of the JobManager."""
    chosen = (cluster_options.SQL_GATEWAY_PORT, cluster_options.SQL_GATEWAY_BIND_PORT)
    if not any(configuration.contains(option) for option in chosen):
        return None
    server = gateway_server(gateway, configuration, directory)
    server.start()
    return server


def gateway_server(gateway: LazyGateway, configuration: Configuration, directory: Path) -> RestServer:
    """A server of the gateway alone, with the options ``sql-gateway.endpoint.rest.*``."""
    own = Configuration(configuration)
    address = configuration.get_optional(cluster_options.SQL_GATEWAY_ADDRESS)
    if address is not None:
        own.set(cluster_options.REST_ADDRESS, address)
    bind_address = configuration.get_optional(cluster_options.SQL_GATEWAY_BIND_ADDRESS)
    if bind_address is not None:
        own.set(cluster_options.REST_BIND_ADDRESS, bind_address)
    port = configuration.get_optional(cluster_options.SQL_GATEWAY_BIND_PORT)
    own.set(cluster_options.REST_BIND_PORT, port or str(configuration.get(cluster_options.SQL_GATEWAY_PORT)))
    token = read_or_create_token(configuration, directory)
    return RestServer(sql_routes.routes(gateway.handlers), own, token=token, static_directory=None)
