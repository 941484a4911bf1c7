"""A Spark application of a simulated cluster: a JVM, executors on worker machines, and Python workers for their tasks.

It has as much of a SparkContext as the product uses for long-lived tasks. A JVM that is gone raises what Py4J raises; a
worker that dies fails the whole barrier stage; executors end with their driver, after a while.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

from typing_extensions import Self

from firesteel.runtime.slot.task_executor import TaskExecutor
from firesteel.spark import host_creation
from firesteel.spark.pipelined import host, slot_main
from firesteel.spark.pipelined.slot_main import SlotMain
from firesteel.testing.simulation.machine.scheduler import Machine, Process, Scheduler, Thread
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.machine.threads import SimulatedThread

__all__ = ["Py4JJavaError", "Py4JNetworkError", "SimulatedSparkContext", "SparkApplication", "simulated_spark"]

_CALL_US = (100, 3_000)


class Py4JNetworkError(Exception):
    """The JVM does not answer."""


class Py4JJavaError(Exception):
    """The JVM has thrown an exception."""


class _Stage:
    """A barrier stage that runs."""

    def __init__(self, group: str, thread: Thread):
        self.group = group
        self.thread = thread
        self.workers: dict[int, Process] = {}
        self.cancelled = ""


class SparkApplication:
    """One application: started for a JobManager, and gone with its JVM."""

    _applications = itertools.count(1)

    def __init__(
        self,
        simulation: Scheduler,
        number: int,
        driver: Machine,
        workers: Sequence[Machine],
        cores: int,
        owner: Process,
    ):
        self._simulation = simulation
        self.number = number
        self.driver = driver
        self.cores = cores
        self.hung_until = 0
        self.executors: dict[str, Process] = {}
        self.stages: list[_Stage] = []
        self._workers = list(workers)
        self._names = itertools.count(1)
        owner.attached[SparkApplication] = self
        self.jvm = simulation.start_process(f"jvm-{number}", driver, self._rest)
        self.jvm.at_end(self._on_jvm_end)
        owner.at_end(lambda: self._later(2_000_000, lambda: self.jvm.kill("its JobManager is gone")))
        for machine in self._workers:
            self._later(3_000_000, partial(self._start_executor, machine))

    def _rest(self) -> None:
        while True:
            self._simulation.wait(None)

    def _later(self, most_us: int, action: Callable[[], Any]) -> None:
        self._simulation.after(self._simulation.random.randint(0, most_us), action)

    def _soon_or(self, later_us: int) -> int:
        """How long it takes at most until a loss is noticed: a closed connection is at once."""
        return self._simulation.random.choice((20_000, later_us))

    # -- executors ----------------------------------------------------------------------------------

    def _start_executor(self, machine: Machine) -> None:
        if not self.jvm.alive or machine.name in self.executors:
            return
        if machine.down:
            self._simulation.after(1_000_000, partial(self._start_executor, machine))
            return
        name = f"executor-{self.number}.{next(self._names)}"
        executor = self._simulation.start_process(name, machine, self._rest)
        self.executors[machine.name] = executor
        executor.at_end(lambda: self._on_executor_end(machine, executor))
        self._simulation.tell(name, f"registers on {machine}")

    def _on_executor_end(self, machine: Machine, executor: Process) -> None:
        most_us = self._soon_or(1_000_000)
        for stage in self.stages:
            for worker in list(stage.workers.values()):
                if worker.machine is machine:
                    self._later(most_us, partial(worker.kill, "its executor is gone"))

        def forget() -> None:
            if self.executors.get(machine.name) is executor:
                del self.executors[machine.name]

        self._later(2_000_000, forget)
        self._simulation.after(2_500_000, lambda: self._later(8_000_000, lambda: self._start_executor(machine)))

    def _on_jvm_end(self) -> None:
        most_us = self._soon_or(3_000_000)
        for executor in list(self.executors.values()):
            self._later(most_us, partial(executor.kill, "its driver is gone"))
        for stage in self.stages:
            # the slots may be lost before the thread that waits for the JVM's answer notices
            self._later(self._soon_or(500_000), partial(self._wake, stage))

    def _wake(self, stage: _Stage) -> None:
        self._simulation.wake(stage.thread, stage.thread.token)

    # -- what a SparkContext does -------------------------------------------------------------------

    def call(self) -> None:
        """A call of the JVM."""
        self._simulation.sleep(self._simulation.random.randint(*_CALL_US))
        while self.jvm.alive and (self._simulation.now < self.hung_until or self.jvm.frozen):
            self._simulation.sleep(200_000)
        if not self.jvm.alive:
            raise Py4JNetworkError("Error while sending or receiving: [Errno 111] Connection refused")

    @property
    def slots(self) -> int:
        """How many tasks it can run at once."""
        return self.cores * len(self.executors)

    def _free(self) -> list[Process]:
        """The executors that could take a task, as often as they could."""
        taken = [worker.machine.name for stage in self.stages for worker in stage.workers.values() if worker.alive]
        free = []
        for machine, executor in self.executors.items():
            free += [executor] * (self.cores - taken.count(machine))
        return [executor for executor in free if executor.alive]

    def run_barrier_stage(self, group: str, tasks: int, main: SlotMain) -> None:
        """Runs one task per slot, all at once; returns when all have ended, raises if one did not end well."""
        simulation = self._simulation
        thread = simulation.this_thread()
        assert thread is not None
        stage = _Stage(group, thread)
        self.stages.append(stage)
        try:
            while len(free := self._free()) < tasks and not stage.cancelled:
                self.call()
                simulation.sleep(200_000)
            if not stage.cancelled:
                simulation.random.shuffle(free)
                for slot, executor in enumerate(free[:tasks]):
                    self._start_worker(stage, slot, executor, main)
            self._await(stage)
        finally:
            self.stages.remove(stage)

    def _start_worker(self, stage: _Stage, slot: int, executor: Process, main: SlotMain) -> None:
        machine = executor.machine
        name = f"slot-{self.number}.{next(self._names)}"
        worker = self._simulation.start_process(name, machine, lambda: main.run(slot, f"{machine.name}:1"))
        stage.workers[slot] = worker
        self._simulation.tell(name, f"starts as slot {slot} on {machine}")
        worker.at_end(lambda: self._simulation.wake(stage.thread, stage.thread.token))

    def _await(self, stage: _Stage) -> None:
        simulation = self._simulation
        while any(worker.alive for worker in stage.workers.values()):
            if not self.jvm.alive:
                raise Py4JNetworkError("Answer from Java side is empty")
            failed = [slot for slot, worker in stage.workers.items() if not worker.alive and worker.exit_code != 0]
            if failed or stage.cancelled:
                simulation.sleep(simulation.random.randint(1_000, 1_500_000))
                for worker in stage.workers.values():
                    worker.kill("Spark ends its stage")
            else:
                simulation.wait(None)
        if not self.jvm.alive:
            raise Py4JNetworkError("Answer from Java side is empty")
        if stage.cancelled:
            raise Py4JJavaError(f"org.apache.spark.SparkException: Job cancelled: {stage.cancelled}")
        codes = {slot: worker.exit_code for slot, worker in stage.workers.items() if worker.exit_code != 0}
        if codes:
            raise Py4JJavaError(
                "org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed "
                f"barrier ResultStage. Python worker exited unexpectedly (crashed): {codes}"
            )

    def cancel(self, group: str) -> None:
        """Ends a stage."""
        for stage in self.stages:
            if stage.group == group:
                stage.cancelled = "asked to"
                self._simulation.wake(stage.thread, stage.thread.token)


class SimulatedSparkContext:
    """In the place of a SparkContext."""

    master = "spark://simulated:7077"

    def __init__(self, application: SparkApplication, simulation: Scheduler):
        self.application = application
        self._simulation = simulation
        self._groups: dict[int, str] = {}
        self._jsc = _Java(application)

    def getConf(self) -> Any:  # noqa: N802 - Spark's name
        """Where the driver is."""
        self.application.call()
        return {"spark.driver.host": self.application.driver.name}

    def setJobGroup(self, group: str, _description: str, interruptOnCancel: bool = False) -> None:  # noqa: N802, N803
        """Names the stages of this thread."""
        self.application.call()
        self._groups[self._thread().ident] = group

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
        """Ends the stages of a group."""
        self.application.call()
        self.application.cancel(group)

    def _run_slots(self, main: SlotMain, slots: int) -> None:
        """Runs a barrier stage."""
        self.application.call()
        self.application.run_barrier_stage(self._groups.get(self._thread().ident, ""), slots, main)

    def _thread(self) -> Thread:
        thread = self._simulation.this_thread()
        assert thread is not None
        return thread


class _Rdds:
    """As much of Rdds as a barrier stage needs."""

    def __init__(self, context: SimulatedSparkContext):
        self._context = context

    def empty(self, partitions: int) -> int:
        """So many partitions without rows."""
        return partitions

    def shipped(
        self, partitions: int, main: SlotMain, _environment: Any, *, barrier: bool
    ) -> tuple[tuple[SlotMain, int], None]:
        """What each task does. The command is never so large that it is broadcast."""
        assert barrier
        return (main, partitions), None

    def collect(self, stage: tuple[SlotMain, int]) -> None:
        """Runs the stage."""
        self._context._run_slots(*stage)


class _Java:
    """The JVM's objects behind a SparkContext that are asked for the number of slots, and whether it is there."""

    def __init__(self, application: SparkApplication):
        self._application = application

    def sc(self) -> Self:
        """Scala's SparkContext."""
        return self

    def isStopped(self) -> bool:  # noqa: N802 - Spark's name
        """Whether the SparkContext was stopped: it never is, as long as its JVM lives."""
        self._application.call()
        return False

    def resourceProfileManager(self) -> Self:  # noqa: N802 - Spark's name
        """What knows the default profile."""
        return self

    def defaultResourceProfile(self) -> Self:  # noqa: N802 - Spark's name
        """The only profile."""
        return self

    def maxNumConcurrentTasks(self, _profile: Any) -> int:  # noqa: N802 - Spark's name
        """How many tasks can run at once."""
        self._application.call()
        return self._application.slots


