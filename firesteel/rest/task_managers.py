"""REST endpoints: TaskManagers, which are the Spark executors whose processes are slots."""

from __future__ import annotations

import msgspec

from firesteel.rest.cluster import LogList, ThreadDump
from firesteel.rest.endpoint import Endpoint, Parameter, Text
from firesteel.rest.metrics import AggregatedMetric, Metric

__all__ = [
    "ENDPOINTS",
    "AllocatedSlot",
    "GarbageCollector",
    "Hardware",
    "MemoryConfiguration",
    "ResourceProfile",
    "TaskManager",
    "TaskManagerDetails",
    "TaskManagerMetrics",
    "TaskManagers",
]


class ResourceProfile(msgspec.Struct, rename="camel"):
    """Cores, and memory in MB."""

    cpu_cores: float = 0.0
    task_heap_memory: int = 0
    task_off_heap_memory: int = 0
    managed_memory: int = 0
    network_memory: int = 0
    extended_resources: dict[str, float] = msgspec.field(default_factory=dict)


class Hardware(msgspec.Struct, rename="camel"):
    """Hardware of the machine; memory in bytes."""

    cpu_cores: int
    physical_memory: int
    free_memory: int
    managed_memory: int = 0


class MemoryConfiguration(msgspec.Struct, rename="camel"):
    """Memory configuration, in bytes; 0 for parts without a limit."""

    framework_heap: int = 0
    task_heap: int = 0
    """The budgets of all slots (taskmanager.memory.slot.size)."""
    framework_off_heap: int = 0
    task_off_heap: int = 0
    network_memory: int = 0
    managed_memory: int = 0
    jvm_metaspace: int = 0
    jvm_overhead: int = 0
    total_flink_memory: int = 0
    total_process_memory: int = 0


class TaskManager(msgspec.Struct, rename="camel"):
    """A TaskManager."""

    id: str
    path: str
    data_port: int
    jmx_port: int
    time_since_last_heartbeat: int
    """Time of the last heartbeat, in epoch milliseconds; the name is Flink's."""
    slots_number: int
    free_slots: int
    assigned_tasks: int
    total_resource: ResourceProfile
    free_resource: ResourceProfile
    hardware: Hardware
    memory_configuration: MemoryConfiguration


class TaskManagers(msgspec.Struct):
    """All registered TaskManagers."""

    taskmanagers: list[TaskManager]


class AllocatedSlot(msgspec.Struct, rename="camel"):
    """A slot that a job holds."""

    job_id: str
    resource: ResourceProfile
    assigned_tasks: int


class GarbageCollector(msgspec.Struct):
    """A garbage collector of the JVM."""

    name: str
    count: int
    time: int


class TaskManagerMetrics(msgspec.Struct, rename="camel"):
    """The memory of a TaskManager's processes, in bytes.

    "Heap" is the memory of the Python processes of the slots, "non-heap" that of the executor's JVM.
    """

    heap_used: int = 0
    heap_committed: int = 0
    heap_max: int = 0
    non_heap_used: int = 0
    non_heap_committed: int = 0
    non_heap_max: int = 0
    direct_count: int = 0
    direct_used: int = 0
    direct_max: int = 0
    mapped_count: int = 0
    mapped_used: int = 0
    mapped_max: int = 0
    netty_shuffle_memory_segments_available: int = 0
    netty_shuffle_memory_segments_used: int = 0
    netty_shuffle_memory_segments_total: int = 0
    netty_shuffle_memory_available: int = 0
    netty_shuffle_memory_used: int = 0
    netty_shuffle_memory_total: int = 0
    garbage_collectors: list[GarbageCollector] = msgspec.field(default_factory=list)


class TaskManagerDetails(TaskManager, rename="camel", kw_only=True):
    """A TaskManager with its slots and memory."""

    allocated_slots: list[AllocatedSlot]
    metrics: TaskManagerMetrics


_ONE = "/taskmanagers/:taskmanagerid"
_NO_TASK_MANAGER = {404: "The TaskManager does not exist."}
_NO_FILE = {404: "The TaskManager or file does not exist."}
_TAG = "taskmanagers"
_GET = Parameter(
    "get",
    "Names of the metrics whose values are returned; without it, the names of all metrics are returned.",
    default=[],
    is_list=True,
)

TASK_MANAGERS = Endpoint("GET", "/taskmanagers", "Lists all TaskManagers.", TaskManagers, tag=_TAG)
TASK_MANAGERS_METRICS = Endpoint(
    "GET",
    "/taskmanagers/metrics",
    "Returns metrics aggregated over TaskManagers.",
    list[AggregatedMetric],
    query=(
        _GET,
        Parameter("agg", "Aggregations to return: min, max, sum, avg, skew; default: all.", default=[], is_list=True),
        Parameter("taskmanagers", "TaskManager ids; default: all.", default=[], is_list=True),
    ),
    errors={400: "Unknown aggregation."},
    tag=_TAG,
)
TASK_MANAGER = Endpoint(
    "GET", _ONE, "Returns the details of a TaskManager.", TaskManagerDetails, errors=_NO_TASK_MANAGER, tag=_TAG
)
TASK_MANAGER_METRICS = Endpoint(
    "GET",
    f"{_ONE}/metrics",
    "Returns the metrics of a TaskManager.",
    list[Metric],
    query=(_GET,),
    errors=_NO_TASK_MANAGER,
    tag=_TAG,
)
TASK_MANAGER_LOGS = Endpoint(
    "GET", f"{_ONE}/logs", "Lists the log files of a TaskManager.", LogList, errors=_NO_TASK_MANAGER, tag=_TAG
)
TASK_MANAGER_LOG_FILE = Endpoint(
    "GET",
    f"{_ONE}/logs/:filename",
    "Returns a log file, at most its last 10 MB.",
    Text,
    errors=_NO_FILE,
    tag=_TAG,
)
TASK_MANAGER_LOG = Endpoint(
    "GET", f"{_ONE}/log", "Returns the log of the Spark executor.", Text, errors=_NO_FILE, tag=_TAG
)
TASK_MANAGER_STDOUT = Endpoint(
    "GET",
    f"{_ONE}/stdout",
    "Returns the standard output of the TaskManager, with the output of user functions.",
    Text,
    errors=_NO_FILE,
    tag=_TAG,
)
TASK_MANAGER_THREAD_DUMP = Endpoint(
    "GET",
    f"{_ONE}/thread-dump",
    "Returns a thread dump of the slots of a TaskManager.",
    ThreadDump,
    errors=_NO_TASK_MANAGER,
    tag=_TAG,
)

ENDPOINTS = (
    TASK_MANAGERS,
    TASK_MANAGERS_METRICS,
    TASK_MANAGER,
    TASK_MANAGER_METRICS,
    TASK_MANAGER_LOGS,
    TASK_MANAGER_LOG_FILE,
    TASK_MANAGER_LOG,
    TASK_MANAGER_STDOUT,
    TASK_MANAGER_THREAD_DUMP,
)
