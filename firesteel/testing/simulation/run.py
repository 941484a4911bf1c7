"""One run of a simulated cluster: everything about it is drawn from its seed."""

from __future__ import annotations

import gc
import random
import resource
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise

from firesteel.common.job_status import JobStatus
from firesteel.config.checkpointing_options import STATE_BACKEND
from firesteel.testing.simulation.client import JobPlan, JobWatch
from firesteel.testing.simulation.cluster import Cluster, ClusterSettings, RequestFailedError
from firesteel.testing.simulation.faults import KINDS, SET_WORKER_CLOCK, Fault, Faults, draw_faults
from firesteel.testing.simulation.generated import generated
from firesteel.testing.simulation.workload import Workload
from firesteel.testing.simulation.workloads import WORKLOADS

__all__ = ["RunPlan", "RunResult", "draw_plan", "simulate"]

_PATIENCE_S = 900
"""How long after the last fault all jobs must have ended."""
_QUIET_S = 30
"""How long after a fault its consequences may still be noticed."""
_SETTLED_S = 90
"""How long after its end nothing of a job may be left."""


@dataclass(frozen=True)
class RunPlan:
    """What a run consists of."""

    seed: int
    settings: ClusterSettings
    jobs: tuple[JobPlan, ...]
    faults: tuple[Fault, ...]
    heartbeat_timeout_s: int

    def describe(self) -> str:
        """All of it, for people."""
        settings = self.settings
        lines = [
            f"seed {self.seed}: {settings.jobmanagers} JobManagers (HA: {settings.ha}), {settings.workers} workers"
        ]
        for job in self.jobs:
            requests = "".join(f", {request} at {at_s:.1f} s" for at_s, request in job.requests)
            lines.append(f"  {job.workload.name} at {job.submit_s:.1f} s{requests}")
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults)])


@dataclass
class RunResult:
    """What came of a run."""

    seed: int
    description: str
    problems: list[str]
    story: list[str]
    digest: str
    virtual_s: float
    cpu_s: float
    switches: int
    resident_mb: int
    """The most memory that the process has had so far."""
    met: Counter[tuple[str, str]] = field(default_factory=Counter)


def draw_plan(seed: int, kinds: Sequence[str] = KINDS) -> RunPlan:
    """The run of a seed."""
    draw = random.Random(f"plan-{seed}")
    heartbeat_s = draw.choice((2, 5, 10))
    cluster = ClusterSettings(
        jobmanagers=draw.choice((1, 2, 2, 2, 3)),
        workers=draw.choice((1, 2, 2, 3)),
        cores=8,
        ha=draw.choice(("zookeeper", "filesystem")),
    )
    makers: list[Callable[[random.Random, dict[str, str], int], Workload]] = draw.sample(
        WORKLOADS, draw.choice((0, 1, 1, 2))
    )
    makers += [generated] * (draw.choice((1, 1, 2)) if not makers else draw.choice((0, 1)))
    if any(make is generated for make in makers):
        kinds = [kind for kind in kinds if kind != SET_WORKER_CLOCK]  # their sources pause by the wall clock
    workloads = [make(draw, _job_settings(draw, heartbeat_s), draw.choice((1, 2, 2, 3))) for make in makers]
    submit_s = [draw.uniform(0, 15) for _ in workloads]
    ends_s = max(at_s + workload.busy_s for at_s, workload in zip(submit_s, workloads, strict=True))
    count = draw.choice((0, 1, 1, 2, 2, 3, 4, 6))
    faults = draw_faults(draw, count, min(ends_s + 10, 150.0), tuple(kinds))
    jobs = []
    for number, (at_s, workload) in enumerate(zip(submit_s, workloads, strict=True)):
        graph = replace(workload.job_graph, job_id=f"{seed % 16**8:08x}{number:024x}")
        requests = _draw_requests(draw, workload, faults)
        jobs.append(JobPlan(replace(workload, job_graph=graph), at_s, tuple(requests)))
    on_disk = any(job.workload.job_graph.configuration.get(STATE_BACKEND) == "rocksdb" for job in jobs)
    cluster = replace(cluster, local_disks=on_disk)
    return RunPlan(seed, cluster, tuple(jobs), tuple(faults), 5 * heartbeat_s)


