"""The Spark application of a JobManager, started in the background and shared by all jobs."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

import psutil

from firesteel.cluster.application_watch import LOST_AFTER_S, ApplicationWatch, can_reach_master
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process.futures import complete
from firesteel.runtime.network.tls_settings import TlsSettings, open_tls

__all__ = ["SparkCluster"]

_log = logging.getLogger(__name__)
_START_TIMEOUT_S = 600.0
"""Clients that do not wait that long give up before: the command line does after two minutes."""
_CHECK_INTERVAL_S = 1.0
_SLOTS_CHECK_INTERVAL_S = 5.0
_ANSWER_TIMEOUT_S = 10.0
"""How long Spark may take to answer that it is there."""


class SparkCluster:
    """A SparkContext and its slots. Starting takes seconds, so it is done before the first job."""

    def __init__(self, configuration: Configuration, log: Path):
        self._configuration = configuration
        self._log = log
        self._started: Future[tuple[Any, ResourceManager]] = Future()
        self._java: int | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begins to start Spark, in a thread of its own."""
        threading.Thread(target=self._start, name="firesteel-start-spark", daemon=True).start()

    def _start(self) -> None:
        from firesteel.spark.session.cluster_info import java_pid
        from firesteel.spark.session.session import start_cluster_context
        from firesteel.spark.session.warm_up import warm_up

        try:
            open_tls(TlsSettings.of(self._configuration))  # errors are raised now, not by each job
            context = start_cluster_context(self._configuration, log=self._log)
            self._java = java_pid(context)
            resources = ResourceManager.of_spark(context)
            _log.info("Spark runs on %s with %d slots.", context.master, resources.total)
            self._started.set_result((context, resources))
        except BaseException as error:  # noqa: BLE001 - raised where Spark is awaited
            self._started.set_exception(error)
            return
        try:
            warm_up(context)
        except Exception as error:  # noqa: BLE001 - a job reports it better
            _log.info("Spark could not be warmed up: %s", error)

    def await_start(self) -> None:
        """Waits until Spark runs; raises why it could not be started."""
        self._started.result(_START_TIMEOUT_S)

    def watch_jvm(self, on_lost: Callable[[str], None]) -> None:
        """Notifies the caller when Spark's JVM, and with it all slots, has ended."""

        def look() -> None:
            while not self._stopped.wait(_CHECK_INTERVAL_S):
                if self._java is not None and not _is_alive(self._java):
                    on_lost("Spark's JVM has ended")
                    return

        threading.Thread(target=look, name="firesteel-watch-spark", daemon=True).start()

    def watch_application(self, on_lost: Callable[[str], None]) -> None:
        """Notifies the caller when Spark's cluster has lost this application."""

        def look() -> None:
            master = self.context.master
            watch = ApplicationWatch(lambda: can_reach_master(master))
            while not self._stopped.wait(_SLOTS_CHECK_INTERVAL_S):
                slots = self._slots()
                if slots is not None and watch.is_lost(slots, time.monotonic()):
                    on_lost(
                        f"Spark's Master has dropped this application: it has had no executors "
                        f"for {LOST_AFTER_S:g} s, although the Master responds"
                    )
                    return

        if self.context.master.startswith("spark://") and not self._is_allocated_dynamically():
            threading.Thread(target=look, name="firesteel-watch-executors", daemon=True).start()

    def is_alive(self) -> bool:
        """Whether Spark is there, answers within a few seconds, and has executors."""
        if self._java is not None and not _is_alive(self._java):
            return False
        answer: Future[bool] = Future()

        def ask() -> None:
            from firesteel.spark.session.liveness import spark_lives

            complete(answer, spark_lives(self.context) and self._has_slots())

        threading.Thread(target=ask, name="firesteel-ask-spark", daemon=True).start()
        try:
            return answer.result(_ANSWER_TIMEOUT_S)
        except FutureTimeoutError:
            return False

    def _has_slots(self) -> bool:
        """Whether there are executors, or come within a moment, where they are not only there when they are needed."""
        if self._is_allocated_dynamically():
            return True
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while (slots := self._slots()) is None or slots == 0:
            if time.monotonic() > deadline or self._stopped.wait(_CHECK_INTERVAL_S):
                return False
        return True

    def _slots(self) -> int | None:
        """How many slots there are; None if Spark does not answer."""
        try:
            return self.resources.total
        except Exception:  # noqa: BLE001 - it may answer the next time
            return None

    def _is_allocated_dynamically(self) -> bool:
        return self._configuration.to_dict().get("spark.dynamicAllocation.enabled", "").lower() == "true"

    @property
    def context(self) -> Any:
        return self._started.result(_START_TIMEOUT_S)[0]

    @property
    def resources(self) -> ResourceManager:
        return self._started.result(_START_TIMEOUT_S)[1]

    @property
    def java_pid(self) -> int | None:
        """The process of the JVM."""
        return self._java

    def executors(self) -> list[Any]:
        """The executors that there are now."""
        from firesteel.spark.session.cluster_info import executors

        return list(executors(self.context))

    def create_runner(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
        """A job that can be started."""
        from firesteel.spark.host_creation import create_host

        context, resources = self._started.result(_START_TIMEOUT_S)
        memory = self._configuration.get(cluster_options.SLOT_MEMORY)
        limit = None if memory is None else memory.bytes
        tls = TlsSettings.of(self._configuration)
        host = create_host(
            job.job_graph,
            context,
            resources,
            memory_limit=limit,
            tls=tls,
            dependencies=job.dependencies,
            artifacts=job.artifacts,
        )
        try:
            runner = JobMasterRunner(job, host, services)
        except BaseException:
            host.close()
            raise
        # now, as jobs are started in the order of their submission, but each asks for slots in a thread of its own
        resources.join(job.job_graph.job_id)
        return runner

    def stop(self) -> None:
        """Stops Spark, if it was started, and waits until its processes are gone."""
        from firesteel.spark.session.session import stop_spark_context

        self._stopped.set()
        if self._started.done():
            try:
                stop_spark_context()
            except Exception as error:  # noqa: BLE001 - Spark may be gone already
                _log.warning("Spark did not stop cleanly: %s", error)
                self.kill()

    def kill(self) -> None:
        """Ends Spark's processes without asking them."""
        if self._java is not None:
            try:
                os.kill(self._java, signal.SIGKILL)
            except ProcessLookupError:
                pass  # as it should be


def _is_alive(pid: int) -> bool:
    """Whether a child process has not ended; an ended one is listed until its exit code is read."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
