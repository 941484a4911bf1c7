"""Information about Spark's executors, which are Firesteel's TaskManagers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

from firesteel.jobmaster.slots.task_manager_id import embedded_task_manager_id, executor_task_manager_id
from firesteel.spark.session.slots import has_fixed_slots

__all__ = ["ExecutorInfo", "embedded_task_manager", "executor_id_of_worker", "executors", "java_pid"]

_DRIVER = "driver"
_MAX_ANCESTORS = 4
_EXECUTOR_ID = "--executor-id"


@dataclass(frozen=True)
class ExecutorInfo:
    """One executor."""

    task_manager: str
    executor_id: str
    host: str
    port: int
    slots: int
    cores: int
    added_at: int
    max_memory: int
    """The JVM's memory for blocks, in bytes."""
    is_embedded: bool


def executors(context: SparkContext) -> list[ExecutorInfo]:
    """The executors that there are now, in the order in which they came. Asks the JVM: takes milliseconds."""
    is_embedded = has_fixed_slots(context)
    listed = context._jsc.sc().statusStore().executorList(True)
    found = []
    for index in range(int(listed.size())):
        executor = listed.apply(index)
        executor_id = str(executor.id())
        if executor_id == _DRIVER and not is_embedded:
            continue
        host, _, port = str(executor.hostPort()).rpartition(":")
        if not port.isdecimal():
            continue  # it is just registering: its port is not known yet
        task_manager = (
            (embedded_task_manager(context) or "") if is_embedded else executor_task_manager_id(host, executor_id)
        )
        found.append(
            ExecutorInfo(
                task_manager,
                executor_id,
                host,
                int(port),
                int(executor.maxTasks()),
                int(executor.totalCores()),
                int(executor.addTime().getTime()),
                int(executor.maxMemory()),
                is_embedded,
            )
        )
    return sorted(found, key=lambda executor: (executor.added_at, executor.executor_id))


def embedded_task_manager(context: SparkContext) -> str | None:
    """The one TaskManager of an embedded Spark; None if Spark runs elsewhere."""
    if not has_fixed_slots(context):
        return None
    return embedded_task_manager_id(int(context.getConf().get("spark.driver.port") or 0))


def java_pid(context: SparkContext) -> int | None:
    """The process of the embedded Spark, if this one started it."""
    process = getattr(context._gateway, "proc", None)
    return None if process is None else int(process.pid)


def executor_id_of_worker() -> str:
    """The executor that this Python worker belongs to, or nothing if that is unknown.

    Spark gives it to its workers on Kubernetes only; else it is in the command line of the JVM that started them.
    """
    told = os.environ.get("SPARK_EXECUTOR_ID")
    if told:
        return told
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
            if _EXECUTOR_ID in arguments[:-1]:
                return arguments[arguments.index(_EXECUTOR_ID) + 1]
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return ""
    return ""
