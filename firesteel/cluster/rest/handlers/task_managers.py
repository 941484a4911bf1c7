"""REST handlers for TaskManagers."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.diagnostics.logs import LogFile, LogFiles, LogNotFoundError
from firesteel.cluster.diagnostics.task_managers import TaskManagerInfo, TaskManagerInventory, TaskManagerNotFoundError
from firesteel.cluster.rest.handlers.metrics import aggregated, named_metrics
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.rest import task_managers as rest
from firesteel.rest.cluster import LogInfo, LogList, ThreadDump, ThreadInfo
from firesteel.rest.endpoint import Text
from firesteel.rest.metrics import AggregatedMetric, Metric

__all__ = ["listed", "read_log", "routes", "task_manager_metrics"]

_MB = 1 << 20
_CACHE_MS = 500
_LOGS = ("spark", "taskmanager")


def routes(task_managers: TaskManagerInventory, logs: LogFiles) -> list[Route]:
    """What answers each endpoint. All of them ask Spark, the system or the disk."""
    handlers = _TaskManagerHandlers(task_managers, logs)
    return [
        Route(rest.TASK_MANAGERS, handlers.all, blocking=True, cache_ms=_CACHE_MS),
        Route(rest.TASK_MANAGERS_METRICS, handlers.aggregated, blocking=True),
        Route(rest.TASK_MANAGER, handlers.one, blocking=True),
        Route(rest.TASK_MANAGER_METRICS, handlers.metrics, blocking=True),
        Route(rest.TASK_MANAGER_LOGS, handlers.logs, blocking=True),
        Route(rest.TASK_MANAGER_LOG_FILE, handlers.log_file, blocking=True),
        Route(rest.TASK_MANAGER_LOG, handlers.log, blocking=True),
        Route(rest.TASK_MANAGER_STDOUT, handlers.stdout, blocking=True),
        Route(rest.TASK_MANAGER_THREAD_DUMP, handlers.thread_dump, blocking=True),
    ]


class _TaskManagerHandlers:
    def __init__(self, task_managers: TaskManagerInventory, logs: LogFiles):
        self._task_managers = task_managers
        self._logs = logs

    def all(self, _request: RestRequest[Any]) -> rest.TaskManagers:
        return rest.TaskManagers([rest.TaskManager(**_fields(info)) for info in self._task_managers.all()])

    def one(self, request: RestRequest[Any]) -> rest.TaskManagerDetails:
        info = self._find(request)
        slots = [rest.AllocatedSlot(slot.job_id, _profile(info, 1), slot.assigned_tasks) for slot in info.allocated]
        memory = info.memory
        limit = info.slots * info.slot_memory if info.slot_memory else info.physical_memory
        metrics = rest.TaskManagerMetrics(
            heap_used=memory.python,
            heap_committed=memory.python,
            heap_max=limit,
            non_heap_used=memory.jvm,
            non_heap_committed=memory.jvm,
            non_heap_max=info.physical_memory,
        )
        return rest.TaskManagerDetails(**_fields(info), allocated_slots=slots, metrics=metrics)

    def metrics(self, request: RestRequest[Any]) -> list[Metric]:
        measured = task_manager_metrics(self._find(request))
        return named_metrics(request, lambda: measured, measured.get)

    def aggregated(self, request: RestRequest[Any]) -> list[AggregatedMetric]:
        wanted = set(request.query["taskmanagers"])
        measured = [task_manager_metrics(info) for info in self._task_managers.all() if not wanted or info.id in wanted]
        names = {name: None for metrics in measured for name in metrics}
        return aggregated(request, list(names), lambda name: [metrics.get(name) for metrics in measured])

    def logs(self, request: RestRequest[Any]) -> LogList:
        self._find(request)
        return listed(self._logs.listed(*_LOGS))

    def log_file(self, request: RestRequest[Any]) -> Text:
        self._find(request)
        name = request.path["filename"]
        if not name.startswith(_LOGS):
            raise RestError(404, "This file does not exist in TaskManager log dir.")
        return read_log(self._logs, name)

    def log(self, request: RestRequest[Any]) -> Text:
        self._find(request)
        return read_log(self._logs, self._logs.taskmanager_log.name, empty=True)

    def stdout(self, request: RestRequest[Any]) -> Text:
        self._find(request)
        return read_log(self._logs, self._logs.taskmanager_out.name, empty=True)

    def thread_dump(self, request: RestRequest[Any]) -> ThreadDump:
        try:
            stacks = self._task_managers.thread_dump(request.path["taskmanagerid"])
        except TaskManagerNotFoundError as error:
            raise RestError(404, error.message) from None
        return ThreadDump([ThreadInfo(stack.name, stack.stack) for stack in stacks])

    def _find(self, request: RestRequest[Any]) -> TaskManagerInfo:
        try:
            return self._task_managers.get(request.path["taskmanagerid"])
        except TaskManagerNotFoundError as error:
            raise RestError(404, error.message) from None


def listed(files: list[LogFile]) -> LogList:
    """Log files as the API shows them."""
    return LogList([LogInfo(file.name, file.size, file.modified_at) for file in files])


def read_log(logs: LogFiles, name: str, *, empty: bool = False) -> Text:
    """The text of a log file; of a missing one nothing if ``empty``, as it may not have been written yet."""
    try:
        return Text(logs.read(name))
    except LogNotFoundError as error:
        if empty:
            return Text("")
        raise RestError(404, error.message) from None


def task_manager_metrics(info: TaskManagerInfo) -> dict[str, Any]:
    """Flink's names for the metrics of a TaskManager's processes; see TaskManagerMetrics for what they mean."""
    memory = info.memory
    limit = info.slots * info.slot_memory if info.slot_memory else info.physical_memory
    return {
        "Status.JVM.CPU.Load": round(memory.cpu_load / info.cores, 4) if info.cores else 0.0,
        "Status.JVM.CPU.Time": memory.cpu_ms * 1_000_000,
        "Status.JVM.Memory.Heap.Used": memory.python,
        "Status.JVM.Memory.Heap.Committed": memory.python,
        "Status.JVM.Memory.Heap.Max": limit,
        "Status.JVM.Memory.NonHeap.Used": memory.jvm,
        "Status.JVM.Memory.NonHeap.Committed": memory.jvm,
        "Status.JVM.Memory.NonHeap.Max": info.physical_memory,
        "Status.JVM.Memory.Metaspace.Used": 0,
        "Status.JVM.Memory.Metaspace.Max": 0,
        "Status.JVM.Memory.Direct.MemoryUsed": 0,
        "Status.JVM.Memory.Mapped.MemoryUsed": 0,
        "Status.JVM.Threads.Count": memory.threads,
        "Status.Flink.Memory.Managed.Used": 0,
        "Status.Flink.Memory.Managed.Total": 0,
        "Status.Shuffle.Netty.UsedMemory": 0,
        "Status.Shuffle.Netty.TotalMemory": 0,
        "Status.Shuffle.Netty.AvailableMemory": 0,
        "Status.Shuffle.Netty.UsedMemorySegments": 0,
        "Status.Shuffle.Netty.TotalMemorySegments": 0,
        "Status.Shuffle.Netty.AvailableMemorySegments": 0,
    }


def _fields(info: TaskManagerInfo) -> dict[str, Any]:
    budget = info.slots * (info.slot_memory or 0)
    return {
        "id": info.id,
        "path": f"spark://{info.host}:{info.port}",
        "data_port": info.data_port,
        "jmx_port": -1,
        "time_since_last_heartbeat": info.last_heartbeat,
        "slots_number": info.slots,
        "free_slots": info.free_slots,
        "assigned_tasks": info.assigned_tasks,
        "total_resource": _profile(info, info.slots),
        "free_resource": _profile(info, info.free_slots),
        "hardware": rest.Hardware(info.cores, info.physical_memory, info.free_memory),
        "memory_configuration": rest.MemoryConfiguration(
            task_heap=budget, total_flink_memory=budget, total_process_memory=budget
        ),
    }


def _profile(info: TaskManagerInfo, slots: int) -> rest.ResourceProfile:
    """The share of so many slots."""
    cores = info.cores * slots / info.slots if info.slots else 0.0
    return rest.ResourceProfile(cpu_cores=round(cores, 3), task_heap_memory=slots * (info.slot_memory or 0) // _MB)
