"""How each fault of a plan is brought about."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from firesteel.process import fault_points
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.chaos.job import Directories
from tests.support.chaos.plan import EPOCHS, KILL_EXECUTOR, PIPELINED, RETRIED, SWITCH, Fault, Plan, points_of
from tests.support.chaos.processes import DriverProcess, kill
from tests.support.processes import command_line, descendants, is_alive

__all__ = ["Injector", "Slot", "SlotBoard"]

HEARTBEAT_TIMEOUT_S = 4.0
EPOCH_TIMEOUT_S = 40.0
"""An epoch may also have to start the workers it runs in."""
REACHED_S = 360.0
"""How long a fault point may take to be reached."""
SHORT_STOP_S = 2.0
NOTICED_S = 2 * EPOCH_TIMEOUT_S
"""When a stopped worker has been noticed and killed: after the longest time that an epoch may take."""
PAUSES = {"kill a worker in an epoch": "epoch.processed", "kill a worker between epochs": "sink.commit"}
"""Where somebody is held up for a moment, so that it is known where the others are."""
PAUSE_S = 0.4


@dataclass(frozen=True)
class Slot:
    """A process that runs, or ran, a slot of some attempt."""

    pid: int
    run: int
    attempt: int
    places: tuple[str, ...] = ()
    """Of user code, which run there."""
    retried_at: float = 0.0
    """When Spark has last run a task there not for the first time."""

    @property
    def number(self) -> tuple[int, int]:
        """Later attempts have higher ones."""
        return self.run, self.attempt


class SlotBoard:
    """Which processes said that they are slots."""

    def __init__(self, directory: Path):
        self._directory = directory

    def slots(self, run: int | None = None) -> list[Slot]:
        """Those of the latest attempt that are alive; if one is named, of that run only."""
        found = []
        for path in self._directory.glob("*.json"):
            told = json.loads(path.read_text())
            found.append(Slot(told["pid"], told["run"], told["attempt"], tuple(told["places"]), told["retried at"]))
        if run is not None:
            found = [slot for slot in found if slot.run == run]
        latest = max((slot.number for slot in found), default=None)
        return sorted(
            (slot for slot in found if slot.number == latest and is_alive(slot.pid)), key=lambda slot: slot.pid
        )


class Surroundings(Protocol):
    """What injecting needs of the run."""

    directories: Directories
    storage: StorageFaults
    cluster_pids: Iterable[int]
    plan: Plan
    parallelism: int
    """Of the latest driver."""

    @property
    def driver(self) -> DriverProcess:
        """The latest driver."""
        ...

    def wait_for(self, condition: Callable[[], Any], what: str, deadline_s: float) -> Any:
        """Waits while the run goes on."""
        ...

    def wait(self, seconds: float) -> None:
        """Lets time pass while the run goes on."""
        ...

    def struck(self) -> None:
        """The fault that is being injected has just struck."""
        ...

    def restart_driver(
        self, wait_for_orphans: bool, parallelism: int | None = None, execution: str | None = None
    ) -> None:
        """Kills the driver and starts the next, perhaps at another parallelism or executed otherwise from now on."""
        ...

    def wait_for_output(self) -> None:
        """Waits for output of a record that came after the fault had struck."""
        ...

    def later(self, seconds: float, action: Callable[[], Any]) -> None:
        """Does something in a while."""
        ...


class Injector:
    """Injects faults into a run."""

    def __init__(self, run: Surroundings):
        self._run = run
        self._control = run.directories.control
        self.board = SlotBoard(self._control / "slots")

    @staticmethod
    def environment(directories: Directories, storage: StorageFaults) -> dict[str, str]:
        """What the processes of a job need to have in their environment."""
        entries = [
            f"{point}={action}@{_one_shot(directories, point, action)}"
            for point in points_of(EPOCHS)
            for action in ("kill", "raise")
        ]
        entries += [f"{point}=sleep:{PAUSE_S}@{_one_shot(directories, point, 'sleep')}" for point in PAUSES.values()]
        return {fault_points.VARIABLE: ",".join(entries), **storage.environment}

    def inject(self, fault: Fault) -> str:
        """Brings the fault about; says what exactly was done."""
        kind = fault.kind
        for prefix, action in (("crash at ", "kill"), ("error at ", "raise")):
            if kind.startswith(prefix):
                return self._at_point(kind.removeprefix(prefix), action, fault)
        methods: dict[str, Callable[[Fault], str]] = {
            "exception in user code": self._exception,
            "kill a worker": self._kill_worker,
            **dict.fromkeys(PAUSES, self._kill_worker),
            "kill the driver": self._kill_driver,
            "stop a worker": self._stop_worker,
            "cut a data connection": self._cut,
            "storage fails": self._storage,
            "storage is slow": self._storage,
            "storage returns a truncated file": self._truncated,
            "checkpoint storage is full": self._storage,
            "local disk is full": self._disk_full,
            KILL_EXECUTOR: self._kill_executor,
            RETRIED: self._retried,
            SWITCH: self._switch,
        }
        return methods[kind](fault)

    def _worker(self, fault: Fault, place: str | None = None) -> Slot:
        """One of the slots that run now, and have a place in user code."""

        def slots() -> list[Slot]:
            return [slot for slot in self.board.slots() if place is None or place in slot.places]

        found = self._run.wait_for(slots, f"a slot to inject a fault into {place or ''}", REACHED_S)
        chosen: Slot = found[int(fault.choice * len(found))]
        return chosen

    def _order(self, fault: Fault, what: str, text: str = "", place: str | None = None) -> tuple[Slot, str]:
        """Has a slot do something; says which did what. A slot that ends before is followed by another."""
        orders = self._control / "orders"
        end = time.monotonic() + REACHED_S
        while time.monotonic() < end:
            slot = self._worker(fault, place)
            done = orders / f"{slot.pid}.{what}.done"
            done.unlink(missing_ok=True)
            temporary = orders / ".order.new"
            temporary.write_text(text)
            temporary.replace(orders / f"{slot.pid}.{what}")
            self._run.wait_for(
                partial(self._is_over, slot, done), f"process {slot.pid} to do '{what} {text}'", REACHED_S
            )
            (orders / f"{slot.pid}.{what}").unlink(missing_ok=True)
            if done.exists():
                how = done.read_text()
                if how != "0 connections":
                    self._run.struck()
                    return slot, f"{how}, process {slot.pid}"
                self._run.wait(0.1)  # the attempt may be ending, or not connected yet
        raise AssertionError(f"'{what} {text}' could not be brought about in {REACHED_S:g} s")

    def _is_over(self, slot: Slot, done: Path) -> bool:
        now = {(each.pid, each.number) for each in self.board.slots()}
        return done.exists() or (slot.pid, slot.number) not in now

    def _exception(self, fault: Fault) -> str:
        return self._order(fault, "raise", fault.detail["in"], fault.detail["in"])[1]

    def _kill_worker(self, fault: Fault) -> str:
        point = PAUSES.get(fault.kind)
        if point is not None:
            path = _one_shot(self._run.directories, point, "sleep")
            path.touch()
            try:
                self._run.wait_for(lambda: not path.exists(), f"somebody to wait at {point}", REACHED_S)
            finally:
                path.unlink(missing_ok=True)
        pid = self._worker(fault).pid
        kill(pid)
        self._run.struck()
        return f"process {pid}"

    def _retried(self, fault: Fault) -> str:
        """A task fails in the middle of an epoch; the attempt goes on, with the task run a second time by Spark."""
        assert self._run.plan.retries, "Spark runs no task again in this run"
        began = time.time()
        order = "raise" if fault.detail["after"] == "an exception" else "die"
        ordered, done = self._order(fault, order, fault.detail["in"], fault.detail["in"])

        def again() -> list[Slot]:
            return [slot for slot in self.board.slots() if slot.retried_at >= began]

        (slot, *_) = self._run.wait_for(again, "Spark to run a task again", REACHED_S)
        assert slot.number == ordered.number, f"attempt {slot.number} instead of {ordered.number}, and not a task of it"
        return f"{done}; process {slot.pid} has run it again"

    def _switch(self, fault: Fault) -> str:
        self._run.restart_driver(False, fault.detail["parallelism"], PIPELINED)
        self._run.wait_for_output()
        self._run.restart_driver(False, fault.detail["and back at"], EPOCHS)
        return "twice"

    def _kill_driver(self, fault: Fault) -> str:
        pid = self._run.driver.process.pid
        self._run.restart_driver(fault.detail["restarted"] != "at once", fault.detail["parallelism"])
        return f"process {pid}"

    def _stop_worker(self, fault: Fault) -> str:
        pid = self._worker(fault).pid
        kill(pid, signal.SIGSTOP)
        self._run.struck()
        if fault.detail["then"] == "noticed":
            self._run.wait_for(lambda: not is_alive(pid), f"an epoch's deadline to end process {pid}", NOTICED_S)
            return f"process {pid}"
        last = signal.SIGCONT if fault.detail["then"] == "continued" else signal.SIGKILL
        # the JobMaster has just noticed, and the next attempt is starting
        seconds = HEARTBEAT_TIMEOUT_S + 0.2 + fault.choice
        if self._run.plan.execution == EPOCHS:
            seconds = SHORT_STOP_S  # the epoch goes on
        self._run.later(seconds, lambda: kill(pid, last))
        return f"process {pid}"

    def _cut(self, fault: Fault) -> str:
        if self._run.parallelism == 1:
            return f"{self._kill_worker(fault)}, killed: it has no connections to others"
        return self._order(fault, "cut")[1]

    def _storage(self, fault: Fault) -> str:
        seconds = fault.detail["seconds"]
        if fault.kind == "storage fails":
            operation = fault.detail["operation"]
            what = "fail" if operation == "all" else f"fail {operation}"
        else:
            what = "slow:0.4" if fault.kind == "storage is slow" else "full write"
        self._run.storage.set(what)
        self._run.struck()
        try:
            self._run.wait(seconds)
        finally:
            self._run.storage.clear()
        return f"'{what}' for {seconds} s"

    def _truncated(self, fault: Fault) -> str:
        worker = self._worker(fault)
        self._run.storage.set("truncate read once")
        if fault.detail["to"] == "the driver":
            self._run.restart_driver(wait_for_orphans=False)
        else:
            kill(worker.pid)
            self._run.struck()
        return f"to {fault.detail['to']}"

    def _disk_full(self, fault: Fault) -> str:
        return self._order(fault, "full", str(fault.detail["seconds"]))[1]

    def _kill_executor(self, fault: Fault) -> str:
        def executors() -> list[int]:
            family = {pid for root in self._run.cluster_pids for pid in descendants(root)}
            return sorted(pid for pid in family if "CoarseGrainedExecutorBackend" in command_line(pid))

        pids = self._run.wait_for(executors, "an executor to kill", REACHED_S)
        pid = pids[int(fault.choice * len(pids))]
        kill(pid)
        self._run.struck()
        return f"process {pid}"

    def _at_point(self, point: str, action: str, fault: Fault) -> str:
        path = _one_shot(self._run.directories, point, action)
        path.touch()
        began = time.monotonic()
        if point == "storage.read":
            kill(self._worker(fault).pid)  # somebody has to restore something
        try:
            self._run.wait_for(lambda: not path.exists(), f"the fault point {point} to be reached", REACHED_S)
            self._run.struck()
        finally:
            path.unlink(missing_ok=True)
        return f"reached after {time.monotonic() - began:.1f} s"


def _one_shot(directories: Directories, point: str, action: str) -> Path:
    return directories.control / "points" / f"{point}.{action}"
