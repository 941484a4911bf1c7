"""How each fault of a cluster is brought about."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from firesteel.process import fault_points
from firesteel.process.fault_points import POINTS
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.chaos.cluster.cluster import ChaosCluster
from tests.support.chaos.cluster.programs import ProgramJob
from tests.support.chaos.namespace import cut_network, mend_network
from tests.support.chaos.plan import Fault
from tests.support.chaos.processes import kill
from tests.support.services.job_managers import JobManagerProcess

__all__ = ["ClusterInjector", "NotReached"]

REACHED_S = 10.0
"""How long a fault point, or a function, may take to be reached."""
LEADER_S = 240.0
HANGS_S = 20.0


class NotReached(Exception):
    """What was to fail did not come by: there was no fault."""


class ClusterSurroundings(Protocol):
    """What injecting needs of the run."""

    cluster: ChaosCluster
    jobs: list[ProgramJob]
    storage: StorageFaults
    points: Path

    def wait_for(self, condition: Callable[[], Any], what: str, deadline_s: float) -> Any:
        """Waits while the run goes on."""
        ...

    def struck(self) -> None:
        """The fault that is being injected has just struck."""
        ...

    def later(self, seconds: float, action: Callable[[], Any]) -> None:
        """Does something in a while."""
        ...


class ClusterInjector:
    """Injects faults into a cluster."""

    def __init__(self, run: ClusterSurroundings):
        self._run = run
        self._methods: dict[str, Callable[[Fault], str]] = {
            "kill the leader": lambda _: self._kill(self._manager(leads=True).pid),
            "kill the standby": lambda _: self._kill(self._manager(leads=False).pid),
            "kill the leader's JVM": lambda _: self._kill(self._jvm(leads=True)),
            "kill the standby's JVM": lambda _: self._kill(self._jvm(leads=False)),
            "stop the leader": lambda fault: self._stop(fault, self._manager(leads=True).pid),
            "stop the standby": lambda fault: self._stop(fault, self._manager(leads=False).pid),
            "stop the leader's JVM": lambda fault: self._stop(fault, self._jvm(leads=True)),
            "kill a slot": lambda fault: self._kill(self._one_of(fault, self._run.cluster.slots)),
            "stop a slot": lambda fault: self._stop(fault, self._one_of(fault, self._run.cluster.slots)),
            "kill an executor": lambda fault: self._kill(self._one_of(fault, self._run.cluster.executors)),
            "stop an executor": lambda fault: self._stop(fault, self._one_of(fault, self._run.cluster.executors)),
            "kill a Spark worker": lambda fault: self._kill(self._one_of(fault, self._spark_workers)),
            "exception in user code": self._exception,
            "storage is slow": lambda fault: self._storage(fault, "slow:0.3"),
            "storage hangs": lambda fault: self._storage(fault, f"slow:{HANGS_S:g}"),
            "storage refuses": lambda fault: self._storage(fault, "fail in checkpoints"),
            "storage is full": lambda fault: self._mount(fault, "checkpoints", "fill", "empty"),
            "storage is unmounted": lambda fault: self._mount(fault, "checkpoints", "detach", "attach"),
            "the HA directory refuses": lambda fault: self._mount(fault, "shared", "refuse", "accept"),
            "the HA directory is full": lambda fault: self._mount(fault, "shared", "fill", "empty"),
            "the HA directory is unmounted": lambda fault: self._mount(fault, "shared", "detach", "attach"),
            "ZooKeeper is killed": self._kill_zookeeper,
            "ZooKeeper is stopped": self._stop_zookeeper,
            "the clock is set": self._set_clock,
            "the network is cut": self._cut,
        }

    @staticmethod
    def environment(points: Path, storage: StorageFaults) -> dict[str, str]:
        """What the processes of the cluster need to have in their environment."""
        entries = [f"{point}={action}@{points / point}.{action}" for point in POINTS for action in ("kill", "raise")]
        return {fault_points.VARIABLE: ",".join(entries), **storage.environment}

    def inject(self, fault: Fault) -> str:
        """Brings the fault about; says what exactly was done."""
        for prefix, action in (("crash at ", "kill"), ("error at ", "raise")):
            if fault.kind.startswith(prefix):
                return self._at_point(fault.kind.removeprefix(prefix), action, fault)
        return self._methods[fault.kind](fault)

    # ---- processes --------------------------------------------------------------------------------

    def _manager(self, *, leads: bool) -> JobManagerProcess:
        cluster = self._run.cluster
        manager: JobManagerProcess = self._run.wait_for(
            cluster.leader if leads else cluster.standby, "a JobManager that leads", LEADER_S
        )
        return manager

    def _jvm(self, *, leads: bool) -> int:
        pid: int = self._run.wait_for(
            lambda: self._run.cluster.jvm_of(self._manager(leads=leads)), "the JVM of a JobManager", LEADER_S
        )
        return pid

    def _one_of(self, fault: Fault, find: Callable[[], list[int]]) -> int:
        pids: list[int] = self._run.wait_for(find, f"something for {fault.kind!r}", LEADER_S)
        return pids[int(fault.choice * len(pids))]

    def _spark_workers(self) -> list[int]:
        standalone = self._run.cluster.standalone
        assert standalone is not None
        return sorted(pid for name, pid in standalone.pids.items() if name != "master")

    def _kill(self, pid: int) -> str:
        kill(pid)
        self._run.struck()
        return f"process {pid}"

    def _stop(self, fault: Fault, pid: int) -> str:
        kill(pid, signal.SIGSTOP)
        self._run.struck()
        self._run.later(fault.detail["seconds"], lambda: kill(pid, signal.SIGCONT))
        return f"process {pid} for {fault.detail['seconds']:g} s"

    def _exception(self, fault: Fault) -> str:
        places = [(job, place) for job in self._run.jobs for place in job.places]
        job, place = places[int(fault.choice * len(places))]
        token = job.token(place)
        self._await_work()
        token.touch()
        self._await_gone(token, f"function {place} of {job.program.seed}")
        return f"in function {place} of program {job.program.seed}"

    def _at_point(self, point: str, action: str, fault: Fault) -> str:
        path = self._run.points / f"{point}.{action}"
        self._await_work()
        path.touch()
        if point == "storage.read":
            kill(self._one_of(fault, self._run.cluster.slots))  # somebody has to restore something
        began = time.monotonic()
        self._await_gone(path, f"fault point {point}")
        return f"reached after {time.monotonic() - began:.1f} s"

    def _await_work(self) -> None:
        """Waits until something runs that can get to a place."""
        cluster = self._run.cluster
        self._run.wait_for(lambda: "RUNNING" in cluster.states().values(), "a job that runs", LEADER_S)

    def _await_gone(self, path: Path, what: str) -> None:
        end = time.monotonic() + REACHED_S
        try:
            self._run.wait_for(
                lambda: not path.exists() or time.monotonic() > end, f"{what} to be reached", 2 * REACHED_S
            )
            if path.exists():
                raise NotReached(f"{what} was not reached within {REACHED_S:g} s")
            self._run.struck()
        finally:
            path.unlink(missing_ok=True)

    # ---- what they need ---------------------------------------------------------------------------

    def _storage(self, fault: Fault, what: str) -> str:
        self._run.storage.set(what)
        self._run.struck()
        self._run.later(fault.detail["seconds"], self._run.storage.clear)
        return f"'{what}' for {fault.detail['seconds']:g} s"

    def _mount(self, fault: Fault, name: str, begin: str, end: str) -> str:
        mount = getattr(self._run.cluster, name)
        getattr(mount, begin)()
        self._run.struck()
        self._run.later(fault.detail["seconds"], getattr(mount, end))
        return f"for {fault.detail['seconds']:g} s"

    def _kill_zookeeper(self, fault: Fault) -> str:
        zookeeper = self._run.cluster.zookeeper
        assert zookeeper is not None
        if not zookeeper.is_running:
            raise NotReached("ZooKeeper is still down from the fault before")
        zookeeper.kill()
        self._run.struck()
        self._run.later(fault.detail["seconds"], zookeeper.start)
        return f"for {fault.detail['seconds']:g} s"

    def _stop_zookeeper(self, fault: Fault) -> str:
        zookeeper = self._run.cluster.zookeeper
        assert zookeeper is not None
        if not zookeeper.is_running:
            raise NotReached("ZooKeeper is still down from the fault before")
        zookeeper.pause()
        self._run.struck()

        def resume() -> None:
            # another fault may have killed it meanwhile
            if zookeeper.is_running:
                zookeeper.resume()

        self._run.later(fault.detail["seconds"], resume)
        return f"for {fault.detail['seconds']:g} s"

    def _set_clock(self, fault: Fault) -> str:
        clocks = self._run.cluster.clocks
        which = int(fault.choice * (len(clocks) + 1))
        chosen = clocks if which == len(clocks) else [clocks[which]]
        for clock in chosen:
            clock.step(fault.detail["by"])
        self._run.struck()
        for clock in chosen:
            self._run.later(fault.detail["seconds"], lambda clock=clock: clock.step(0))  # type: ignore[misc]
        return f"of {'all' if len(chosen) > 1 else 'some'} processes for {fault.detail['seconds']:g} s"

    def _cut(self, fault: Fault) -> str:
        cut_network()
        self._run.struck()
        self._run.later(fault.detail["seconds"], mend_network)
        return f"for {fault.detail['seconds']:g} s"
