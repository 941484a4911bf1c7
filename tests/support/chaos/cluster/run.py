"""A chaos run of generated programs on a cluster of two JobManagers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from firesteel.testing.faulty_storage import StorageFaults
from tests.support.chaos.cluster.cluster import ChaosCluster
from tests.support.chaos.cluster.doomed import CANCELLING, FAILING, DoomedJobs
from tests.support.chaos.cluster.faults import ClusterInjector, NotReached
from tests.support.chaos.cluster.programs import Gate, ProgramJob, draw_jobs
from tests.support.chaos.namespace import mend_network
from tests.support.chaos.plan import Fault
from tests.support.chaos.processes import kill
from tests.support.chaos.reader import Violation
from tests.support.chaos.report import FaultReport, Report
from tests.support.chaos.timeline import Timeline
from tests.support.services.job_managers import submit

__all__ = ["ClusterRun"]

START_S = 360.0
RECOVERY_S = 360.0
PATIENCE_S = 20.0
"""How long the next fault waits for the recovery from those before, unless it is drawn to overlap."""
END_S = 600.0
STATUS_S = 3.0
STATUS_POLL_S = 0.01
POLL_INTERVAL_S = 0.5
TRICKLE_S = 10.0
"""How long the records of one fault last."""
LAST = 0.9
"""The share of the records that are read before the last fault has struck."""
ENDED = ("FINISHED", "FAILED", "CANCELED")


class ClusterRun(Timeline):
    """Carries out faults in a directory. ``say`` gets the timeline as it unfolds."""

    poll_s = 0.1

    def __init__(
        self,
        seed: int,
        faults: list[Fault],
        programs: int,
        root: Path,
        spark: str,
        store: str,
        say: Callable[[str], None],
    ):
        super().__init__(say)
        root.mkdir(parents=True)
        self.faults = faults
        self.storage = StorageFaults(root / "storage-faults")
        self.points = root / "points"
        self.points.mkdir()
        self.jobs = draw_jobs(seed, programs, root)
        self._gate = Gate(root / "gate")
        self._gate.open(0.0)
        self._wall_began = time.time()
        environment = {"TMPDIR": str(root / "tmp"), **ClusterInjector.environment(self.points, self.storage)}
        self.cluster = ChaosCluster(root, spark, store, environment, self.say)
        self._doomed = DoomedJobs(self.cluster, root, self.say)
        self.report = Report(seed, spark, store, True, {}, f"{programs} programs")
        self.statuses: Counter[str] = Counter()
        """The statuses of jobs in which faults have struck."""
        self._injector = ClusterInjector(self)
        self._ids: dict[str, ProgramJob] = {}
        self._completed: dict[str, int] = {}
        """The newest checkpoint of each job."""
        self._states: dict[str, str] = {}
        """Of the programs; the other jobs end on purpose."""
        self._statuses: Counter[str] = Counter()
        """Of all jobs."""
        self._baselines: dict[int, dict[str, int]] = {}
        self._unrecovered: list[FaultReport] = []
        self._looked_at = 0.0
        self._fault_began = self._began
        self._number = 0
        """Faults that have struck, or could not."""

    def execute(self) -> Report:
        """Runs it all; the report says whether it passed. Nothing is left running."""
        try:
            with ExitStack() as stack:
                stack.callback(self._close)
                self.cluster.start()
                self.wait_for(self.cluster.leader, "a leader", START_S)
                self._submit()
                self.wait_for(self._all_run, "all programs to run", START_S)
                self._go_on()
                self._end()
            self.report.passed = True
        except (Violation, AssertionError, OSError) as error:
            self.report.error = f"{type(error).__name__}: {error}"
        finally:
            self.report.seconds = round(time.monotonic() - self._began, 1)
            self.report.results = sum(job.results for job in self.jobs)
        return self.report

    def _submit(self) -> None:
        settings = {
            "execution.checkpointing.dir": str(self.cluster.checkpoints.path),
            "execution.checkpointing.tolerable-failed-checkpoints": "1000000",
            "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "200 ms",
            "task.cancellation.timeout": "20 s",
        }
        leader = self.cluster.leader()
        assert leader is not None
        for job in self.jobs:
            # an epoch may also have to start the workers it runs in
            settings["execution.checkpointing.timeout"] = "60 s" if job.phase.execution == "epochs" else "20 s"
            job_id = submit(leader, job.environment(settings, self._gate), job.program.seed)
            self._ids[job_id] = job
            self.say(f"  {job_id}: {job}")

    def _go_on(self) -> None:
        for number, fault in enumerate(self.faults, 1):
            if not fault.overlaps:
                self._wait_for_recovery(PATIENCE_S)
            self._fault_began = time.monotonic()
            self.wait(fault.pause_s)
            if number == len(self.faults):
                self._number = number
                self._gate.open(1.0)  # the last one strikes while jobs end
            self._inject(number, fault)
            self._number = number
        self._wait_for_recovery(RECOVERY_S)

    def _inject(self, number: int, fault: Fault) -> None:
        report = FaultReport(number, fault.kind, str(fault), overlapped=bool(self._unrecovered))
        self.report.faults.append(report)
        self.say(f"fault {number}/{len(self.faults)}: {fault}{' (overlapping)' if report.overlapped else ''}")
        if "amid" in fault.detail:
            self._await_status(fault)
        try:
            done = self._injector.inject(fault)
        except NotReached as reason:
            self.say(f"  {reason}")
            self.report.faults.remove(report)
            return
        self.say(f"  {done}; jobs were {report.statuses}")
        report.done = done
        self._unrecovered.append(report)

    def _await_status(self, fault: Fault) -> None:
        """Has a job leave RUNNING, and waits until one is in the status; goes on without it after a while."""
        if fault.detail["amid"] in (CANCELLING, FAILING):
            self._doomed.begin(fault.detail["amid"], self.wait_for)
        elif slots := self.cluster.slots():
            kill(slots[int(fault.choice * len(slots))])
        end = time.monotonic() + STATUS_S
        # some last for milliseconds only
        while fault.detail["amid"] not in self.cluster.states().values() and time.monotonic() < end:
            time.sleep(STATUS_POLL_S)
        self._look()

    def struck(self) -> None:
        """The fault that is being injected has just struck."""
        report = self.report.faults[-1]
        report.at = self._now()
        report.statuses = dict(self._statuses)
        self.statuses.update(report.statuses)
        self._baselines[report.number] = dict(self._completed)

    def _wait_for_recovery(self, seconds: float) -> None:
        """Waits until all jobs have recovered. What takes longer than is patient is overlapped by the next fault."""
        began = time.monotonic()
        self.wait_for(lambda: not self._unrecovered or time.monotonic() >= began + seconds, "", 2 * RECOVERY_S)
        if self._unrecovered and seconds >= RECOVERY_S:
            names = ", ".join(f"{report.number} ({report.planned})" for report in self._unrecovered)
            raise Violation(f"{seconds:g} s after faults {names} jobs do not take checkpoints: {self._states}")

    def _end(self) -> None:
        self.wait_for(lambda: not self._later, "faults to end", RECOVERY_S)
        self._gate.open(1.0)
        self.wait_for(
            lambda: set(self._states) >= set(self._ids) and set(self._states.values()) == {"FINISHED"},
            lambda: f"all jobs to finish; they are {self._states}",
            END_S,
        )
        self.wait_for(self._doomed.have_ended, "jobs to end that were cancelled, or have failed", END_S)
        wrong = [f"{job.program.seed}: {problem}" for job in self.jobs for problem in job.check()]
        if wrong:
            raise Violation("\n".join(wrong))

    # ---- what goes on meanwhile -------------------------------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        self._do_what_is_due(now)
        self.cluster.see_to_it()
        if now < self._looked_at + POLL_INTERVAL_S:
            return
        self._trickle(now)
        self._look()
        self._looked_at = time.monotonic()
        for report in [report for report in self._unrecovered if self._has_recovered(report)]:
            self._unrecovered.remove(report)
            report.recovered_after = round(self._now() - report.at, 2)
            self.say(f"  recovered from {report.number} after {report.recovered_after} s")
            self._check_surplus()

    def _trickle(self, now: float) -> None:
        if self._number < len(self.faults):
            part = min((now - self._fault_began) / TRICKLE_S, 1.0)
            self._gate.open(LAST * (self._number + part) / len(self.faults))

    def _look(self) -> None:
        states = self.cluster.states()
        self._statuses = Counter(state for state in states.values() if state not in ENDED)
        self._states = self._doomed.without(states)
        for job_id, state in self._states.items():
            if state in ("FAILED", "CANCELED") or (state == "FINISHED" and self._gate.share() < 1):
                raise Violation(f"program {self._ids[job_id].program.seed} has ended: {state}\n{self._why(job_id)}")
        leader = self.cluster.leader() if self._states else None
        for job_id in self._states if leader is not None else ():
            answer = self.cluster.ask(leader, f"/jobs/{job_id}/checkpoints")
            latest = (answer or {}).get("latest", {}).get("completed")
            if latest is not None:
                self._completed[job_id] = max(latest["id"], self._completed.get(job_id, 0))

    def _why(self, job_id: str) -> str:
        leader = self.cluster.leader()
        answer = None if leader is None else self.cluster.ask(leader, f"/jobs/{job_id}/exceptions")
        return str(answer)[:4000]

    def _all_run(self) -> bool:
        return len(self._completed) == len(self._ids) and set(self._states.values()) == {"RUNNING"}

    def _has_recovered(self, report: FaultReport) -> bool:
        """Whether every job runs and has taken a checkpoint that began after the fault, or has finished."""
        baseline = self._baselines[report.number]
        return set(self._states) >= set(self._ids) and all(
            state == "FINISHED" or (state == "RUNNING" and self._completed.get(job_id, 0) > baseline.get(job_id, 0) + 1)
            for job_id, state in self._states.items()
        )

    def _check_surplus(self) -> None:
        for job in self.jobs:
            wrong = job.surplus(self._wall_began)
            if wrong:
                raise Violation(f"{job.program.seed}: " + "\n  ".join(wrong[:10]))

    def _close(self) -> None:
        self.storage.clear()
        with suppress(OSError):
            mend_network()
        for _, action in self._later:
            with suppress(Exception):
                action()
        self.cluster.close()
