"""Faults of a simulated cluster and their times, generated before the run begins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.testing.simulation.machine.scheduler import Machine, Process
from firesteel.testing.simulation.machine.storage import HA_DIRECTORY, StorageFault

if TYPE_CHECKING:
    from firesteel.testing.simulation.cluster import Cluster
    from firesteel.testing.simulation.jobmanagers import JobManagerProcess

__all__ = ["KINDS", "SET_LEADER_CLOCK", "SET_WORKER_CLOCK", "Fault", "Faults", "draw_faults"]

SET_WORKER_CLOCK = "set clock of a worker"
SET_LEADER_CLOCK = "set clock of a JobManager"
_STEPS_S = (-7200, -3600, -3600, -90, -5, 5, 90, 3600, 3600, 7200)


@dataclass(frozen=True)
class Fault:
    """One fault: when it begins, how long it lasts, and a number that decides whom it hits."""

    kind: str
    at_s: float
    seconds: float
    draw: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.at_s:.3f} s for {self.seconds:.1f} s"


def draw_faults(draw: random.Random, count: int, horizon_s: float, kinds: tuple[str, ...]) -> list[Fault]:
    """Some faults; many of them at the same time as another."""
    found: list[Fault] = []
    for _ in range(count):
        at = draw.uniform(3, horizon_s)
        if found and draw.random() < 0.5:
            at = max(1.0, draw.choice(found).at_s + draw.uniform(-5, 30))
        seconds = draw.choice((1, 4, 12, 40, 90)) * draw.uniform(0.7, 1.3)
        found.append(Fault(draw.choice(kinds), at, seconds, draw.random()))
    return sorted(found, key=lambda fault: fault.at_s)


class Faults:
    """Makes faults happen to a cluster."""

    def __init__(self, cluster: Cluster, faults: list[Fault], statuses: Callable[[], list[str]]):
        self._cluster = cluster
        self._simulation = cluster.simulation
        self._statuses = statuses
        self.met: Counter[tuple[str, str]] = Counter()
        """How often which kind met a job in which status."""
        self.last_at = -(10**12)
        """When something was last wrong."""
        self.active = 0
        self.worker_clock_was_set = False
        self.ends_at = 0
        for fault in faults:
            at = int(fault.at_s * 1e6)
            self.ends_at = max(self.ends_at, at + int(fault.seconds * 1e6))
            self._simulation.at(at, None, 0, lambda fault=fault: self._begin(fault))

    def quiet_since(self, us: int) -> bool:
        """Whether nothing has been wrong since a time."""
        return not self.active and self.last_at < us

    def _begin(self, fault: Fault) -> None:
        happened = _KINDS[fault.kind](self, fault)
        for status in self._statuses():
            self.met[fault.kind, status] += 1
        self._simulation.tell("FAULT", f"{fault.kind}: {happened or 'nobody there'}")
        if fault.kind not in (SET_WORKER_CLOCK, SET_LEADER_CLOCK):
            self.last_at = self._simulation.now

    def _until(self, fault: Fault, heal: Callable[[], None], what: str) -> None:
        self.active += 1

        def end() -> None:
            self.active -= 1
            self.last_at = self._simulation.now
            heal()
            self._simulation.tell("FAULT", f"{fault.kind} is over: {what}")

        self._simulation.after(int(fault.seconds * 1e6), end)

    # -- whom ---------------------------------------------------------------------------------------

    def _one(self, candidates: list[Process], fault: Fault) -> Process | None:
        living = [process for process in candidates if process.alive]
        return living[int(fault.draw * len(living))] if living else None

    def _jobmanager(self, fault: Fault) -> JobManagerProcess:
        """Mostly the leader."""
        leaders = self._cluster.leaders()
        if leaders and fault.draw < 0.75:
            return leaders[int(fault.draw * 100) % len(leaders)]
        return self._cluster.jobmanagers[int(fault.draw * 1000) % len(self._cluster.jobmanagers)]

    def _slots(self) -> list[Process]:
        return [process for process in self._simulation.processes.values() if process.name.startswith("slot-")]

    def _kill(self, process: Process | None, fault: Fault) -> str:
        if process is None or not process.alive:
            return ""
        process.kill(fault.kind)
        return process.name

    def _freeze(self, process: Process | None, fault: Fault) -> str:
        if process is None or not process.alive or process.frozen:
            return ""
        process.freeze()
        self._until(fault, process.thaw, process.name)
        return f"{process.name} for {fault.seconds:.1f} s"

    # -- kinds --------------------------------------------------------------------------------------

    def _kill_slot(self, fault: Fault) -> str:
        return self._kill(self._one(self._slots(), fault), fault)

    def _kill_executor(self, fault: Fault) -> str:
        executors = [process for app in self._cluster.applications for process in app.executors.values()]
        return self._kill(self._one(executors, fault), fault)

    def _kill_jvm(self, fault: Fault) -> str:
        application = self._jobmanager(fault).application
        return "" if application is None else self._kill(application.jvm, fault)

    def _kill_jobmanager(self, fault: Fault) -> str:
        return self._kill(self._jobmanager(fault).process, fault)

    def _freeze_jobmanager(self, fault: Fault) -> str:
        return self._freeze(self._jobmanager(fault).process, fault)

    def _freeze_slot(self, fault: Fault) -> str:
        return self._freeze(self._one(self._slots(), fault), fault)

    def _hang_spark(self, fault: Fault) -> str:
        application = self._jobmanager(fault).application
        return "" if application is None else self._freeze(application.jvm, fault)

    def _reset_connection(self, fault: Fault) -> str:
        pairs = [pair for pair in self._cluster.network.connections() if pair[0].process is not pair[1].process]
        if not pairs:
            return ""
        pair = pairs[int(fault.draw * len(pairs))]
        self._cluster.network.reset(pair)
        return f"{pair[0].process} - {pair[1].process}"

    def _cut_network(self, fault: Fault) -> str:
        """Between two machines."""
        machines = [*self._cluster.workers, *(each.machine for each in self._cluster.jobmanagers)]
        one = machines[int(fault.draw * len(machines))]
        others = [machine for machine in machines if machine is not one]
        return self._cut(one, [others[int(fault.draw * 997) % len(others)]], fault)

    def _isolate_machine(self, fault: Fault) -> str:
        """From all others, mostly that of the leader."""
        machine = self._jobmanager(fault).machine
        others = [each for each in self._cluster.network.machines.values() if each is not machine]
        return self._cut(machine, others, fault)

    def _cut(self, one: Machine, others: list[Machine], fault: Fault) -> str:
        network = self._cluster.network
        both_ways = int(fault.draw * 10_000) % 3 != 0
        pairs = [(one, other) for other in others if not network.is_cut(one, other)]
        if both_ways:
            pairs += [(other, one) for other in others if not network.is_cut(other, one)]
        for source, target in pairs:
            network.cut(source, target)

        def heal() -> None:
            for source, target in pairs:
                network.heal(source, target)

        what = f"{one} {'<->' if both_ways else '->'} {', '.join(map(str, others))}"
        self._until(fault, heal, what)
        return f"{what} for {fault.seconds:.1f} s"

    def _storage(self, fault: Fault, kind: str) -> str:
        machines = None
        if int(fault.draw * 10_000) % 3 == 0:
            names = list(self._cluster.network.machines)
            machines = frozenset((names[int(fault.draw * len(names))],))
        share = 0.3 if int(fault.draw * 100_000) % 4 == 0 else 1.0
        wrong = StorageFault(kind, machines, share=share)
        self._cluster.storage.add_fault(wrong)
        where = "everywhere" if machines is None else f"on {', '.join(sorted(machines))}"
        what = f"{where}, {share:.0%} of operations"
        self._until(fault, lambda: self._cluster.storage.remove_fault(wrong), what)
        return f"{what}, for {fault.seconds:.1f} s"

    def _storage_slow(self, fault: Fault) -> str:
        return self._storage(fault, "slow")

    def _storage_refuses(self, fault: Fault) -> str:
        return self._storage(fault, "refuse")

    def _storage_full(self, fault: Fault) -> str:
        return self._storage(fault, "full")

    def _storage_hangs(self, fault: Fault) -> str:
        return self._storage(fault, "hang")

    def _storage_vanishes(self, fault: Fault) -> str:
        return self._storage(fault, "vanish")

    def _ha_store_hangs(self, fault: Fault) -> str:
        return self._ha_store(fault, "down", "hang")

    def _ha_store_refuses(self, fault: Fault) -> str:
        return self._ha_store(fault, "refuses_writes", "full")

    def _ha_store(self, fault: Fault, attribute: str, kind: str) -> str:
        if self._cluster.settings.ha == "filesystem":
            wrong = StorageFault(kind, path_part=HA_DIRECTORY)
            self._cluster.storage.add_fault(wrong)
            self._until(fault, lambda: self._cluster.storage.remove_fault(wrong), "")
            return f"for {fault.seconds:.1f} s"
        ensemble = self._cluster.ensemble
        if getattr(ensemble, attribute):
            return ""
        setattr(ensemble, attribute, True)
        self._until(fault, lambda: setattr(ensemble, attribute, False), "")
        return f"for {fault.seconds:.1f} s"

    def _set_clock_of_worker(self, fault: Fault) -> str:
        self.worker_clock_was_set = True
        return self._set_clock(self._cluster.workers[int(fault.draw * len(self._cluster.workers))], fault)

    def _set_clock_of_jobmanager(self, fault: Fault) -> str:
        """Mostly the leader's."""
        return self._set_clock(self._jobmanager(fault).machine, fault)

    def _set_clock(self, machine: Machine, fault: Fault) -> str:
        step = _STEPS_S[int(fault.draw * 1000) % len(_STEPS_S)]
        machine.clock_offset_us += step * 1_000_000
        return f"of {machine} by {step} s"

    def _kill_at_point(self, fault: Fault) -> str:
        """A process dies the nth time that any reaches a place in the product."""
        point = _POINTS[int(fault.draw * len(_POINTS))]
        times = 1 + int(fault.draw * 1000) % 4
        self._simulation.at_points[point] = times
        return f"whoever reaches {point}, time {times}"

    def _lose_machine(self, fault: Fault) -> str:
        """A machine goes down without a word, and comes back."""
        machines = [*self._cluster.workers, *(each.machine for each in self._cluster.jobmanagers)]
        machine = machines[int(fault.draw * len(machines))]
        if machine.down:
            return ""
        machine.down = True
        network = self._cluster.network
        pairs = [pair for other in network.machines.values() for pair in ((machine, other), (other, machine))]
        pairs = [pair for pair in pairs if not network.is_cut(*pair)]
        for source, target in pairs:
            network.cut(source, target)
        for process in list(self._simulation.processes.values()):
            if process.machine is machine and process.alive:
                process.kill(fault.kind)

        def recover() -> None:
            machine.down = False
            machine.boots += 1
            for source, target in pairs:
                network.heal(source, target)

        self._until(fault, recover, machine.name)
        return f"{machine} for {fault.seconds:.1f} s"

    def _stop_jobmanager(self, fault: Fault) -> str:
        jobmanager = self._jobmanager(fault)
        jobmanager.stop_gracefully()
        return jobmanager.name


