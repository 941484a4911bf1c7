"""The JobManager from start to shutdown: opens the REST port, waits for leadership, runs jobs, and cleans up."""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import psutil

from firesteel.client.local_clusters import cluster_directory
from firesteel.client.program import run_program
from firesteel.cluster.application import DispatcherExecutor
from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.ha.creation import create_services, storage_directory
from firesteel.cluster.ha.services import HighAvailabilityServices, Leadership
from firesteel.cluster.launch import APPLICATION, Launch
from firesteel.cluster.rest.server import RestServer
from firesteel.cluster.rest.standby import StandbyRoutes
from firesteel.cluster.routes import all_routes
from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.cluster.sql_gateway import LazyGateway, start_own_port
from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.filesystem.filesystem import join
from firesteel.rest.token import TOKEN_FILE_NAME, read_or_create_token

__all__ = ["AGAIN", "JobManager"]

AGAIN = "--again"
"""Marks that the process has been up before."""

_log = logging.getLogger(__name__)
_SUSPEND_TIMEOUT_S = 30.0
_RESTART_DELAY_S = 2.0
_POLL_INTERVAL_S = 0.1
_WEB = Path(__file__).parent / "web"


class JobManager:
    """Dispatcher, ResourceManager and REST server of one process.

    1. It listens and starts Spark. Until it leads, it redirects clients to the leader.
    2. It leads: the jobs of the leader before are recovered, and new ones are taken.
    3. It is stopped: jobs are suspended, so that the next leader continues them.

    If another one turns out to lead, the process restarts itself as it was started, without any of the cleaning up
    of step 3: what is shared is no longer its own. It also restarts, repeatedly, if something that it needs is
    away after it has been up once: Spark, the directory or the ZooKeeper of high availability. What is wrong at its
    first start ends it with an error for its starter.
    """

    def __init__(self, launch: Launch, logs: LogFiles, *, again: bool = False):
        self._launch = launch
        self._logs = logs
        self._configuration = launch.configuration
        self.directory = cluster_directory(launch.configuration)
        self.started_at = time.time_ns() // 1_000_000
        # one that a signal handler may put to while it is being used
        self._told: queue.SimpleQueue[str | Leadership | BaseException] = queue.SimpleQueue()
        self._spark = SparkCluster(self._configuration, logs.spark_log)
        self._program_failed = False
        self._was_up = again
        self._is_stopping = False
        self._leadership: Leadership | None = None

    def run(self) -> int:
        """Runs until it is stopped, or its program's jobs have ended; returns the process's exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _frame: self.stop(signal.Signals(number).name))
        token = read_or_create_token(self._configuration, self.directory)
        # a program that runs again has to find all its jobs, also those that have ended long ago
        keeps_results = self._launch.mode == APPLICATION
        services = create_services(self._configuration, self.directory, keeps_results=keeps_results)
        server = RestServer(
            StandbyRoutes(services.leader_address), self._configuration, token=token, static_directory=_WEB
        )
        try:
            server.start()
            # one that cannot run jobs must not lead, and one that is not ready should not announce itself
            self._spark.start()
            self._spark.await_start()
            # also as long as it stands by: one without Spark must not take over
            self._spark.watch_jvm(self._spark_lost)
            with _Presence(self.directory, server, self._launch.mode, self.started_at):
                self._was_up = True
                return self._lead(server, services)
        finally:
            self._spark.stop()
            services.close()
            server.close()

    def stop(self, why: str) -> None:
        """Stops it; called from any thread, or a signal handler."""
        self._is_stopping = True  # no Event: a handler that is interrupted by another one would wait for itself
        self._told.put(f"stopping: {why}")

    # -- steps --------------------------------------------------------------------------------------

    def _lead(self, server: RestServer, services: HighAvailabilityServices) -> int:
        threading.Thread(target=self._await_leadership, args=(server, services), daemon=True).start()
        told = self._told.get()
        if isinstance(told, BaseException):
            raise told
        if isinstance(told, str):
            _log.info("%s, before it led", told)
            return 0
        leadership = told
        _log.info("This JobManager leads (term %d).", leadership.term)
        self._leadership = leadership
        self._spark.watch_application(self._spark_lost)
        dispatcher = Dispatcher(
            leadership.store,
            self._configuration,
            self._spark.create_runner,
            on_fenced=self._begin_anew,
            checkpoint_directory=join(storage_directory(self._configuration, self.directory), "checkpoints"),
            is_leader=leadership.is_valid,
            host_lives=self._spark.is_alive,
            write_output=lambda _job_id, stream, lines: self._logs.output.write_output(stream, lines),
            write_log=self._logs.job_logs.write,
        )
        # only then is it asked anything: a job that is not recovered yet would seem not to exist
        dispatcher.recover()
        gateway = LazyGateway(self._configuration, dispatcher=dispatcher)
        stop = partial(self.stop, "requested by a client")
        server.replace_routes(all_routes(dispatcher, self._spark, self._logs, self.directory, stop, gateway))
        gateway_server = start_own_port(gateway, self._configuration, self.directory)
        if self._launch.mode == APPLICATION:
            threading.Thread(target=self._run_program, args=(dispatcher,), name="program", daemon=True).start()
        reason = self._told.get()
        _log.info("%s", reason)
        failed = self._program_failed  # not because its jobs are suspended now
        if gateway_server is not None:
            gateway_server.close()
        gateway.close()
        dispatcher.close(_SUSPEND_TIMEOUT_S)
        leadership.resign()
        return 1 if failed else 0

    def _await_leadership(self, server: RestServer, services: HighAvailabilityServices) -> None:
        try:
            self._told.put(services.await_leadership(server.public_address, self._begin_anew))
        except Exception as error:  # noqa: BLE001 - raised in the main thread
            self._told.put(error)

    def _spark_lost(self, why: str) -> None:
        try:
            if self._leadership is not None:
                self._leadership.resign()
        except Exception as error:  # noqa: BLE001 - others take over once the claim has run out
            _log.warning("Leadership could not be released: %s: %s", type(error).__name__, error)
        self._begin_anew(why)

    def _begin_anew(self, why: str) -> None:
        """This process becomes a new one, and with it go its slots and connections; nothing is cleaned up."""
        _log.error("This JobManager is no longer the leader (%s): it restarts as a standby.", why)
        self._spark.kill()
        self._execute_anew()

    def begin_anew_after(self, error: BaseException) -> None:
        """Restarts in a moment if something that it needs is away; returns if the error ends it."""
        if not self._was_up or self._is_stopping:
            return
        _log.error("This JobManager restarts in %g s: %s", _RESTART_DELAY_S, error)
        if self._pauses():
            self._execute_anew()

    def _pauses(self) -> bool:
        """Waits a moment; returns whether it was not stopped."""
        deadline = time.monotonic() + _RESTART_DELAY_S
        while not self._is_stopping and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
        return not self._is_stopping

    def _execute_anew(self) -> NoReturn:
        logging.shutdown()
        module = "firesteel.cluster.main"
        os.execv(sys.executable, [sys.executable, "-m", module, sys.argv[1], AGAIN])  # noqa: S606

    # -- the program of an application --------------------------------------------------------------

    def _run_program(self, dispatcher: Dispatcher) -> None:
        executor = DispatcherExecutor(
            dispatcher, self._configuration.get(cluster_options.CLUSTER_ID), self._launch.program or ""
        )
        assert self._launch.program is not None
        try:
            code = run_program(
                self._launch.program,
                self._launch.arguments,
                self._configuration.to_dict(),
                executor,
                module=self._launch.module,
            )
            ended_well = executor.await_jobs()
            if not executor.jobs:
                _log.error("%s ended without executing a job.", self._launch.program)
            self._program_failed = code != 0 or not ended_well or not executor.jobs
        except FiresteelError as error:
            _log.error("%s", error)
            self._program_failed = True
        except BaseException:  # noqa: BLE001 - a program may raise anything
            # no error may leave a JobManager behind that waits for a program that is gone
            _log.exception("%s failed", self._launch.program)
            self._program_failed = True
        finally:
            self.stop("the program has ended")


class _Presence:
    """A file with the address of a JobManager on this machine, for as long as it listens."""

    def __init__(self, directory: Path, server: RestServer, mode: str, started_at: int):
        self._path = directory / "jobmanagers" / f"{os.getpid()}.json"
        self._content: dict[str, Any] = {
            "pid": os.getpid(),
            "address": server.public_address,
            "url": server.url,
            "started_at": started_at,
            "mode": mode,
            "token_file": str(directory / TOKEN_FILE_NAME),
        }

    def __enter__(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for other in self._path.parent.glob("*.json"):
            if not psutil.pid_exists(int(other.stem)):
                other.unlink(missing_ok=True)  # killed before it could
        unfinished = self._path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self._content))
        unfinished.replace(self._path)

    def __exit__(self, *_exception: object) -> None:
        self._path.unlink(missing_ok=True)