def _draw_requests(draw: random.Random, workload: Workload, faults: Sequence[Fault]) -> list[tuple[float, str]]:
    """What a client asks of a job: at any time, or while something is wrong."""
    requests = []
    for _ in range(draw.choice((0, 0, 0, 1, 1, 2))):
        request = draw.choice(("savepoint", "savepoint", "rescale", "rescale", "stop", "cancel", "cancel"))
        at_s = draw.uniform(5, min(15 + workload.busy_s, 120))
        if faults and draw.random() < 0.5:
            at_s = max(5.0, draw.choice(faults).at_s + draw.uniform(-2, 40))
        requests.append((at_s, request if workload.can_rescale or request != "rescale" else "savepoint"))
    if workload.can_rescale and draw.random() < 0.1:
        # at nearly the same time: a checkpoint takes milliseconds
        at_s, apart_s = draw.uniform(8, 40), 10 ** draw.uniform(-2.7, -1)
        requests += [(at_s, "rescale"), (at_s + draw.choice((-1, 1)) * apart_s, "stop")]
    return requests


def _job_settings(draw: random.Random, heartbeat_s: int) -> dict[str, str]:
    settings = {
        "execution.checkpointing.interval": draw.choice(("2 s", "5 s", "15 s")),
        "execution.checkpointing.dir": "sim://store/checkpoints",
        "execution.checkpointing.timeout": draw.choice(("10 s", "60 s")),
        "execution.checkpointing.unaligned.enabled": draw.choice(("true", "false")),
        "execution.runtime-mode": "STREAMING",
        "heartbeat.interval": f"{heartbeat_s} s",
        "heartbeat.timeout": f"{5 * heartbeat_s} s",
        "pipeline.auto-watermark-interval": draw.choice(("200 ms", "1 s", "5 s")),
        "metrics.fetcher.update-interval": "0 s",
        "state.backend.type": "rocksdb" if draw.random() < 0.1 else "hashmap",
    }
    if draw.random() < 0.25:
        settings |= {
            "jobmanager.scheduler": "adaptive",
            "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "5 s",
        }
    if draw.random() < 0.5:
        settings |= {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "100000",
            "restart-strategy.fixed-delay.delay": draw.choice(("0 s", "1 s", "5 s")),
        }
    else:
        settings |= {
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "1 s",
            "restart-strategy.exponential-delay.max-backoff": "20 s",
        }
    return settings


def simulate(plan: RunPlan) -> RunResult:
    """Runs a plan; its result is the same each time."""
    with warnings.catch_warnings():
        # by event loops of processes that were killed
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        with _garbage_collected():
            return _simulate(plan)


@contextmanager
def _garbage_collected() -> Iterator[None]:
    """Collects all that was made meanwhile when it ends.

    What is left of a simulation is full of cycles, and none is collected while one runs. The collector alone would not
    come to the oldest ones between two runs: it counts collections, not objects. What was there before is left out, so
    that this takes no longer in a process that holds much else.
    """
    others_freeze = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        if not others_freeze:
            gc.unfreeze()


def _simulate(plan: RunPlan) -> RunResult:
    begun = time.process_time()
    cluster = Cluster(plan.seed, plan.settings)
    run = _Run(cluster, plan)
    with cluster.entered():
        cluster.start()
        run.start()
        cluster.simulation.run()
        problems = run.problems()
    simulation = cluster.simulation
    return RunResult(
        plan.seed,
        plan.describe(),
        problems,
        cluster.story.lines(),
        cluster.story.digest(),
        simulation.now / 1e6,
        time.process_time() - begun,
        simulation.switches,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        run.faults.met,
    )


