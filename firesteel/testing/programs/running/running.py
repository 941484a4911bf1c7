"""Runs programs in this process, or on the executor of an environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.process import fault_points
from firesteel.runtime.slot.thread_dump import dump_threads
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.programs.comparing import compare
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Mode
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.results import Outcome
from firesteel.testing.programs.running.building import Site, build
from firesteel.testing.programs.running.faults import Fault, Trip
from firesteel.testing.programs.running.invariants import SchedulerWatch, TimerWatch
from firesteel.testing.programs.running.job import Hang, RunningJob
from firesteel.testing.programs.running.store_sink import read_store
from firesteel.testing.programs.running.ways import Phase, Way
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault

__all__ = ["EnvironmentRunner", "InProcessRunner"]

DEADLINE_S = 60.0


@dataclass
class EnvironmentRunner:
    """Runs programs where the environment of this process runs them: on Spark."""

    deadline_s: float = DEADLINE_S
    build: Callable[[Any, str, Mapping[str, Trip]], None] | None = None
    """Makes the program's streams in an environment; None to make them from the program's nodes."""

    def create_environment(self, configuration: Configuration, tasks: Sequence[Fault]) -> StreamExecutionEnvironment:
        """Returns the environment of a phase. ``tasks`` are the faults of tasks that are still to come."""
        return StreamExecutionEnvironment.get_execution_environment(configuration)

    def arm(self, points: str) -> None:
        """Sets the fault points of all processes; an empty text disarms them."""

    def happened(self, faults: Sequence[Fault]) -> list[Fault]:
        """Returns those faults of tasks that came to pass."""
        return []

    def run(self, program: Program, way: Way, directory: Path) -> Outcome:
        """Runs the program phase by phase."""
        return _Run(self, program, way, directory).run()


class InProcessRunner(EnvironmentRunner):
    """Runs programs in a thread of this process."""

    def __init__(self, deadline_s: float = DEADLINE_S, build: Callable[..., None] | None = None):
        super().__init__(deadline_s, build)
        self._stages: list[InProcessStageRunner] = []

    def create_environment(self, configuration: Configuration, tasks: Sequence[Fault]) -> StreamExecutionEnvironment:
        """Returns an environment without Spark."""
        faults = [TaskFault(FaultKind(fault.place), epoch=fault.at) for fault in tasks]

        def create_stages() -> InProcessStageRunner:
            stages = InProcessStageRunner(faults, seed=len(self._stages))
            self._stages.append(stages)
            return stages

        env = super().create_environment(configuration, tasks)
        env._executor = InProcessExecutor(create_stages=create_stages)
        return env

    def run(self, program: Program, way: Way, directory: Path) -> Outcome:
        """Runs the program, and looks at what it keeps in memory and whether its tasks take turns."""
        with TimerWatch() as timers, SchedulerWatch() as scheduler:
            outcome = super().run(program, way, directory)
        outcome.problem = outcome.problem or timers.problem or scheduler.problem
        return outcome

    def arm(self, points: str) -> None:
        """Sets the fault points of this process."""
        fault_points.arm(points)

    def happened(self, faults: Sequence[Fault]) -> list[Fault]:
        """Looks which faults the stages have left."""
        left = [(fault.kind.value, fault.epoch) for stages in self._stages[-1:] for fault in stages.faults]
        return [fault for fault in faults if self._stages and (fault.place, fault.at) not in left]


class _Run:
    def __init__(self, runner: EnvironmentRunner, program: Program, way: Way, directory: Path):
        self.runner = runner
        self.program = program
        self.way = way
        self.directory = directory
        self.outcome = Outcome()
        self.deadline = time.monotonic() + runner.deadline_s
        self.collected: dict[int, list[Any]] = {}
        self.job: RunningJob | None = None
        self.tokens = {fault: directory / f"fault-{number}" for number, fault in enumerate(way.faults)}
        self.checkpoints = directory / "checkpoints"
        self.trips = {
            fault.place: Trip(fault, token, self.checkpoints)
            for fault, token in self.tokens.items()
            if fault.is_in_function
        }

    def run(self) -> Outcome:
        for token in self.tokens.values():
            token.touch()
        try:
            self._run_phases()
        except Hang as hang:
            self.outcome.problem = f"hangs: {hang}"
            self.outcome.details = "\n".join(thread.stack for thread in dump_threads())
        except Exception as error:  # noqa: BLE001 - nothing a program does may raise
            self.outcome.problem = f"fails: {type(error).__name__}: {error}"
        finally:
            self.runner.arm("")
            if self.job is not None:
                self.job.give_up()
        self.outcome.results = self._results()
        self.outcome.happened += [fault.label for fault in self._happened()]
        return self.outcome

    def _happened(self) -> list[Fault]:
        tasks = [fault for fault in self.way.faults if fault.kind == "task"]
        others = [fault for fault in self.way.faults if fault.kind != "task"]
        return [fault for fault in others if not self.tokens[fault].exists()] + self.runner.happened(tasks)

    def _results(self) -> dict[int, list[Any]]:
        return {
            sink.id: list(self.collected[sink.id])
            if sink.id in self.collected
            else read_store(self.directory / f"sink-{sink.id}")
            for sink in self.program.sinks
        }

    def _run_phases(self) -> None:
        savepoint: str | None = None
        for phase in self.way.phases:
            self.outcome.phases += 1
            savepoint = self._run_phase(phase, savepoint)
            if savepoint is None:
                return

    def _run_phase(self, phase: Phase, savepoint: str | None) -> str | None:
        """Returns the savepoint to go on from; None if the job has ended."""
        self.runner.arm("")
        job = self._start(phase, savepoint)
        self.runner.arm(self._points())
        if "storage." in self._points(started=True) or any(action.kind == "storage" for action in phase.actions):
            # a job whose storage fails from the start is refused
            job.await_checkpoints(1)
            self.runner.arm(self._points(started=True))
        for action in phase.actions:
            if job.act(action):
                self.outcome.happened.append(action.label)
        if phase.stop_after is not None:
            job.await_checkpoints(phase.stop_after)
            savepoint = job.stop(drain=False)
            if savepoint is not None:
                return savepoint
        if not self.program.ends and not job.is_over:
            self._await_results(job)
            job.stop(drain=True)
        job.await_end()
        return None

    def _start(self, phase: Phase, savepoint: str | None) -> RunningJob:
        configuration = Configuration()
        for key, value in phase.settings().items():
            configuration.set_string(key, value)
        configuration.set_string("execution.checkpointing.dir", str(self.checkpoints))
        if savepoint is not None:
            configuration.set_string("execution.state-recovery.path", savepoint)
        if any(action.kind == "storage" for action in phase.actions):
            faults = RunningJob.storage_of(self.directory)
            configuration.set_string(*faults.setting)
        tasks = [fault for fault in self.way.faults if fault.kind == "task"]
        env = self.runner.create_environment(configuration, tasks)
        if self.runner.build is None:
            build(self.program, Site(env, self.directory, self.trips))
        else:
            self.runner.build(env, str(self.directory), self.trips)
        client = env.execute_async(f"program {self.program.seed}")
        self.job = job = RunningJob(client, self.program, self.directory, self.deadline)
        for sink in self.program.sinks:
            if getattr(sink, "how", "") == "collect":
                job.collect(sink.channel, self.collected.setdefault(sink.id, []))  # type: ignore[attr-defined]
        return job

    def _points(self, *, started: bool = False) -> str:
        """Returns the fault points that are still to be reached, without those of storage until the job has started."""
        return ",".join(
            f"{fault.place}=raise#{fault.at}@{token}"
            for fault, token in self.tokens.items()
            if fault.kind == "point" and token.exists() and (started or not fault.place.startswith("storage."))
        )

    def _await_results(self, job: RunningJob) -> None:
        """Waits for what must come out before the sources end."""
        expected = evaluate(self.program, Mode.STAY)
        missing: list[str] = []
        next_look = 0.0

        def complete() -> bool:
            nonlocal next_look
            began = time.monotonic()
            if began < next_look:
                return job.is_over
            missing[:] = compare(self.program, expected, self._results(), partial=True)
            ended = time.monotonic()
            next_look = ended + 4 * (ended - began)  # the job needs the processor too
            return not missing or job.is_over

        try:
            job.await_(complete, "results that do not need the end of the input did not come")
        except Hang as hang:
            raise Hang(f"{hang}: {missing}") from None
