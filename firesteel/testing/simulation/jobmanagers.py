"""JobManagers of a simulated cluster: real Dispatchers, JobMasters and elections, on a simulated Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from firesteel.cluster import jobmanager, spark_cluster
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.cluster.ha.creation import create_services
from firesteel.cluster.jobmanager import JobManager
from firesteel.cluster.launch import SESSION, Launch
from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.config.configuration import Configuration
from firesteel.testing.simulation.machine.scheduler import Machine, Process, ProcessKilled, Scheduler
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.spark import SimulatedSparkContext, SparkApplication

__all__ = ["JobManagerProcess", "simulated_jobmanagers"]

_log = logging.getLogger(__name__)


class JobManagerProcess:
    """A JobManager that is started again whenever its process has ended, as a service manager does."""

    def __init__(
        self,
        simulation: Scheduler,
        name: str,
        machine: Machine,
        configuration: Configuration,
        start_spark: Callable[[Process], SparkApplication],
    ):
        self.name = name
        self.machine = machine
        self.process: Process | None = None
        self.dispatcher: Dispatcher | None = None
        """While it leads, or believes that it does."""
        self.application: SparkApplication | None = None
        self.stopped = False
        self._simulation = simulation
        self._configuration = configuration
        self._start_spark = start_spark
        self._incarnation = 0
        self._living: _JobManager | None = None
        self._start()

    def _start(self) -> None:
        if self.stopped:
            return
        if self.machine.down:
            self._simulation.after(1_000_000, self._start)
            return
        self._incarnation += 1
        self._living = None
        self.dispatcher = self.application = None
        name = f"{self.name}.{self._incarnation}"
        self.process = self._simulation.start_process(name, self.machine, self._main)
        self.process.at_end(self._on_end)
        self._simulation.tell(name, f"starts on {self.machine}")

    def _on_end(self) -> None:
        self.dispatcher = None
        self._simulation.after(self._simulation.random.randint(500_000, 8_000_000), self._start)

    def _main(self) -> None:
        assert self.process is not None
        self._living = _JobManager(self, self.process, self._configuration)
        self._living.live()

    def stop_gracefully(self) -> None:
        """Asks it to end, as SIGTERM does."""
        process, living = self.process, self._living
        if process is not None and process.alive and living is not None:
            process.start(lambda: living.stop("SIGTERM"), "signal")

    def start_spark(self, process: Process) -> SparkApplication:
        """Starts the Spark of one incarnation."""
        application = self._start_spark(process)
        if process is self.process:
            self.application = application
        return application

    def leads(self, process: Process, dispatcher: Dispatcher) -> None:
        """It has recovered all jobs, and takes requests."""
        if process is self.process:
            self.dispatcher = dispatcher
            self._simulation.tell(process.name, "leads, and has recovered all jobs")


class _JobManager(JobManager):
    """One incarnation: without a REST server, and with a simulated Spark."""

    def __init__(self, service: JobManagerProcess, process: Process, configuration: Configuration):
        super().__init__(Launch(SESSION, configuration), _Logs())  # type: ignore[arg-type]
        self._service = service
        self._process = process
        self._spark = _SparkCluster(configuration, service, process)

    def live(self) -> None:
        """What `run` does between the start and the end of a REST server."""
        services = create_services(self._configuration, self.directory)
        try:
            self._spark.start()
            self._spark.await_start()
            self._spark.watch_jvm(self._spark_lost)
            self._lead(_Server(self._service, self._process), services)  # type: ignore[arg-type]
        finally:
            self._spark.stop()
            services.close()

    def _begin_anew(self, why: str) -> None:
        _log.error("This JobManager is no longer the leader (%s): it restarts as a standby.", why)
        self._spark.kill()
        self._process.kill("begins anew", 0)
        raise ProcessKilled


class _SparkCluster(SparkCluster):
    def __init__(self, configuration: Configuration, service: JobManagerProcess, process: Process):
        super().__init__(configuration, Path("spark.log"))
        self._service = service
        self._process = process
        self._application: SparkApplication | None = None

    def _start(self) -> None:
        self._application = application = self._service.start_spark(self._process)
        context = SimulatedSparkContext(application, self._process.scheduler)
        self._java = application.jvm.pid
        try:
            self._started.set_result((context, ResourceManager.of_spark(context)))
        except ProcessKilled:
            raise
        except BaseException as error:  # noqa: BLE001 - raised where Spark is awaited
            self._started.set_exception(error)

    def kill(self) -> None:
        self._process.scheduler.check_alive()
        if self._application is not None:
            self._application.jvm.kill("its JobManager ends it")

    def stop(self) -> None:
        self._stopped.set()
        self.kill()


class _Server:
    """Replaces the REST server: signals when a JobManager takes requests."""

    def __init__(self, service: JobManagerProcess, process: Process):
        self.public_address = f"{service.machine.name}:8081"
        self._service = service
        self._process = process

    def replace_routes(self, dispatcher: Any) -> None:
        self._service.leads(self._process, dispatcher)


class _Logs:
    spark_log = Path("spark.log")
    output = SimpleNamespace(write_output=lambda _stream, _lines: None)
    job_logs = SimpleNamespace(write=lambda _job_id, _lines: None)


@contextmanager
def simulated_jobmanagers(simulation: Scheduler) -> Iterator[None]:
    """While it lasts, the JobManager's routes are its Dispatcher, and its JVM is a simulated process."""

    def is_alive(pid: int) -> bool:
        return simulation.processes[pid].alive

    with ExitStack() as stack:
        stack.enter_context(replaced(jobmanager, all_routes=lambda dispatcher, *_rest: dispatcher))
        stack.enter_context(replaced(spark_cluster, _is_alive=is_alive))
        yield