_POINTS = (
    "checkpoint.ack",
    "checkpoint.delete",
    "checkpoint.metadata",
    "checkpoint.stored",
    "checkpoint.sync",
    "checkpoint.trigger",
    "checkpoint.write",
    "ha.blobs.written",
    "ha.record.stored",
    "ha.record.written",
    "sink.commit",
    "sink.committed",
    "storage.delete",
    "storage.read",
    "storage.write",
)
_KINDS: dict[str, Callable[[Faults, Fault], str]] = {
    "kill slot": Faults._kill_slot,
    "kill executor": Faults._kill_executor,
    "kill JVM": Faults._kill_jvm,
    "kill JobManager": Faults._kill_jobmanager,
    "kill at a fault point": Faults._kill_at_point,
    "lose machine": Faults._lose_machine,
    "stop JobManager": Faults._stop_jobmanager,
    "freeze JobManager": Faults._freeze_jobmanager,
    "freeze slot": Faults._freeze_slot,
    "hang Spark": Faults._hang_spark,
    "reset connection": Faults._reset_connection,
    "cut network": Faults._cut_network,
    "isolate machine": Faults._isolate_machine,
    "storage slow": Faults._storage_slow,
    "storage refuses": Faults._storage_refuses,
    "storage full": Faults._storage_full,
    "storage hangs": Faults._storage_hangs,
    "storage vanishes": Faults._storage_vanishes,
    "HA store hangs": Faults._ha_store_hangs,
    "HA store refuses writes": Faults._ha_store_refuses,
    SET_WORKER_CLOCK: Faults._set_clock_of_worker,
    SET_LEADER_CLOCK: Faults._set_clock_of_jobmanager,
}
KINDS = tuple(_KINDS)
"""What can break."""
