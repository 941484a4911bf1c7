"""A simulated cluster: machines, network, storage, ZooKeeper, JobManagers with their Spark, and what is outside."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.common.errors import FiresteelWarning
from firesteel.config.configuration import Configuration
from firesteel.process import fault_points
from firesteel.spark.pipelined import slot_watch
from firesteel.testing.simulation.jobmanagers import JobManagerProcess, simulated_jobmanagers
from firesteel.testing.simulation.machine.event_loops import simulated_event_loops
from firesteel.testing.simulation.machine.local_disks import local_disks
from firesteel.testing.simulation.machine.network import Network
from firesteel.testing.simulation.machine.scheduler import Machine, Process, ProcessKilled, Scheduler
from firesteel.testing.simulation.machine.shared_directory import simulated_shared_directory
from firesteel.testing.simulation.machine.standard_library import replaced, simulated_standard_library
from firesteel.testing.simulation.machine.storage import HA_DIRECTORY, Storage, simulated_storage
from firesteel.testing.simulation.machine.story import Story
from firesteel.testing.simulation.machine.zookeeper import Ensemble, simulated_zookeeper
from firesteel.testing.simulation.outside import Outside
from firesteel.testing.simulation.registered_checkpoints import RegisteredCheckpoints
from firesteel.testing.simulation.spark import SparkApplication, simulated_spark

__all__ = ["Cluster", "ClusterSettings", "RequestFailedError"]

T = TypeVar("T")


class RequestFailedError(Exception):
    """A request of a client was not answered: there is no leader, or it is gone, stopped or out of reach."""


@dataclass(frozen=True)
class ClusterSettings:
    """What a cluster consists of."""

    jobmanagers: int = 2
    workers: int = 2
    cores: int = 4
    ha: str = "zookeeper"
    """``zookeeper`` or ``filesystem``."""
    local_disks: bool = False
    """Whether slots keep files on local disks."""


class Cluster:
    """A cluster that runs until it is closed."""

    def __init__(self, seed: int, settings: ClusterSettings):
        self.settings = settings
        self.story = Story()
        self.simulation = Scheduler(seed, self.story)
        self.network = Network(self.simulation)
        self.storage = Storage(self.simulation)
        self.checkpoints = RegisteredCheckpoints(self.simulation, self.storage)
        self.outside = Outside()
        self.simulation.outside = self.outside
        self.ensemble = Ensemble(self.simulation, self.network, self.network.add_machine("zk"))
        self.client_machine = self.network.add_machine("client")
        self.workers = [self.network.add_machine(f"w{number + 1}") for number in range(settings.workers)]
        self.on_log: list[Callable[[str, str], None]] = []
        """Called with the process and the text of whatever is logged."""
        self.applications: list[SparkApplication] = []
        self.jobmanagers: list[JobManagerProcess] = []

    def start(self) -> None:
        """Starts the JobManagers; inside `entered`."""
        in_directory = self.settings.ha == "filesystem"
        configuration = Configuration.from_dict(
            {
                "high-availability.type": self.settings.ha,
                "high-availability.zookeeper.quorum": "zk:2181",
                "high-availability.storageDir": HA_DIRECTORY if in_directory else "sim://store/ha",
                # the clock may be set by hours
                "jobstore.expiration-time": "1000000",
            }
        )
        for number in range(self.settings.jobmanagers):
            machine = self.network.add_machine(f"m{number + 1}")
            start_spark = lambda process, machine=machine: self._start_spark(machine, process)
            self.jobmanagers.append(
                JobManagerProcess(self.simulation, f"jm-{number + 1}", machine, configuration, start_spark)
            )

    def _start_spark(self, driver: Machine, owner: Process) -> SparkApplication:
        number = len(self.applications) + 1
        application = SparkApplication(self.simulation, number, driver, self.workers, self.settings.cores, owner)
        self.applications.append(application)
        return application

    @contextmanager
    def entered(self) -> Iterator[None]:
        """While it lasts, this process is this cluster; afterwards nothing of it is left."""
        simulation = self.simulation
        handler = _StoryHandler(simulation, self.on_log)
        with ExitStack() as stack:
            stack.enter_context(simulated_standard_library(simulation, self.network))
            stack.enter_context(simulated_event_loops())
            stack.enter_context(simulated_storage(self.storage))
            stack.enter_context(simulated_spark())
            stack.enter_context(simulated_zookeeper(self.ensemble))
            stack.enter_context(simulated_shared_directory(simulation, self.storage))
            stack.enter_context(simulated_jobmanagers(simulation))
            stack.enter_context(self.checkpoints.watched())
            if self.settings.local_disks:
                stack.enter_context(local_disks())
            stack.enter_context(replaced(fault_points, reach=simulation.reach))
            stack.enter_context(replaced(slot_watch, resident_bytes=lambda: 50 << 20))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("error", FiresteelWarning)  # which then is logged
            for name in ("firesteel", "concurrent.futures"):
                logger = logging.getLogger(name)
                stack.enter_context(replaced(logger, handlers=[handler], propagate=False, level=logging.INFO))
            logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]
            stack.callback(logging.Logger.manager._clear_cache)  # type: ignore[attr-defined]
            stack.callback(self._close)
            yield

    def _close(self) -> None:
        for jobmanager in self.jobmanagers:
            jobmanager.stopped = True
        self.simulation.close()

    # -- requests of clients ------------------------------------------------------------------------

    def leaders(self) -> list[JobManagerProcess]:
        """The JobManagers that lead, or have not noticed that they no longer do."""
        return [each for each in self.jobmanagers if each.dispatcher is not None]

    def ask(self, action: Callable[[Dispatcher], T], timeout_s: float = 10.0) -> T:
        """Calls a leader, as a request over REST would; from a simulated thread."""
        simulation = self.simulation
        thread = simulation.this_thread()
        assert thread is not None
        leaders = self.leaders()
        if not leaders:
            simulation.sleep(200_000)
            raise RequestFailedError("nobody leads")
        leader = simulation.random.choice(leaders)
        dispatcher, process = leader.dispatcher, leader.process
        assert dispatcher is not None
        assert process is not None
        token = thread.token
        answers: list[tuple[Any, BaseException | None]] = []

        def respond() -> None:
            try:
                answer: tuple[Any, BaseException | None] = action(dispatcher), None
            except ProcessKilled:
                raise
            except Exception as error:  # noqa: BLE001 - raised where it was asked for
                answer = None, error
            answers.append(answer)
            simulation.wake(thread, token)

        def arrive() -> None:
            cut = self.network.is_cut(self.client_machine, leader.machine)
            if not cut and process.alive:
                process.start(respond, "rest")

        simulation.after(self.network.latency(self.client_machine, leader.machine), arrive)
        simulation.wait(int(timeout_s * 1e6))
        if not answers:
            raise RequestFailedError(f"{process} has not answered")
        value, error = answers[0]
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]


class _StoryHandler(logging.Handler):
    """Puts the first line of what is logged into the story."""

    def __init__(self, simulation: Scheduler, on_log: list[Callable[[str, str], None]]):
        super().__init__()
        self._simulation = simulation
        self._on_log = on_log

    def createLock(self) -> None:  # noqa: N802 - logging's name
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        thread = self._simulation.this_thread()
        if thread is not None and thread.process.alive:
            lines = record.getMessage().splitlines() or [""]
            text = " | ".join(line.strip() for line in lines[:2])
            if record.exc_info and record.exc_info[1] is not None:
                text += f" [{type(record.exc_info[1]).__name__}: {record.exc_info[1]}]"
            self._simulation.tell(thread.process.name, f"{record.levelname.lower()}: {text[:300]}")
            for callback in self._on_log:
                callback(thread.process.name, text)
