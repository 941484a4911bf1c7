"""TaskManagers of a cluster: Spark's executors, their resources, and the jobs in their slots."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, Protocol

import psutil

from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.common.errors import FiresteelError
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.slots.task_manager_id import task_manager_id
from firesteel.runtime.slot.thread_dump import ThreadDumpQuestion, ThreadStack

__all__ = [
    "Executor",
    "OccupiedSlot",
    "ProcessMemory",
    "TaskManagerInfo",
    "TaskManagerInventory",
    "TaskManagerNotFoundError",
]

_MAX_AGE_S = 1.0
"""The maximum age of information from Spark and the system."""
_ANSWER_TIMEOUT_S = 5.0


class TaskManagerNotFoundError(FiresteelError):
    """There is no such TaskManager, or none any more."""


class Executor(Protocol):
    """An executor of Spark (`firesteel.spark.session.cluster_info.ExecutorInfo`)."""

    @property
    def task_manager(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def max_memory(self) -> int: ...
    @property
    def is_embedded(self) -> bool: ...


class JobRunner(Protocol):
    """What runs a job."""

    @property
    def snapshot(self) -> JobSnapshot: ...
    def ask(self, slot_index: int, question: Any, timeout_s: float) -> Future[Any]: ...


class Job(Protocol):
    """A job of the Dispatcher."""

    @property
    def job_id(self) -> str: ...
    @property
    def runner(self) -> JobRunner | None: ...


@dataclass(frozen=True)
class OccupiedSlot:
    """A slot that a job runs in, with the last report of its process."""

    job_id: str
    index: int
    assigned_tasks: int
    data_port: int
    last_seen: int
    rss_bytes: int
    cpu_ms: int


@dataclass(frozen=True)
class ProcessMemory:
    """Resident memory in bytes: of the Python processes that slots and tasks are, and of the JVM around them."""

    python: int = 0
    jvm: int = 0
    cpu_load: float = 0.0
    """Cores that were busy, since the last look."""
    cpu_ms: int = 0
    threads: int = 0


@dataclass(frozen=True)
class TaskManagerInfo:
    """A TaskManager at one moment."""

    id: str
    host: str
    port: int
    is_embedded: bool
    slots: int
    free_slots: int
    cores: int
    physical_memory: int
    free_memory: int
    last_heartbeat: int
    """Epoch milliseconds."""
    allocated: tuple[OccupiedSlot, ...]
    memory: ProcessMemory
    slot_memory: int | None
    """The budget of each slot."""

    @property
    def assigned_tasks(self) -> int:
        return sum(slot.assigned_tasks for slot in self.allocated)

    @property
    def data_port(self) -> int:
        """Where its first slot is reached by its peers; 0 while there is none."""
        return next((slot.data_port for slot in self.allocated if slot.data_port), 0)


class TaskManagerInventory:
    """The inventory. An executor that Spark has lost is not in it any more. Its methods take milliseconds.

    ``java_pid`` is the process of an embedded Spark, whose memory and that of its Python workers is measured here; of
    executors elsewhere only the reports of their slots are known.
    """

    def __init__(
        self,
        executors: Callable[[], Sequence[Executor]],
        resources: ResourceManager,
        jobs: Callable[[], Sequence[Job]],
        *,
        java_pid: int | None = None,
        slot_memory: int | None = None,
    ):
        self._ask_executors = executors
        self._resources = resources
        self._jobs = jobs
        self._java_pid = java_pid
        self._slot_memory = slot_memory
        self._lock = threading.Lock()
        self._executors: Sequence[Executor] = ()
        self._asked_at = -_MAX_AGE_S
        self._usage = _EmbeddedUsage(java_pid)

    def count(self) -> int:
        return len(self._known_executors())

    def all(self) -> list[TaskManagerInfo]:
        slots = self._slots()
        return [self._describe(executor, slots.get(executor.task_manager, ())) for executor in self._known_executors()]

    def get(self, identifier: str) -> TaskManagerInfo:
        """One TaskManager; TaskManagerNotFoundError if there is none of that id."""
        for executor in self._known_executors():
            if executor.task_manager == identifier:
                return self._describe(executor, self._slots().get(identifier, ()))
        raise TaskManagerNotFoundError(f"Could not find TaskExecutor {identifier[:200]}.")

    def thread_dump(self, identifier: str) -> list[ThreadStack]:
        """Thread dumps of all its slots; for a slot that does not answer in time, a note."""
        self.get(identifier)
        asked: list[tuple[str, Future[Any]]] = []
        for job in self._jobs():
            runner = job.runner
            if runner is None:
                continue
            for slot in runner.snapshot.live_slots():
                if task_manager_id(slot.registration) == identifier and slot.rss_bytes:
                    name = f"{job.job_id[:8]} slot {slot.index}: "
                    asked.append((name, runner.ask(slot.index, ThreadDumpQuestion(name), _ANSWER_TIMEOUT_S)))
        return [stack for name, future in asked for stack in _answer(name, future)]

    # -- sources of information ------------------------------------------------------------------------------

    def _known_executors(self) -> Sequence[Executor]:
        with self._lock:
            if time.monotonic() - self._asked_at >= _MAX_AGE_S:
                self._executors = tuple(self._ask_executors())
                self._asked_at = time.monotonic()
            return self._executors

    def _slots(self) -> dict[str, list[OccupiedSlot]]:
        """The slots of all jobs, by TaskManager."""
        found: dict[str, list[OccupiedSlot]] = {}
        for job in self._jobs():
            runner = job.runner
            if runner is None:
                continue
            snapshot = runner.snapshot
            assignment = snapshot.execution_graph.slots
            for slot in snapshot.live_slots():
                known = slot.registration
                if known is not None and slot.index < assignment.total:
                    found.setdefault(task_manager_id(known), []).append(
                        OccupiedSlot(
                            job.job_id,
                            slot.index,
                            len(assignment.subtasks_in(slot.index)),
                            known.data_address[1],
                            slot.heard_at,
                            slot.rss_bytes,
                            slot.cpu_ms,
                        )
                    )
        return found

    def _describe(self, executor: Executor, allocated: Sequence[OccupiedSlot]) -> TaskManagerInfo:
        now = time.time_ns() // 1_000_000
        if executor.is_embedded:
            machine = psutil.virtual_memory()
            slots, free, physical, unused = (
                self._resources.total,
                self._resources.free,
                machine.total,
                machine.available,
            )
            memory, cores = self._usage.look(), psutil.cpu_count() or 1
        else:
            slots = executor.slots
            free, physical, unused = max(0, slots - len(allocated)), executor.max_memory, 0
            used, computed = sum(slot.rss_bytes for slot in allocated), sum(slot.cpu_ms for slot in allocated)
            memory, cores = ProcessMemory(python=used, cpu_ms=computed), executor.cores
        return TaskManagerInfo(
            executor.task_manager,
            executor.host,
            executor.port,
            executor.is_embedded,
            slots,
            free,
            cores,
            physical,
            unused,
            # Spark has it among the living: it gets heartbeats from its executors every few seconds
            max((slot.last_seen for slot in allocated), default=now) if not executor.is_embedded else now,
            tuple(allocated),
            memory,
            self._slot_memory,
        )


class _EmbeddedUsage:
    """Measures the processes of an embedded Spark, at most once a second."""

    def __init__(self, java_pid: int | None):
        self._java_pid = java_pid
        self._lock = threading.Lock()
        self._last = ProcessMemory()
        self._looked_at = -_MAX_AGE_S

    def look(self) -> ProcessMemory:
        """What they use now."""
        with self._lock:
            now = time.monotonic()
            if self._java_pid is not None and now - self._looked_at >= _MAX_AGE_S:
                self._last = self._measure(self._java_pid, now - self._looked_at)
                self._looked_at = now
            return self._last

    def _measure(self, pid: int, elapsed_s: float) -> ProcessMemory:
        jvm = python = threads = 0
        cpu_s = 0.0
        try:
            java = psutil.Process(pid)
            processes = [java, *java.children(recursive=True)]
        except psutil.Error:
            return ProcessMemory()
        for process in processes:
            try:
                with process.oneshot():
                    rss, times = process.memory_info().rss, process.cpu_times()
                    threads += process.num_threads()
            except psutil.Error:
                continue  # it has just ended
            cpu_s += times.user + times.system
            if process.pid == pid:
                jvm = rss
            else:
                python += rss
        before = self._last.cpu_ms / 1000
        load = max(0.0, cpu_s - before) / elapsed_s if before and elapsed_s > 0 else 0.0
        return ProcessMemory(python, jvm, round(load, 3), int(cpu_s * 1000), threads)


def _answer(name: str, future: Future[Any]) -> list[ThreadStack]:
    try:
        return [ThreadStack(*stack) for stack in future.result(_ANSWER_TIMEOUT_S + 1)]
    except (FiresteelError, FutureTimeout) as error:
        return [ThreadStack(name, f"no answer: {error}")]
