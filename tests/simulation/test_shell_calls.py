"""No call that leaves the JobManager ends a job, whichever it is and however it fails.

For each call, and each way to fail, one after the other in a simulated cluster:

1. The call begins to fail while two jobs run. The function of one of them fails, so that it restarts meanwhile, and a
   third job is submitted that soon comes to its end.
2. The call works again: all jobs run, or have finished, and what was written is right.
3. The same while a new leader takes over.

Of the two jobs one takes checkpoints and may restart. The other takes none, and its restart strategy is ``none``: any
failure that counts would end it. In the end both are cancelled while the call fails.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import firesteel.spark
from firesteel.cluster.dispatcher.dispatcher import Dispatcher, DispatcherClosedError, DuplicateJobSubmissionError
from firesteel.cluster.ha.services import FencedError, JobSubmission
from firesteel.common import WatermarkStrategy
from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.testing.simulation.cluster import Cluster, ClusterSettings, RequestFailedError
from firesteel.testing.simulation.logs import LogRecord, LogSource
from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.outside import LedgerSink, UpsertSink
from firesteel.testing.simulation.workload import build_graph
from tests.support.ha.call_faults import CALLS, MODES, CallFaults

FAULT_S = 25
"""How long a call fails: longer than any deadline of the jobs."""
PATIENCE_S = 400
"""How long everything may take to be right again."""
END_S = 100_000
SETTINGS = {
    "execution.runtime-mode": "STREAMING",
    "heartbeat.interval": "2 s",
    "heartbeat.timeout": "10 s",
    "slot.request.timeout": "10 s",
    "task.cancellation.timeout": "5 s",
    "metrics.fetcher.update-interval": "0 s",
    "pipeline.auto-watermark-interval": "60 s",
    "state.backend.type": "hashmap",
}
CHECKPOINTED = {
    **SETTINGS,
    "execution.checkpointing.interval": "3 s",
    "execution.checkpointing.timeout": "8 s",
    "execution.checkpointing.dir": "sim://store/checkpoints",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "1 s",
    "restart-strategy.exponential-delay.max-backoff": "10 s",
}
FRAGILE = {**SETTINGS, "restart-strategy.type": "none"}


def fail_once(value: Any) -> Any:
    """What a function of the job does, whichever process it is in."""
    simulation = scheduler.current
    assert simulation is not None
    if simulation.outside.ledger("failures").committed:
        simulation.outside.ledger("failures").committed.clear()
        raise RuntimeError("the function fails")
    return value


def endless(name: str, settings: dict[str, str], fails: bool) -> JobGraph:
    log = [LogRecord(at, at) for at in range(0, 6_000, 6)]

    def define(environment: StreamExecutionEnvironment) -> None:
        source = LogSource([log], ends_at_s=END_S)
        stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        stream = stream.map(fail_once) if fails else stream
        stream.sink_to(LedgerSink(name) if fails else UpsertSink(name))

    return build_graph(name, settings, 1, define)


def ending(name: str) -> JobGraph:
    def define(environment: StreamExecutionEnvironment) -> None:
        source = LogSource([[LogRecord(0, number) for number in range(5)]], ends_at_s=0)
        environment.from_source(source, WatermarkStrategy.no_watermarks(), "records").sink_to(LedgerSink(name))

    return build_graph(name, CHECKPOINTED, 1, define)


class Scenario:
    """What a client does, in a simulated process, and what it finds wrong."""

    def __init__(self, cluster: Cluster, faults: CallFaults, surface: str, name: str) -> None:
        self._cluster = cluster
        self._simulation = cluster.simulation
        self._faults = faults
        self._call = surface, name
        self._jobs: dict[str, str] = {}
        self.problems: list[str] = []
        self.done = False

    def run(self) -> None:
        self._submit("safe", endless("safe", CHECKPOINTED, fails=True))
        self._submit("fragile", endless("fragile", FRAGILE, fails=False))
        self._expect("safe", JobStatus.RUNNING, "at first")
        self._expect("fragile", JobStatus.RUNNING, "at first")
        for mode in MODES:
            self._while_running(mode)
            self._while_taken_over(mode)
        self._while_cancelled()
        self._check_output()
        self.done = True
        self._simulation.stop()

    # -- stages -------------------------------------------------------------------------------------

    def _while_running(self, mode: str) -> None:
        when, name = f"{mode} while they run", f"ending-{mode}"
        self._sleep(10)
        self._faults.begin(*self._call, mode)
        self._simulation.outside.ledger("failures").committed.append(True)
        self._submit(name, ending(name), wait_s=FAULT_S)
        self._sleep(FAULT_S)
        self._faults.end()
        self._submit(name, ending(name))
        for job in ("safe", "fragile"):
            self._expect(job, JobStatus.RUNNING, when)
        self._expect(name, JobStatus.FINISHED, when)

    def _while_taken_over(self, mode: str) -> None:
        self._sleep(10)
        self._faults.begin(*self._call, mode)
        for jobmanager in self._cluster.jobmanagers:
            if jobmanager.process is not None:
                jobmanager.process.kill("another one takes over")
        self._sleep(FAULT_S)
        self._faults.end()
        for job in ("safe", "fragile"):
            self._expect(job, JobStatus.RUNNING, f"{mode} while they are taken over")

    def _while_cancelled(self) -> None:
        self._faults.begin(*self._call, "raises")
        for job in ("safe", "fragile"):
            self._cancel(job, wait_s=FAULT_S)
        self._sleep(FAULT_S)
        self._faults.end()
        for job in ("safe", "fragile"):
            self._cancel(job)
            self._expect(job, JobStatus.CANCELED, "cancelled")

    def _check_output(self) -> None:
        committed = Counter(self._simulation.outside.ledger("safe").committed)
        expected = Counter(range(0, 6 * len(committed), 6))
        if committed != expected or not committed:
            self.problems.append(f"safe: lost {expected - committed}, too often {committed - expected}")
        for mode in MODES:
            found = Counter(self._simulation.outside.ledger(f"ending-{mode}").committed)
            if found != Counter(range(5)):
                self.problems.append(f"ending-{mode} has written {found}")

    # -- requests -----------------------------------------------------------------------------------

    def _sleep(self, seconds: float) -> None:
        self._simulation.sleep(int(seconds * 1e6))

    def _ask(self, action: Callable[[Dispatcher], Any], wait_s: float) -> Any:
        """Asks until there is an answer, or for so long."""
        deadline = self._simulation.now + int(wait_s * 1e6)
        while self._simulation.now < deadline:
            try:
                return self._cluster.ask(action, 5.0)
            except (RequestFailedError, DispatcherClosedError, FencedError, FiresteelError, OSError) as error:
                if isinstance(error, DuplicateJobSubmissionError) or "has ended" in str(error):
                    return None
                self._sleep(1)
        return None

    def _submit(self, name: str, graph: JobGraph, wait_s: float = PATIENCE_S) -> None:
        job_id = self._jobs.setdefault(name, f"{len(self._jobs):032x}")
        submission = JobSubmission(job_id, name, serialize_job(replace(graph, job_id=job_id)))
        self._ask(lambda dispatcher: dispatcher.submit(submission), wait_s)

    def _cancel(self, name: str, wait_s: float = PATIENCE_S) -> None:
        job_id = self._jobs[name]
        self._ask(lambda dispatcher: dispatcher.job(job_id).cancel() and None, wait_s)

    def _expect(self, name: str, wanted: JobStatus, when: str) -> None:
        job_id = self._jobs[name]
        status: JobStatus | None = None
        deadline = self._simulation.now + PATIENCE_S * 1_000_000
        while self._simulation.now < deadline:
            status = self._ask(lambda dispatcher: dispatcher.job(job_id).status, 60)
            if status is wanted:
                return
            if status is not None and status.is_globally_terminal_state():
                break
            self._sleep(1)
        shown = "unknown" if status is None else status.name
        self.problems.append(f"{name} is {shown} instead of {wanted.name}: {when}")
        self._simulation.stop()


@pytest.mark.parametrize(("surface", "name"), CALLS)
def test_no_job_ends_because_a_call_fails(surface: str, name: str) -> None:
    cluster = Cluster(1, ClusterSettings(jobmanagers=1, workers=1, cores=8))
    faults = CallFaults(cluster.simulation)
    scenario = Scenario(cluster, faults, surface, name)
    with cluster.entered(), faults.installed():
        cluster.start()
        cluster.simulation.start_process("client", cluster.client_machine, scenario.run)
        cluster.simulation.run()
    story = "\n".join(cluster.story.lines())
    assert scenario.problems == [], story
    assert scenario.done, story


def test_calls_are_found_in_their_interfaces() -> None:
    assert {("host", "kill"), ("store", "end"), ("storage", "store"), ("spark", "cancelJobGroup")} <= set(CALLS)


def test_the_simulated_spark_has_all_calls_that_are_made_for_pipelined_jobs() -> None:
    """So that a call to Spark that is added is covered, too."""
    made: set[str] = set()
    directory = Path(firesteel.spark.__file__).parent
    for file in ("pipelined/host.py", "session/slots.py", "session/liveness.py"):
        for node in ast.walk(ast.parse((directory / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                if owner.endswith(("context", "rdds")) or owner.split("._jsc")[0].endswith("context"):
                    made.add(node.func.attr)
    assert {"cancelJobGroup", "isStopped", "setJobGroup", "shipped", "collect"} <= made
    assert made <= {name for surface, name in CALLS if surface == "spark"}
