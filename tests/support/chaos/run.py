"""A chaos run: a job, its faults, a reader, and the judgement."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from firesteel.testing.faulty_storage import StorageFaults
from tests.support.chaos.faults import EPOCH_TIMEOUT_S, HEARTBEAT_TIMEOUT_S, Injector
from tests.support.chaos.job import Directories, write_limit
from tests.support.chaos.log import GrowingLog
from tests.support.chaos.plan import EPOCHS, PARALLELISM, Fault, Plan
from tests.support.chaos.processes import ROOT, DriverProcess
from tests.support.chaos.reader import OutputReader, Violation, WatchingReader
from tests.support.chaos.report import FaultReport, Report
from tests.support.chaos.stream import Expectations
from tests.support.chaos.timeline import Timeline
from tests.support.services.standalone_cluster import SHORT_LIVED, StandaloneCluster

__all__ = ["ChaosRun"]

START_DEADLINE_S = 360.0
RECOVERY_DEADLINE_S = 360.0
ORPHANS_S = 120.0
GIVES_UP_S = 60.0
"""How long a driver that cannot read what it is to restore may take to end."""
TASK_FAILURES = 4
"""How often Spark runs a task where it is told to do so again."""
Say = Callable[[str], None]


class ChaosRun(Timeline):
    """Carries out a plan in a directory. ``say`` gets the timeline as it unfolds."""

    poll_s = 0.03

    def __init__(self, plan: Plan, root: Path, say: Say):
        super().__init__(say)
        self.plan = plan
        self.directories = Directories(root).create()
        self.storage = StorageFaults(self.directories.control / "storage")
        self.cluster_pids: Iterable[int] = ()
        self.report = Report(plan.seed, plan.backend, plan.mode, plan.cluster, plan.settings, plan.execution)
        self._reader = WatchingReader(OutputReader(self.directories.output, self.directories.limit))
        self._clock = GrowingLog(self.directories.limit)
        self._injector = Injector(self)
        self._cluster: StandaloneCluster | None = None
        self._drivers: list[DriverProcess] = []
        self._unrecovered: list[FaultReport] = []
        self._looked_at = 0.0
        self._attempts: set[tuple[int, int]] = set()
        self._storage_was_bad_at = float("-inf")
        self.parallelism = PARALLELISM
        self._execution = plan.execution

    @property
    def driver(self) -> DriverProcess:
        """The latest driver."""
        return self._drivers[-1]

    def execute(self) -> Report:
        """Runs it all; the report says whether it passed. Nothing is left running."""
        try:
            with ExitStack() as stack:
                stack.callback(self._close)
                if self.plan.cluster:
                    self._start_cluster()
                self._reader.start()
                stack.callback(self._reader.stop)
                self._start_driver()
                self.wait_for(self._injector.board.slots, "the first slots", START_DEADLINE_S)
                self._clock.start()
                stack.callback(self._clock.stop)
                self._go_on()
            self.report.passed = True
        except (Violation, AssertionError) as error:
            self.report.error = f"{type(error).__name__}: {error}"
        finally:
            self.report.seconds = round(time.monotonic() - self._began, 1)
            self.report.drivers = len(self._drivers)
            self.report.attempts = len(self._attempts)
            self.report.results = self._reader.reader.records
            self.report.files = self._reader.reader.files
        return self.report

    def _go_on(self) -> None:
        self.wait_for(lambda: self._reader.reader.records > 0, "the first output", RECOVERY_DEADLINE_S)
        for number, fault in enumerate(self.plan.faults, 1):
            if not fault.overlaps:
                self._wait_for_recovery()
            self.wait(fault.pause_s)
            self._inject(number, fault)
        self._wait_for_recovery()
        self.wait_for(lambda: not self._later, "stopped workers to be released", RECOVERY_DEADLINE_S)
        self._end()

    def _inject(self, number: int, fault: Fault) -> None:
        report = FaultReport(number, fault.kind, str(fault), overlapped=bool(self._unrecovered))
        self.report.faults.append(report)
        self._unrecovered.append(report)
        self.say(f"fault {number}/{len(self.plan.faults)}: {fault}{' (overlapping)' if report.overlapped else ''}")
        report.done = self._injector.inject(fault)

    def struck(self) -> None:
        """The fault that is being injected has just struck: recovery is what happens to records from now on."""
        report = self.report.faults[-1]
        report.at = self._now()
        report.events_before = self._clock.count
        report.attempts_before = len(self._attempts)

    def _wait_for_recovery(self) -> None:
        if self._unrecovered:
            names = ", ".join(f"{report.number} ({report.planned})" for report in self._unrecovered)
            self.wait_for(lambda: not self._unrecovered, f"new output after fault {names}", RECOVERY_DEADLINE_S)

    def _end(self) -> None:
        """Lets the log end, first for now and then for good: alarms in processing time need the job to be there."""
        self.report.events = count = self._clock.finish()
        expected = Expectations()
        expected.advance(count)
        alarms = sum(len(numbers) for (kind, _), numbers in expected.results.items() if kind == "alarm")
        reader = self._reader.reader
        self.wait_for(
            lambda: reader.count("sum") == count and reader.count("alarm") == alarms,
            lambda: (
                f"all {count} sums and {alarms} alarms ({reader.count('sum')} and {reader.count('alarm')} are there)"
            ),
            RECOVERY_DEADLINE_S,
        )
        write_limit(self.directories.limit, count, True)
        driver = self.driver
        self.wait_for(lambda: driver.process.poll() is not None, "the job to end", RECOVERY_DEADLINE_S)
        self.wait_for_orphans(driver)
        self._reader.stop()
        if self._reader.violation is not None:
            raise self._reader.violation
        reader.finish(count)
        # a warning may come after it, when the interpreter shuts down
        end = next((event for event in reversed(self._story()) if event["what"] == "ended"), {})
        if end.get("status") != "FINISHED":
            raise Violation(f"the job ended with {end}")
        self.report.checkpoints = end["checkpoints"]
        self._check_left_over()

    def _check_left_over(self) -> None:
        job = next(event["job"] for event in reversed(self._story()) if event["what"] == "started")
        directory = self.directories.checkpoints
        files = {str(path.relative_to(directory)): path.stat().st_size for path in _files(directory)}
        own = [name for name in files if name.startswith(job)]
        hidden = [str(path) for path in _files(self.directories.output) if ".inprogress" in path.parts]
        self.report.left_over = {
            "files in the checkpoint directory": len(files),
            "bytes in the checkpoint directory": sum(files.values()),
            "hidden files in the output": len(hidden),
            "entries among temporary files": len(list((self.directories.root / "tmp").iterdir())),
        }
        if own:
            raise Violation(f"the finished job has left {len(own)} files in its checkpoint directory: {own[:8]}")

    # ---- what injectors use -----------------------------------------------------------------------

    def restart_driver(
        self, wait_for_orphans: bool, parallelism: int | None = None, execution: str | None = None
    ) -> None:
        """Kills the driver and starts the next, perhaps at another parallelism or executed otherwise from now on."""
        driver = self.driver
        self.parallelism = parallelism or self.parallelism
        self._execution = execution or self._execution
        driver.kill()
        self.struck()
        if wait_for_orphans:
            self.wait_for_orphans(driver)
        self._start_driver()

    def wait_for_output(self) -> None:
        """Waits for output of a record that came after the fault had struck."""
        report = self.report.faults[-1]
        reader = self._reader.reader
        self.wait_for(
            lambda: reader.highest_index >= report.events_before, f"output amid {report.planned}", RECOVERY_DEADLINE_S
        )

    def wait_for_orphans(self, driver: DriverProcess) -> None:
        """Waits until nothing that a dead driver had started runs any more."""
        end = time.monotonic() + ORPHANS_S
        while driver.family.alive():
            if time.monotonic() >= end:
                raise Violation(f"of a driver that ended {ORPHANS_S:g} s ago still run: {driver.family.describe()}")
            time.sleep(self.poll_s)

    # ---- what goes on meanwhile -------------------------------------------------------------------

    def _tick(self) -> None:
        if self._reader.violation is not None:
            raise self._reader.violation
        now = time.monotonic()
        if self.storage_is_bad():
            self._storage_was_bad_at = now
        self._do_what_is_due(now)
        self._attempts |= {slot.number for slot in self._injector.board.slots()}
        for report in [report for report in self._unrecovered if self._has_recovered(report)]:
            self._unrecovered.remove(report)
            report.recovered_after = round(self._now() - report.at, 2)
            report.attempts = len(self._attempts) - report.attempts_before
            self.say(
                f"  recovered from {report.number} after {report.recovered_after} s, in attempt {max(self._attempts)}"
                f" ({report.done})"
            )
        if now >= self._looked_at + 0.5:
            self._looked_at = now
            self.driver.family.look(self.driver.process.pid)
            self._check_violations()
        self._see_to_driver()

    def storage_is_bad(self) -> bool:
        """Whether a fault of storage is in force."""
        return (self.directories.control / "storage").exists()

    def _has_recovered(self, report: FaultReport) -> bool:
        return report.done != "" and self._reader.reader.highest_index >= report.events_before

    def _check_violations(self) -> None:
        found = sorted((self.directories.control / "violations").iterdir())
        if found:
            raise Violation("; ".join(path.read_text() for path in found[:5]))

    def _see_to_driver(self) -> None:
        """A driver that died because of a fault is started again, as whoever runs a cluster would do."""
        driver = self.driver
        code = driver.process.poll()
        if code is None or code == 0:
            return
        words = self._last_words(driver)
        if code == -signal.SIGKILL:
            self.say(f"  driver {driver.run} was killed by a fault point")
        elif time.monotonic() < self._storage_was_bad_at + GIVES_UP_S or "fault injected at" in words:
            # it says so when it is submitted: whoever did that tries again
            self.say(f"  driver {driver.run} gave up because of a fault: {words.strip().splitlines()[-1]}")
        else:
            raise Violation(f"the driver ended with {code}: {words}")
        self._start_driver()

    def _last_words(self, driver: DriverProcess) -> str:
        ends = [event for event in self._story() if event["run"] == driver.run and event["what"] == "ended"]
        return str(ends[-1]["error"]) if ends else driver.log.read_text(errors="replace")[-2000:]

    def _start_driver(self) -> None:
        restored = self._newest_checkpoint()
        if restored is None and self._reader.reader.records:
            raise Violation("there is output, but no complete checkpoint to go on from")
        configuration = self._configuration()
        if restored is not None:
            configuration["execution.state-recovery.path"] = str(restored)
            configuration["execution.state-recovery.claim-mode"] = "CLAIM"
        run = len(self._drivers)
        self._drivers.append(DriverProcess(self.directories, run, configuration, self._environment()))
        self.say(f"  driver {run} starts, from {'the beginning' if restored is None else restored}")

    def _newest_checkpoint(self) -> Path | None:
        """The directory of the job that has the newest complete checkpoint of all."""
        found = []
        for path in self.directories.checkpoints.glob("*/chk-*/_metadata"):
            try:
                found.append((path.stat().st_mtime_ns, path.parents[1]))
            except FileNotFoundError:
                continue  # subsumed meanwhile, by a process that is about to end
        return max(found)[1] if found else None

    def _configuration(self) -> dict[str, str]:
        configuration = {
            "parallelism.default": str(self.parallelism),
            "spark.master": f"local[{self.parallelism}]",
            "state.backend.type": self.plan.backend,
            "execution.checkpointing.interval": "400 ms",
            "execution.checkpointing.timeout": "8 s",
            "execution.checkpointing.dir": str(self.directories.checkpoints),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.buffer-timeout.interval": "20 ms",
            "pipeline.auto-watermark-interval": "50 ms",
            "heartbeat.interval": "500 ms",
            "heartbeat.timeout": f"{HEARTBEAT_TIMEOUT_S:g} s",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "task.cancellation.timeout": "10 s",
            **self.plan.settings,
        }
        if self._execution == EPOCHS:
            configuration |= {
                "execution.exchange": "spark",
                "execution.epoch.target-duration": "200 ms",
                "execution.epoch.idle-interval": "50 ms",
                "execution.checkpointing.timeout": f"{EPOCH_TIMEOUT_S:g} s",
            }
            if self.plan.retries:
                configuration |= {
                    "spark.master": f"local[{self.parallelism}, {TASK_FAILURES}]",
                    "spark.task.maxFailures": str(TASK_FAILURES),
                    "spark.stage.maxConsecutiveAttempts": str(TASK_FAILURES),
                }
        if self.plan.mode != "aligned":
            configuration["execution.checkpointing.unaligned.enabled"] = "true"
            if self.plan.mode == "timeout":
                configuration["execution.checkpointing.aligned-checkpoint-timeout"] = "30 ms"
        if self._cluster is not None:
            configuration |= {
                "spark.master": self._cluster.url,
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.executor.extraJavaOptions": SHORT_LIVED,
                "spark.executorEnv.PYTHONPATH": str(ROOT),
            }
            configuration |= {f"spark.executorEnv.{name}": value for name, value in self._environment().items()}
        return configuration

    def _environment(self) -> dict[str, str]:
        return {
            "TMPDIR": str(self.directories.root / "tmp"),
            **Injector.environment(self.directories, self.storage),
        }

    def _start_cluster(self) -> None:
        directory = self.directories.root / "cluster"
        directory.mkdir()
        self._cluster = StandaloneCluster(directory)
        workers = self._cluster.add_workers(PARALLELISM)
        self.cluster_pids = [worker.pid for worker in workers]

    def _close(self) -> None:
        self.storage.clear()
        for _, action in self._later:
            action()
        for driver in self._drivers:
            driver.close()
        if self._cluster is not None:
            self._cluster.close()

    def _story(self) -> list[dict[str, Any]]:
        path = self.directories.control / "story.jsonl"
        return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []

    def account(self) -> str:
        """For a run that failed: the faults, and what the job itself tells."""
        lines = [f"seed {self.plan.seed}, {self.plan.backend}, {self.plan.mode}, settings {self.plan.settings}"]
        lines += [
            f"  [{report.at:7.2f}] {report.number} {report.planned}; {report.done}; recovered {report.recovered_after}"
            for report in self.report.faults
        ]
        began = time.time() - (time.monotonic() - self._began)
        lines.append("what the job tells:")
        for event in self._story()[-30:]:
            details = {key: value for key, value in event.items() if key not in ("at", "traceback")}
            lines.append(f"  [{event['at'] - began:7.2f}] {details}")
        lines.append(f"the last driver's own words: {self.driver.log.read_text(errors='replace')[-1500:]}")
        return "\n".join(lines)


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())