class _UnredirectedOutput:
    """In the place of UserOutput: simulated processes share one terminal."""

    def __init__(self, *_arguments: Any):
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def flush(self, *, end: bool = False) -> None:
        """Nothing was printed."""

    def tell_left_out(self) -> None:
        """Nothing was logged."""

    def acknowledge(self, _message: object) -> bool:
        """Nothing was printed."""
        return False


class _InheritableThread(SimulatedThread):
    """A thread with the JVM's properties of the one that makes it, which it asks the JVM for."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        application: SparkApplication = self._process.attached[SparkApplication]
        application.call()


@contextmanager
def simulated_spark() -> Iterator[None]:
    """While it lasts, hosts start their stages in simulated threads, and slots know where they are."""
    assert host_creation  # loaded by the product when it is needed: now is better than in a simulated thread
    with ExitStack() as stack:
        stack.enter_context(replaced(host, InheritableThread=_InheritableThread, Rdds=SimpleNamespace(of=_Rdds)))
        # simulated processes share one terminal and one set of loggers
        stack.enter_context(
            replaced(slot_main, UserOutput=_UnredirectedOutput, function_logging=lambda *_: nullcontext())
        )
        stack.enter_context(replaced(slot_main, executor_id_of_worker=lambda: "1"))
        # virtual time stands still while a task has its turn
        stack.enter_context(replaced(slot_main, TaskExecutor=partial(TaskExecutor, watch_turns=False)))
        yield
