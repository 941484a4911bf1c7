"""REST handlers for the JobManager: configuration, logs, metrics and thread dump."""

from __future__ import annotations

import gc
import os
import platform
import sys
import threading
import time
from typing import Any

import psutil

from firesteel.cluster.diagnostics.known_jobs import KnownJobs
from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.cluster.diagnostics.task_managers import TaskManagerInventory
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.cluster.rest.handlers.cluster import configuration_entries
from firesteel.cluster.rest.handlers.metrics import named_metrics
from firesteel.cluster.rest.handlers.task_managers import listed, read_log
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.config.configuration import Configuration
from firesteel.rest import cluster as rest
from firesteel.rest.endpoint import Text
from firesteel.rest.jobs import ConfigurationEntry, Environment, Jvm
from firesteel.rest.metrics import Metric
from firesteel.runtime.slot.thread_dump import dump_threads

__all__ = ["JobManagerMetrics", "routes"]


def routes(
    jobs: KnownJobs,
    resources: ResourceManager,
    task_managers: TaskManagerInventory,
    configuration: Configuration,
    logs: LogFiles,
) -> list[Route]:
    handlers = _JobManagerHandlers(JobManagerMetrics(jobs, resources, task_managers), configuration, logs)
    return [
        Route(rest.JOBMANAGER_CONFIG, handlers.config),
        Route(rest.JOBMANAGER_ENVIRONMENT, handlers.environment),
        Route(rest.JOBMANAGER_METRICS, handlers.metrics, blocking=True),
        Route(rest.JOBMANAGER_LOGS, handlers.logs, blocking=True),
        Route(rest.JOBMANAGER_LOG_FILE, handlers.log_file, blocking=True),
        Route(rest.JOBMANAGER_LOG, handlers.log, blocking=True),
        Route(rest.JOBMANAGER_STDOUT, handlers.stdout, blocking=True),
        Route(rest.JOBMANAGER_THREAD_DUMP, handlers.thread_dump, blocking=True),
    ]


class JobManagerMetrics:
    """What a JobManager measures of itself, by Flink's names."""

    def __init__(self, jobs: KnownJobs, resources: ResourceManager, task_managers: TaskManagerInventory):
        self._jobs = jobs
        self._resources = resources
        self._task_managers = task_managers
        self._process = psutil.Process()
        self._cpu = (time.monotonic(), time.process_time())

    def values(self) -> dict[str, Any]:
        memory = self._process.memory_info()
        physical = psutil.virtual_memory().total
        collections = gc.get_stats()
        return {
            "numRegisteredTaskManagers": self._task_managers.count(),
            "numRunningJobs": sum(not job.status.is_globally_terminal_state() for job in self._jobs.jobs()),
            "taskSlotsTotal": self._resources.total,
            "taskSlotsAvailable": self._resources.free,
            "Status.JVM.CPU.Load": self._load(),
            "Status.JVM.CPU.Time": time.process_time_ns(),
            "Status.JVM.Memory.Heap.Used": memory.rss,
            "Status.JVM.Memory.Heap.Committed": memory.rss,
            "Status.JVM.Memory.Heap.Max": physical,
            "Status.JVM.Memory.NonHeap.Used": 0,
            "Status.JVM.Memory.NonHeap.Committed": 0,
            "Status.JVM.Memory.NonHeap.Max": 0,
            "Status.JVM.Memory.Metaspace.Used": 0,
            "Status.JVM.Memory.Metaspace.Committed": 0,
            "Status.JVM.Memory.Metaspace.Max": 0,
            "Status.JVM.Memory.Direct.Count": 0,
            "Status.JVM.Memory.Direct.MemoryUsed": 0,
            "Status.JVM.Memory.Direct.TotalCapacity": 0,
            "Status.JVM.Memory.Mapped.Count": 0,
            "Status.JVM.Memory.Mapped.MemoryUsed": 0,
            "Status.JVM.Memory.Mapped.TotalCapacity": 0,
            "Status.JVM.GarbageCollector.All.Count": sum(each["collections"] for each in collections),
            "Status.JVM.Threads.Count": threading.active_count(),
        }

    def _load(self) -> float:
        """The share of the machine's cores that this process has used since the last look."""
        (then, used), now = self._cpu, (time.monotonic(), time.process_time())
        self._cpu = now
        elapsed = now[0] - then
        return round((now[1] - used) / elapsed / (os.cpu_count() or 1), 4) if elapsed > 0 else 0.0


class _JobManagerHandlers:
    def __init__(self, metrics: JobManagerMetrics, configuration: Configuration, logs: LogFiles):
        self._metrics = metrics
        self._configuration = configuration
        self._logs = logs

    def config(self, _request: RestRequest[Any]) -> list[ConfigurationEntry]:
        return configuration_entries(self._configuration)

    def environment(self, _request: RestRequest[Any]) -> Environment:
        version = f"{platform.python_implementation()} {platform.python_version()}"
        return Environment(Jvm(version, platform.machine(), []), [entry for entry in sys.path if entry])

    def metrics(self, request: RestRequest[Any]) -> list[Metric]:
        values = self._metrics.values()
        return named_metrics(request, lambda: values, values.get)

    def logs(self, _request: RestRequest[Any]) -> rest.LogList:
        return listed(self._logs.listed())

    def log_file(self, request: RestRequest[Any]) -> Text:
        return read_log(self._logs, request.path["filename"])

    def log(self, _request: RestRequest[Any]) -> Text:
        return read_log(self._logs, self._logs.jobmanager_log.name, empty=True)

    def stdout(self, _request: RestRequest[Any]) -> Text:
        return read_log(self._logs, self._logs.jobmanager_out.name, empty=True)

    def thread_dump(self, _request: RestRequest[Any]) -> rest.ThreadDump:
        return rest.ThreadDump([rest.ThreadInfo(thread.name, thread.stack) for thread in dump_threads()])
