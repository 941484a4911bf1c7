"""SqlGateway: sessions of clients, and their limits."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import PipelineExecutor
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.gateway.errors import SqlGatewayError
from firesteel.gateway.operations import Operation, OperationManager
from firesteel.gateway.statements import StatementExecutor
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.environment.planning.jobs import JobDirectory
from firesteel.table.environment.planning.session import TableSession

__all__ = ["GatewaySession", "SqlGateway"]

_log = logging.getLogger(__name__)


class GatewaySession:
    """A table environment of one client, with its operations."""

    def __init__(self, handle: str, name: str | None, environment: TableEnvironment, manager: OperationManager) -> None:
        self.handle = handle
        self.name = name
        self.environment = environment
        self.operations = manager
        self.accessed_at = 0.0
        self._statements = StatementExecutor(environment)

    def execute(self, sql: str, settings: Mapping[str, str] | None = None) -> Operation:
        """Begins to execute a statement; ``settings`` are options for it alone."""
        chosen = dict(settings or {})
        return self.operations.submit(lambda operation: self._statements.execute(sql, chosen, operation))

    def configure(self, sql: str) -> None:
        """Executes a statement that changes the session, such as SET, USE or CREATE."""
        operation = self.operations.submit(lambda operation: self._statements.configure(sql, {}, operation))
        try:
            operation.await_end()
        finally:
            self.operations.close_operation(operation.handle)

    def configuration(self) -> dict[str, str]:
        """All options of the session."""
        return self.environment._session.configuration.to_dict()


class SqlGateway:
    """Sessions in which clients execute SQL; jobs run on ``executor``, by default on a Spark in this process.

    ``jobs`` are those of SHOW JOBS and STOP JOB, by default those of the session.

    >>> from firesteel.config.configuration import Configuration
    >>> gateway = SqlGateway(Configuration())
    >>> session = gateway.open_session()
    >>> operation = session.execute("SHOW CATALOGS")
    >>> pages, page = operation.fetch(0, timeout_s=60)
    >>> [len(batch) for batch in page.batches]
    [1]
    >>> gateway.close()
    """

    def __init__(
        self,
        configuration: Configuration,
        executor: PipelineExecutor | None = None,
        jobs: JobDirectory | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._configuration = configuration
        self._executor = executor
        self._jobs = jobs
        self._monotonic = monotonic
        self._max_sessions = configuration.get(cluster_options.SQL_GATEWAY_SESSION_MAX_NUM)
        self._idle_timeout_s = configuration.get(cluster_options.SQL_GATEWAY_SESSION_IDLE_TIMEOUT).to_seconds()
        self._workers = ThreadPoolExecutor(
            configuration.get(cluster_options.SQL_GATEWAY_WORKER_THREADS_MAX), thread_name_prefix="firesteel-sql"
        )
        self._lock = threading.Lock()
        self._sessions: dict[str, GatewaySession] = {}
        self._closed = threading.Event()
        self._check_interval_s = configuration.get(cluster_options.SQL_GATEWAY_SESSION_CHECK_INTERVAL).to_seconds()
        self._housekeeper: threading.Thread | None = None

    def open_session(self, properties: Mapping[str, str] | None = None, name: str | None = None) -> GatewaySession:
        """A new session; ``properties`` are options of it."""
        environment = self._environment(properties or {})
        session = GatewaySession(str(uuid.uuid4()), name, environment, OperationManager(self._workers))
        session.accessed_at = self._monotonic()
        with self._lock:
            if self._closed.is_set():
                raise SqlGatewayError("The gateway is closed.")
            if self._max_sessions > 0 and len(self._sessions) >= self._max_sessions:
                raise SqlGatewayError(
                    "Failed to create session, the count of active sessions exceeds the max count: "
                    f"{self._max_sessions}"
                )
            self._sessions[session.handle] = session
            self._begin_keeping_house()
        _log.info("SQL session %s is opened.", session.handle)
        return session

    def session(self, handle: str) -> GatewaySession:
        """An open session, which counts as used now."""
        with self._lock:
            session = self._sessions.get(handle)
            if session is None:
                raise SqlGatewayError(f"Session '{handle}' does not exist.")
            session.accessed_at = self._monotonic()
            return session

    def sessions(self) -> list[GatewaySession]:
        """The open sessions."""
        with self._lock:
            return list(self._sessions.values())

    def close_session(self, handle: str) -> None:
        """Ends a session: queries are cancelled, INSERT jobs continue."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is None:
            raise SqlGatewayError(f"Session '{handle}' does not exist.")
        session.operations.close()
        _log.info("SQL session %s is closed.", handle)

    def close_idle_sessions(self) -> None:
        """Ends sessions that nobody has used for the idle timeout."""
        latest = self._monotonic() - self._idle_timeout_s
        for session in self.sessions():
            if session.accessed_at < latest:
                _log.info("SQL session %s has not been used for %g s.", session.handle, self._idle_timeout_s)
                try:
                    self.close_session(session.handle)
                except SqlGatewayError:
                    continue  # its client did

    def close(self) -> None:
        """Ends all sessions."""
        self._closed.set()
        for session in self.sessions():
            try:
                self.close_session(session.handle)
            except SqlGatewayError:
                continue
        self._workers.shutdown(wait=True, cancel_futures=True)
        if self._housekeeper is not None:
            self._housekeeper.join()

    def _begin_keeping_house(self) -> None:
        if self._housekeeper is None and self._idle_timeout_s > 0 and self._check_interval_s > 0:
            self._housekeeper = threading.Thread(target=self._keep_house, name="firesteel-sql-sessions", daemon=True)
            self._housekeeper.start()

    def _keep_house(self) -> None:
        while not self._closed.wait(self._check_interval_s):
            self.close_idle_sessions()

    def _environment(self, properties: Mapping[str, str]) -> TableEnvironment:
        configuration = Configuration(self._configuration).add_all(Configuration.from_dict(dict(properties)))
        environment = StreamExecutionEnvironment.get_execution_environment(self._configuration)
        environment._executor = self._executor
        settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
        session = TableSession(environment, settings)
        session.jobs = self._jobs or session.jobs
        return TableEnvironment(session)
