"""A soak: three jobs on a cluster for a long time, restarted again and again, with everything measured meanwhile."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import eventually
from tests.support.chaos.faults import Slot, SlotBoard
from tests.support.chaos.processes import ROOT, kill
from tests.support.processes import exit_by_sigterm
from tests.support.services.job_managers import JobManagerProcess, submit
from tests.support.services.standalone_cluster import SHORT_LIVED, StandaloneCluster
from tests.support.soak.jobs import JOBS, PARALLELISM, SoakJob, build, check
from tests.support.soak.measures import directory_measures, live_heaps, process_measures, roles
from tests.support.soak.verdict import Sample, as_table, trends

__all__ = ["Soak", "main"]

RESTART_S = 120.0
SAMPLE_S = 30.0
HEAP_S = 300.0
DEADLINE_S = 300.0
IDLE_S = 15.0
"""After so long without a restart another slot is chosen."""
POLL_S = 0.2
WORKERS = 2
Say = Callable[[str], None]


class Soak:
    """A run in a directory. ``say`` gets the timeline as it unfolds."""

    def __init__(self, directory: Path, minutes: float, say: Say):
        self.minutes = minutes
        self.samples: list[Sample] = []
        self.restarts: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.records: dict[str, int] = {}
        self._directory = directory
        self._say_to = say
        self._control = directory / "control"
        self._board = SlotBoard(self._control / "slots")
        self._measured = {name: directory / name for name in ("checkpoints", "state", "temporary")}
        for path in (*self._measured.values(), *(self._control / name for name in ("slots", "orders"))):
            path.mkdir(parents=True)
        self._ids: dict[int, str] = {}
        self._began = time.monotonic()

    def run(self) -> None:
        """Runs it all; ``problems`` has what was wrong. Nothing is left running."""
        with ExitStack() as stack:
            (self._directory / "spark").mkdir()
            self._spark = StandaloneCluster(self._directory / "spark")
            stack.callback(self._spark.close)
            # a job in epochs has a slot, and uses more as they are free
            self._spark.add_workers(WORKERS, cores=PARALLELISM * len(JOBS) // WORKERS)
            (self._directory / "cluster").mkdir()
            self._manager = JobManagerProcess(
                self._directory / "cluster", self._settings(), {"TMPDIR": str(self._measured["temporary"])}
            )
            stack.callback(self._manager.close)
            self._manager.url()
            eventually(self._manager.leads, timeout=DEADLINE_S)
            self._submit()
            self._began = time.monotonic()
            self._go_on()
            self._stop()

    def report(self) -> dict[str, Any]:
        """For JSON."""
        found = trends(self.samples, self.minutes)
        return {
            "minutes": self.minutes,
            "problems": self.problems,
            "grows": [trend.name for trend in found if trend.grows],
            "records": self.records,
            "restarts": self.restarts,
            "trends": [trend.as_dict() for trend in found],
            "samples": [{"minute": sample.minute, **sample.measures} for sample in self.samples],
        }

    def _settings(self) -> dict[str, str]:
        temporary = self._measured["temporary"]
        java = f"{SHORT_LIVED} -Djava.io.tmpdir={temporary}"
        return {
            "spark.master": self._spark.url,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": java,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": java,
            "spark.executorEnv.PYTHONPATH": str(ROOT),
            "spark.executorEnv.TMPDIR": str(temporary),
            "state.backend.rocksdb.localdir": str(self._measured["state"]),
        }

    def _submit(self) -> None:
        for job in JOBS:
            settings = {
                "execution.checkpointing.interval": "1 s",
                "execution.checkpointing.dir": str(self._measured["checkpoints"]),
                "execution.checkpointing.savepoint-dir": str(self._directory / "savepoints"),
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "1000000",
                "restart-strategy.fixed-delay.delay": "200 ms",
                **job.settings,
            }
            env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
            build(env, job, self._output(job), self._control)
            self._ids[job.number] = submit(self._manager, env, job.name)
        for job in JOBS:
            eventually(lambda job=job: self._runs(job), timeout=DEADLINE_S, interval=POLL_S)
            self._say(f"{job.name}: {self._ids[job.number]} runs")

    def _runs(self, job: SoakJob) -> bool:
        details = self._manager.get(f"/jobs/{self._ids[job.number]}")
        return details["state"] == "RUNNING" and bool(self._board.slots(job.number))

    def _output(self, job: SoakJob) -> Path:
        return self._directory / f"output-{job.number}"

    # ---- while it runs ----------------------------------------------------------------------------

    def _go_on(self) -> None:
        seconds = self.minutes * 60
        every = min(SAMPLE_S, seconds / 40)
        restarted = 0
        heaps = 0
        while (now := time.monotonic() - self._began) < seconds:
            if now >= every * len(self.samples):
                heap = now >= min(HEAP_S, seconds / 6) * heaps
                heaps += heap
                self._sample(heap)
            if now >= (restarted + 1) * RESTART_S / len(JOBS):
                turn, number = divmod(restarted, len(JOBS))
                self._restart(JOBS[number], "an exception" if turn % 2 == 0 else "a kill")
                restarted += 1
            time.sleep(POLL_S)
        self._sample(heap=True)

    def _sample(self, heap: bool) -> None:
        by_role = roles(self._manager.pid, self._spark.pids)
        measures = process_measures(by_role) | directory_measures(self._measured | {"Spark": self._directory / "spark"})
        if heap:
            measures |= live_heaps(by_role)
        self.samples.append(Sample(round(self._minute(), 3), measures))
        for job in JOBS:
            state = self._manager.get(f"/jobs/{self._ids[job.number]}")["state"]
            if state in ("FAILED", "FINISHED", "CANCELED"):
                raise AssertionError(f"{job.name} has ended: {state}")

    def _restart(self, job: SoakJob, how: str) -> None:
        began = time.monotonic()
        turn = len(self.restarts) // len(JOBS)
        slot = self._kill(job, turn) if how == "a kill" else self._fail(job, turn)
        seconds = round(time.monotonic() - began, 1)
        self.restarts.append(
            {"minute": round(self._minute(), 2), "job": job.name, "by": how, "pid": slot.pid, "seconds": seconds}
        )
        self._say(f"{job.name}: restarted by {how} in process {slot.pid}, runs again after {seconds} s")

    def _kill(self, job: SoakJob, turn: int) -> Slot:
        """Kills a slot. In epochs that costs the epoch, and no attempt: new checkpoints show that the job goes on."""
        slots = self._slots(job)
        slot = slots[turn % len(slots)]
        before = self._newest_checkpoint(job)
        kill(slot.pid)

        def goes_on() -> None:
            assert self._newest_checkpoint(job) > before + 1, f"{job.name} takes no checkpoints"

        eventually(goes_on, timeout=DEADLINE_S, interval=POLL_S)
        return slot

    def _newest_checkpoint(self, job: SoakJob) -> int:
        latest = self._manager.get(f"/jobs/{self._ids[job.number]}/checkpoints")["latest"]["completed"]
        return 0 if latest is None else int(latest["id"])

    def _fail(self, job: SoakJob, turn: int) -> Slot:
        """Has user code raise an exception in some slot."""
        attempt = self._slots(job)[0].attempt
        end = time.monotonic() + DEADLINE_S
        while True:
            slots = self._slots(job)
            slot = slots[turn % len(slots)]
            (self._control / "orders" / f"{slot.pid}.raise").write_text(job.place)
            try:
                eventually(lambda: self._is_later(job, attempt), timeout=IDLE_S, interval=POLL_S)
            except AssertionError:
                # in epochs, Spark may have no use for that process any more
                assert time.monotonic() < end, f"{job.name} does not fail"
                turn += 1
            else:
                return slot

    def _slots(self, job: SoakJob) -> list[Slot]:
        def found() -> list[Slot]:
            slots = self._board.slots(job.number)
            assert slots, f"{job.name} has no slots"
            return slots

        return eventually(found, timeout=DEADLINE_S, interval=POLL_S)

    def _is_later(self, job: SoakJob, attempt: int) -> None:
        state = self._manager.get(f"/jobs/{self._ids[job.number]}")["state"]
        slots = self._board.slots(job.number)
        assert state == "RUNNING", f"{job.name} is {state}"
        assert slots, f"{job.name} has no slots"
        assert slots[0].attempt > attempt, f"{job.name} is still in attempt {attempt}"

    def _stop(self) -> None:
        for job in JOBS:
            self._manager.post(f"/jobs/{self._ids[job.number]}/stop", {"drain": True})
        for job in JOBS:
            eventually(lambda job=job: self._has_finished(job), timeout=DEADLINE_S, interval=POLL_S)
            records, problems = check(job, self._output(job))
            self.records[job.name] = records
            self.problems += [f"{job.name}: {problem}" for problem in problems[:10]]
            self._say(f"{job.name}: {records} records, {'; '.join(problems[:3]) or '0 lost, 0 twice'}")

    def _has_finished(self, job: SoakJob) -> None:
        state = self._manager.get(f"/jobs/{self._ids[job.number]}")["state"]
        assert state == "FINISHED", f"{job.name} is {state}"

    def _minute(self) -> float:
        return (time.monotonic() - self._began) / 60

    def _say(self, text: str) -> None:
        self._say_to(f"[{self._minute():6.2f}] {text}")


def main(arguments: list[str] | None = None) -> int:
    """Runs a soak and prints what is flat and what grows; 1 if anything grows or the output is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all samples")
    parser.add_argument("--directory", help="where to work; a temporary one by default")
    options = parser.parse_args(arguments)
    exit_by_sigterm()
    with tempfile.TemporaryDirectory(
        prefix="firesteel-soak-", dir=options.directory, ignore_cleanup_errors=True
    ) as directory:
        soak = Soak(Path(directory), options.minutes, _say)
        try:
            soak.run()
        except Exception as error:  # what was measured until then is shown in any case
            soak.problems.append(f"{type(error).__name__}: {error}")
        finally:
            report = soak.report()
            if options.json:
                options.json.write_text(json.dumps(report, indent=1))
    sys.stdout.write(as_table(trends(soak.samples, soak.minutes)))
    sys.stdout.write("".join(f"{line}\n" for line in report["problems"]))
    sys.stdout.write(f"grows: {', '.join(report['grows']) or 'nothing'}; {len(soak.restarts)} restarts\n")
    return 1 if report["problems"] or report["grows"] else 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