class _Run:
    """The client's processes of a run, and what is checked."""

    def __init__(self, cluster: Cluster, plan: RunPlan):
        self._cluster = cluster
        self._plan = plan
        self._watches: list[JobWatch] = []
        self.faults = Faults(cluster, list(plan.faults), lambda: [watch.status for watch in self._watches])
        self._watches += (JobWatch(cluster, job, self.faults) for job in plan.jobs)
        self._problems: list[str] = []
        self._over = False

    def start(self) -> None:
        """Starts the clients and the clock that ends the run."""
        simulation = self._cluster.simulation
        self._cluster.on_log.append(self._on_log)
        for watch in self._watches:
            simulation.start_process(f"client-{watch.name}", self._cluster.client_machine, watch.run)
        simulation.start_process("audit", self._cluster.client_machine, self._audit)
        simulation.after(self.faults.ends_at + 300_000_000 + _PATIENCE_S * 1_000_000, simulation.stop)

    def _on_log(self, process: str, text: str) -> None:
        """Each process sends heartbeats within the timeout unless something is wrong."""
        before = self._cluster.simulation.now - (self._plan.heartbeat_timeout_s + _QUIET_S) * 1_000_000
        if "HeartbeatTimeout" in text and self.faults.quiet_since(before):
            self._problems.append(f"{process} misses heartbeats though nothing was wrong: {text}")

    def _audit(self) -> None:
        """When all has ended: nothing is left, and a new leader knows the same."""
        cluster, simulation = self._cluster, self._cluster.simulation
        while not all(watch.done for watch in self._watches) or simulation.now < self.faults.ends_at:
            simulation.sleep(2_000_000)
        simulation.sleep(_SETTLED_S * 1_000_000)
        left = [process.name for process in simulation.processes.values() if _is_slot(process.name) and process.alive]
        if left:
            self._problems.append(f"slots that outlive their jobs: {', '.join(left)}")
        before = {job_id: ended for watch in self._watches for job_id, ended in watch.known.items()}
        for jobmanager in cluster.jobmanagers:
            if jobmanager.dispatcher is not None and jobmanager.process is not None:
                jobmanager.process.kill("audit")
        while True:
            try:
                known = cluster.ask(lambda dispatcher: {job.job_id: job.status for job in dispatcher.jobs()})
                break
            except RequestFailedError:
                simulation.sleep(1_000_000)
        simulation.sleep(30_000_000)
        for job_id, ended in before.items():
            if known.get(job_id) is not ended:
                after = "unknown" if job_id not in known else known[job_id].name
                self._problems.append(f"job {job_id} was {ended.name}, and is {after} for the next leader")
        self._over = True
        simulation.stop()

    def problems(self) -> list[str]:
        """All that is wrong."""
        found = list(self._problems)
        for watch in self._watches:
            found += watch.problems
            if not watch.done:
                found.append(f"{watch.name} is {watch.status} {_PATIENCE_S} s after the last fault")
            has_ended = watch.ended is JobStatus.FINISHED
            problems = watch.workload.problems(self._cluster.outside, ended=has_ended)
            if not (watch.workload.uses_wall_clock and self.faults.worker_clock_was_set):
                found += problems
        if not self._over and not found:
            found.append("the audit has not come to its end")
        found += self._zombies()
        found += self._cluster.checkpoints.problems
        found += self._cluster.simulation.uncaught
        return found

    def _zombies(self) -> list[str]:
        """Attempts that go on writing beside a later one for longer than they may."""
        found = []
        allowed = (self._plan.heartbeat_timeout_s + 15) * 1_000_000
        for name, ledger in self._cluster.outside.ledgers.items():
            order = sorted(ledger.active.values())
            for (_, last), (first, _) in pairwise(order):
                if last - first > allowed:
                    found.append(f"{name}: an attempt wrote beside a later one for {(last - first) / 1e6:.1f} s")
        return found


def _is_slot(name: str) -> bool:
    return name.startswith("slot-")
