"""TaskManagers, logs and what the REST API shows of the cluster, without Spark."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from firesteel.cluster.diagnostics.logs import LogFiles, LogNotFoundError, OutputFile, setup_logging
from firesteel.cluster.diagnostics.task_managers import TaskManagerInventory, TaskManagerNotFoundError
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.cluster.rest.handlers import cluster as cluster_handlers
from firesteel.cluster.rest.handlers import jobmanager as jobmanager_handlers
from firesteel.cluster.rest.handlers import task_managers as task_manager_handlers
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.common import Configuration, JobStatus
from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.jobmaster.model.log_line import LogLine
from firesteel.jobmaster.slots.pool import Slot, SlotPool, SlotState
from firesteel.jobmaster.view.job import JobView
from firesteel.rest import cluster as cluster_rest
from firesteel.rest import task_managers as task_manager_rest
from firesteel.runtime.model.messages import Heartbeat, RegisterSlot
from firesteel.runtime.slot.thread_dump import ThreadDumpQuestion

MB = 1 << 20
EMBEDDED = "localhost:4711-embedded"
JOB = "ab" * 16


@dataclass(frozen=True)
class FakeExecutor:
    task_manager: str
    host: str = "10.0.0.7"
    port: int = 4000
    slots: int = 2
    cores: int = 2
    max_memory: int = 512 * MB
    is_embedded: bool = False


@dataclass
class FakeRunner:
    """A job whose slots are there."""

    pool: SlotPool
    questions: list[Any] = field(default_factory=list)

    @property
    def snapshot(self) -> Any:
        slots = SimpleNamespace(total=self.pool.needed, subtasks_in=lambda _slot: [("v", 0), ("w", 0)])
        return SimpleNamespace(live_slots=self.pool.snapshot().live, execution_graph=SimpleNamespace(slots=slots))

    def ask(self, slot_index: int, question: Any, timeout_s: float) -> Future[Any]:
        self.questions.append((slot_index, question))
        answer: Future[Any] = Future()
        if slot_index:
            answer.set_exception(FiresteelError("it did not answer in time"))
        else:
            answer.set_result(question.answer(None))
        return answer


@dataclass
class FakeJob:
    job_id: str
    status: JobStatus
    runner: Any = None
    failure: TaskFailure | None = None

    def view(self) -> JobView:
        return JobView(self.job_id, "job", 1000, self.status, {self.status: 2000}, None, self.failure)


class FakeJobs:
    def __init__(self, *jobs: FakeJob):
        self._jobs = jobs

    def jobs(self) -> Any:
        return self._jobs

    def job(self, job_id: str) -> FakeJob:
        for job in self._jobs:
            if job.job_id == job_id:
                return job
        raise FiresteelError("no")


def running(*task_managers: str) -> FakeJob:
    """A job with a slot in each of these."""
    pool = SlotPool(0, len(task_managers))
    for index, task_manager in enumerate(task_managers):
        pool.register(RegisterSlot(0, index, "h", ("h", 5000 + index), 99, "1", task_manager), 10, 10)
        pool[index].heard(Heartbeat(0, index, 11, 100 * MB, 7), 12, 12)
    return FakeJob(JOB, JobStatus.RUNNING, FakeRunner(pool))


def resources(total: int, held: int = 0) -> ResourceManager:
    manager = ResourceManager(lambda: total, is_fixed=True)
    if held:
        manager.request(JOB, held)
    return manager


def test_what_a_slot_says_of_its_process_is_kept() -> None:
    slot = Slot(0, SlotState.REGISTERED)
    slot.heard(Heartbeat(0, 0, 1, 5, 6), 2, 1002)
    slot.heard(Heartbeat(0, 0, 1), 3, 1003)
    assert (slot.rss_bytes, slot.cpu_ms, slot.last_seen, slot.heard_at) == (5, 6, 3, 1003)


def test_a_task_manager_per_executor() -> None:
    job = running("10.0.0.7-1", "10.0.0.7-1", "10.0.0.8-2")
    executors = [FakeExecutor("10.0.0.7-1"), FakeExecutor("10.0.0.8-2"), FakeExecutor("10.0.0.9-3")]
    inventory = TaskManagerInventory(lambda: executors, resources(6, 3), lambda: [job])
    first, second, third = inventory.all()
    assert [info.free_slots for info in (first, second, third)] == [0, 1, 2]
    assert first.memory.python == 200 * MB
    assert first.assigned_tasks == 4
    assert first.data_port == 5000
    assert third.data_port == 0
    assert inventory.get("10.0.0.8-2").allocated[0].index == 2


def test_an_executor_that_is_lost_disappears() -> None:
    executors = [FakeExecutor("10.0.0.7-1"), FakeExecutor("10.0.0.8-2")]
    inventory = TaskManagerInventory(lambda: executors, resources(4), list)
    assert inventory.count() == 2
    del executors[0]
    inventory._asked_at -= 10
    assert [info.id for info in inventory.all()] == ["10.0.0.8-2"]
    with pytest.raises(TaskManagerNotFoundError):
        inventory.get("10.0.0.7-1")


def test_the_embedded_one_has_the_slots_of_the_resource_manager() -> None:
    executor = FakeExecutor(EMBEDDED, is_embedded=True)
    inventory = TaskManagerInventory(lambda: [executor], resources(8, 3), list, java_pid=os.getpid())
    (info,) = inventory.all()
    assert (info.slots, info.free_slots) == (8, 5)
    assert info.memory.jvm > MB, "this process plays the JVM"
    assert info.physical_memory > info.free_memory > 0


def test_a_thread_dump_asks_every_slot() -> None:
    job = running(EMBEDDED, EMBEDDED)
    inventory = TaskManagerInventory(lambda: [FakeExecutor(EMBEDDED, is_embedded=True)], resources(4, 2), lambda: [job])
    stacks = inventory.thread_dump(EMBEDDED)
    assert any(stack.name == f"{JOB[:8]} slot 0: MainThread" for stack in stacks)
    assert stacks[-1].stack.startswith("no answer: it did not answer")
    assert all(isinstance(question, ThreadDumpQuestion) for _, question in job.runner.questions)


# -- logs ----------------------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogFiles]:
    files = LogFiles(tmp_path / "log")
    yield files
    files.close()


def test_what_is_printed_cannot_fill_the_disk(tmp_path: Path) -> None:
    output = OutputFile(tmp_path / "task.out", max_bytes=1000, kept=3)
    for number in range(1000):
        output.write_output("stdout", [f"{number:09}", "x" * 9])
    output.write_output("stderr", ["y" * 2500])
    output.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["task.out", "task.out.1", "task.out.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    written = "".join((tmp_path / name).read_text() for name in reversed(files))
    assert written.endswith("y" * 400 + "\n")


def test_lines_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "task.out"
    path.write_text("before\n")
    output = OutputFile(path)
    output.write_output("stdout", ["1> hello", "", "\udce9"])
    output.close()
    assert path.read_text() == "before\n1> hello\n\n?\n"


def test_a_disk_that_is_full_costs_lines_not_jobs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    output = OutputFile(tmp_path / "absent" / "task.out")
    for _ in range(3):
        output.write_output("stdout", ["lost"])
    assert len(caplog.records) == 1, "said once"


def test_two_processes_do_not_write_to_the_same_file(tmp_path: Path) -> None:
    first, second = LogFiles(tmp_path), LogFiles(tmp_path)
    assert first.jobmanager_log.name == "jobmanager.log"
    assert second.jobmanager_log.name == "jobmanager-1.log"
    first.close()
    third = LogFiles(tmp_path)
    assert third.spark_log.name == "spark.log"
    second.close()
    third.close()


def test_the_log_of_the_process(tmp_path: Path) -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    files = setup_logging(tmp_path)
    try:
        logging.getLogger("somewhere").info("it began %s", "here")
        assert "it began here" in files.jobmanager_log.read_text()
    finally:
        logging.captureWarnings(capture=False)
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.getLogger("py4j").setLevel(logging.NOTSET)
        files.close()


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file")
    with pytest.raises(FiresteelError, match="Logs cannot be written"):
        LogFiles(tmp_path / "log")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", ".jobmanager.lock", "", ".", "directory", "a\0b"])
def test_names_cannot_leave_the_directory(name: str, logs: LogFiles) -> None:
    (logs.directory.parent / "secret").write_text("secret")
    (logs.directory / "link").symlink_to(logs.directory.parent / "secret")
    (logs.directory / "directory").mkdir()
    with pytest.raises(LogNotFoundError):
        logs.read(name)


def test_the_end_of_a_large_log(logs: LogFiles) -> None:
    logs.spark_log.write_text("".join(f"line {number}\n" for number in range(1000)))
    text = logs.read("spark.log", max_bytes=105)
    assert text.startswith("line 9")
    assert text.endswith("line 999\n")
    assert len(text) <= 105


def test_a_log_directory_that_somebody_has_removed(logs: LogFiles) -> None:
    shutil.rmtree(logs.directory)
    assert logs.listed() == []
    with pytest.raises(LogNotFoundError):
        logs.read("spark.log")


# -- REST ----------------------------------------------------------------------------------------------


class Api:
    """Calls handlers as the server does."""

    def __init__(self, routes: list[Route]):
        self._routes = {route.endpoint: route for route in routes}

    def __call__(self, endpoint: Any, path: dict[str, str] | None = None, **query: Any) -> Any:
        given = {parameter.name: parameter.default for parameter in endpoint.query} | query
        answer = self._routes[endpoint].handler(RestRequest(path or {}, given, None))
        if isinstance(answer, str):
            return str(answer)
        return json.loads(msgspec.json.encode(answer))


@pytest.fixture
def ended() -> threading.Event:
    return threading.Event()


@pytest.fixture
def api(logs: LogFiles, ended: threading.Event) -> Api:
    failed = FakeJob("cd" * 16, JobStatus.FAILED, failure=TaskFailure("it broke", "ValueError"))
    job = running(EMBEDDED, EMBEDDED)
    jobs = FakeJobs(job, failed, FakeJob("ef" * 16, JobStatus.CREATED))
    manager = resources(4, 2)
    executor = FakeExecutor(EMBEDDED, "127.0.0.1", is_embedded=True)
    inventory = TaskManagerInventory(lambda: [executor], manager, jobs.jobs, java_pid=os.getpid(), slot_memory=256 * MB)
    configuration = Configuration().set_string("rest.port", "0").set_string("s3.secret-key", "hush")
    return Api(
        [
            *cluster_handlers.routes(jobs, manager, inventory, configuration, ended.set),
            *jobmanager_handlers.routes(jobs, manager, inventory, configuration, logs),
            *task_manager_handlers.routes(inventory, logs),
        ]
    )


def test_every_endpoint_has_a_handler(api: Api) -> None:
    assert set(api._routes) == {*cluster_rest.ENDPOINTS, *task_manager_rest.ENDPOINTS}


def test_overview(api: Api) -> None:
    answer = api(cluster_rest.CLUSTER_OVERVIEW)
    version = answer.pop("flink-commit")
    assert version.startswith("firesteel-")
    assert answer == {
        "taskmanagers": 1,
        "slots-total": 4,
        "slots-available": 2,
        "jobs-running": 2,
        "jobs-finished": 0,
        "jobs-cancelled": 0,
        "jobs-failed": 1,
        "flink-version": "2.3.0",
    }


def test_dashboard_config(api: Api) -> None:
    answer = api(cluster_rest.DASHBOARD_CONFIG)
    assert answer["refresh-interval"] == 3000
    assert answer["features"] == {"web-submit": True, "web-cancel": True, "web-rescale": False, "web-history": False}
    assert {"timezone-name", "timezone-offset", "flink-version", "flink-revision"} < answer.keys()


def test_applications(api: Api) -> None:
    first, second, third = api(cluster_rest.APPLICATIONS_OVERVIEW)["applications"]
    assert (first["id"], first["status"], first["jobs"]) == (JOB, "RUNNING", {"RUNNING": 1})
    assert (second["status"], second["end-time"], second["duration"]) == ("FAILED", 2000, 1000)
    assert third["jobs"] == {"CREATED": 1}
    one = api(cluster_rest.APPLICATION, {"applicationid": "cd" * 16})
    assert one["timestamps"]["FAILED"] == 2000
    assert set(one["timestamps"]) == {"CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED"}
    assert one["jobs"][0]["jid"] == "cd" * 16
    history = api(cluster_rest.APPLICATION_EXCEPTIONS, {"applicationid": "cd" * 16})["exceptionHistory"]["entries"]
    assert (history[0]["exceptionName"], history[0]["jobId"]) == ("ValueError", "cd" * 16)
    nothing = api(cluster_rest.APPLICATION_EXCEPTIONS, {"applicationid": JOB})
    assert nothing == {"exceptionHistory": {"entries": []}}
    assert api(cluster_rest.APPLICATION_JOBMANAGER_CONFIG, {"applicationid": JOB}) == []


@pytest.mark.parametrize(("identifier", "status"), [("0" * 32, 404), ("nonsense", 400)])
def test_no_such_application(identifier: str, status: int, api: Api) -> None:
    with pytest.raises(RestError) as error:
        api(cluster_rest.APPLICATION, {"applicationid": identifier})
    assert error.value.status == status


def test_the_end_of_the_cluster(api: Api, ended: threading.Event) -> None:
    assert api(cluster_rest.CLUSTER_SHUTDOWN) == {}
    assert ended.is_set()
    assert api(cluster_rest.DATASETS) == {"dataSets": []}


def test_jobmanager(api: Api, logs: LogFiles) -> None:
    assert api(cluster_rest.JOBMANAGER_CONFIG) == [
        {"key": "rest.port", "value": "0"},
        {"key": "s3.secret-key", "value": "******"},
    ]
    assert set(api(cluster_rest.JOBMANAGER_ENVIRONMENT)) == {"jvm", "classpath"}
    names = {metric["id"] for metric in api(cluster_rest.JOBMANAGER_METRICS)}
    assert {"taskSlotsTotal", "Status.JVM.Memory.Heap.Used", "Status.JVM.CPU.Load"} < names
    assert api(cluster_rest.JOBMANAGER_METRICS, get=["taskSlotsAvailable", "none"]) == [
        {"id": "taskSlotsAvailable", "value": "2"}
    ]
    assert api(cluster_rest.JOBMANAGER_LOG) == ""
    logs.jobmanager_log.write_text("hello\n")
    assert api(cluster_rest.JOBMANAGER_LOG) == "hello\n"
    (file,) = api(cluster_rest.JOBMANAGER_LOGS)["logs"]
    assert (file["name"], file["size"]) == ("jobmanager.log", 6)
    assert api(cluster_rest.JOBMANAGER_LOG_FILE, {"filename": "jobmanager.log"}) == "hello\n"
    with pytest.raises(RestError, match="does not exist") as error:
        api(cluster_rest.JOBMANAGER_LOG_FILE, {"filename": "../token"})
    assert error.value.status == 404
    threads = api(cluster_rest.JOBMANAGER_THREAD_DUMP)["threadInfos"]
    assert any("test_jobmanager" in thread["stringifiedThreadInfo"] for thread in threads)


def test_task_managers(api: Api) -> None:
    (shown,) = api(task_manager_rest.TASK_MANAGERS)["taskmanagers"]
    assert shown["id"] == EMBEDDED
    assert (shown["slotsNumber"], shown["freeSlots"], shown["assignedTasks"], shown["jmxPort"]) == (4, 2, 4, -1)
    assert shown["memoryConfiguration"]["taskHeap"] == 4 * 256 * MB
    assert shown["freeResource"]["taskHeapMemory"] == 512
    assert shown["hardware"]["physicalMemory"] > 0
    one = api(task_manager_rest.TASK_MANAGER, {"taskmanagerid": EMBEDDED})
    assert {key: one[key] for key in ("id", "slotsNumber", "freeSlots")} == {
        key: shown[key] for key in ("id", "slotsNumber", "freeSlots")
    }
    assert [(slot["jobId"], slot["assignedTasks"]) for slot in one["allocatedSlots"]] == [(JOB, 2)] * 2
    assert one["metrics"]["nonHeapUsed"] > MB
    assert one["metrics"]["garbageCollectors"] == []


def test_task_manager_metrics(api: Api) -> None:
    path = {"taskmanagerid": EMBEDDED}
    names = {metric["id"] for metric in api(task_manager_rest.TASK_MANAGER_METRICS, path)}
    assert {"Status.JVM.Memory.Heap.Max", "Status.Shuffle.Netty.UsedMemory"} < names
    heap = api(task_manager_rest.TASK_MANAGER_METRICS, path, get=["Status.JVM.Memory.Heap.Max"])
    assert heap == [{"id": "Status.JVM.Memory.Heap.Max", "value": str(4 * 256 * MB)}]
    over_all = api(task_manager_rest.TASK_MANAGERS_METRICS, get=["Status.JVM.Memory.Heap.Max"], agg=["max"])
    assert over_all == [{"id": "Status.JVM.Memory.Heap.Max", "max": 4.0 * 256 * MB}]


def test_task_manager_logs(api: Api, logs: LogFiles) -> None:
    path = {"taskmanagerid": EMBEDDED}
    logs.output.write_output("stdout", ["printed"])
    logs.spark_log.write_text("WARN\n")
    logs.jobmanager_log.write_text("not here\n")
    assert api(task_manager_rest.TASK_MANAGER_STDOUT, path) == "printed\n"
    assert api(task_manager_rest.TASK_MANAGER_LOG, path) == ""
    logs.job_logs.write("1", [LogLine(20, "logged")])
    assert api(task_manager_rest.TASK_MANAGER_LOG, path) == "[1] logged\n"
    names = [file["name"] for file in api(task_manager_rest.TASK_MANAGER_LOGS, path)["logs"]]
    assert names == ["spark.log", "taskmanager.log", "taskmanager.out"]
    for name in ("jobmanager.log", "spark/../../x"):
        with pytest.raises(RestError) as error:
            api(task_manager_rest.TASK_MANAGER_LOG_FILE, {**path, "filename": name})
        assert error.value.status == 404


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in task_manager_rest.ENDPOINTS if "taskmanagerid" in endpoint.placeholders],
    ids=lambda endpoint: endpoint.path,
)
def test_no_such_task_manager(endpoint: Any, api: Api) -> None:
    with pytest.raises(RestError, match="Could not find TaskExecutor gone") as error:
        api(endpoint, {"taskmanagerid": "gone", "filename": "spark.log"})
    assert error.value.status == 404
