"""Runs a program in some way and says what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firesteel.common.configuration import Configuration
from firesteel.common.errors import CheckpointError, FiresteelError
from firesteel.common.job_client import JobClient
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.programs.building import Site, build
from firesteel.testing.programs.comparing import compare
from firesteel.testing.programs.faults import Fault, Trip
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Mode
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.store_sink import read_store
from firesteel.testing.programs.threads import thread_dump
from firesteel.testing.programs.ways import Phase, Way

__all__ = ["InProcessRunner", "Outcome", "Runner", "check"]

DEADLINE_S = 60.0
_LOOK_S = 0.002


@dataclass
class Outcome:
    """What came of a run."""

    results: dict[int, list[Any]] = field(default_factory=dict)
    """The records of each sink by node id."""
    problem: str = ""
    """The job failed, or did not end in time; empty if neither."""
    details: str = ""
    happened: list[Fault] = field(default_factory=list)
    """The faults that came to pass."""
    phases: int = 0
    """How many phases were begun."""


class Runner(Protocol):
    """Something programs can be run on."""

    def run(self, program: Program, way: Way, directory: Path) -> Outcome:
        """Runs the program; returns within a deadline."""
        ...


class Hang(Exception):
    """A job did not do in time what it must do."""


@dataclass
class InProcessRunner:
    """Runs programs in a thread of this process."""

    deadline_s: float = DEADLINE_S

    def create_environment(self, configuration: Configuration) -> StreamExecutionEnvironment:
        """Returns the environment of a phase."""
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env._executor = InProcessExecutor()
        return env

    def run(self, program: Program, way: Way, directory: Path) -> Outcome:
        """Runs the program phase by phase."""
        return _Run(self, program, way, directory).run()


class _Run:
    def __init__(self, runner: InProcessRunner, program: Program, way: Way, directory: Path):
        self.runner = runner
        self.program = program
        self.way = way
        self.directory = directory
        self.outcome = Outcome()
        self.deadline = time.monotonic() + runner.deadline_s
        self.collected: dict[int, list[Any]] = {}
        self.client: JobClient | None = None

    def run(self) -> Outcome:
        tokens = self._arm()
        try:
            self._run_phases()
        except Hang as hang:
            self.outcome.problem = str(hang)
            self.outcome.details = thread_dump()
            self._give_up()
        except FiresteelError as error:
            self.outcome.problem = f"the job failed: {type(error).__name__}: {error}"
            self._give_up()
        self.outcome.results = self._results()
        self.outcome.happened = [fault for fault, token in tokens if not token.exists()]
        return self.outcome

    def _arm(self) -> list[tuple[Fault, Path]]:
        tokens = []
        for number, fault in enumerate(self.way.faults):
            token = self.directory / f"fault-{number}"
            token.touch()
            tokens.append((fault, token))
        self.trips = {
            fault.place: Trip(str(token), fault.at, "kill" if fault.kind == "kill" else "raise")
            for fault, token in tokens
            if fault.kind in ("user", "kill")
        }
        return tokens

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
        env = self.runner.create_environment(self._configuration(phase, savepoint))
        build(self.program, Site(env, self.directory, self.trips))
        self.client = client = env.execute_async(f"program {self.program.seed}")
        readers = [self._collect(client, sink) for sink in self.program.sinks if getattr(sink, "how", "") == "collect"]
        savepoint = self._drive(client, phase)
        for reader in readers:
            reader.join(max(0.0, self.deadline - time.monotonic()))
            if reader.is_alive():
                raise Hang("the job has ended, but not what it collects")
        return savepoint

    def _configuration(self, phase: Phase, savepoint: str | None) -> Configuration:
        configuration = Configuration()
        for key, value in phase.settings().items():
            configuration.set_string(key, value)
        configuration.set_string("execution.checkpointing.dir", str(self.directory / "checkpoints"))
        if savepoint is not None:
            configuration.set_string("execution.state-recovery.path", savepoint)
        return configuration

    def _collect(self, client: JobClient, sink: Any) -> threading.Thread:
        records = self.collected.setdefault(sink.id, [])
        iterator = client._handle.collect_iterator(sink.channel)  # type: ignore[attr-defined]
        reader = threading.Thread(target=lambda: records.extend(iterator), name=f"collect-{sink.id}", daemon=True)
        reader.start()
        return reader

    def _drive(self, client: JobClient, phase: Phase) -> str | None:
        if phase.stop_after is not None:
            self._await_checkpoints(client, phase.stop_after)
            savepoint = self._stop(client, drain=False)
            if savepoint is not None:
                return savepoint
        if not self.program.ends:
            self._await_results(client)
            self._stop(client, drain=True)
        self._await(lambda: client.get_job_execution_result().done(), "the job did not end")
        client.get_job_execution_result().result()
        return None

    def _stop(self, client: JobClient, *, drain: bool) -> str | None:
        """Stops a job with a savepoint; None if it had ended by itself."""
        stopped = client.stop_with_savepoint(drain, str(self.directory / "savepoints"))
        self._await(stopped.done, "the savepoint that ends the job did not come")
        try:
            path: str = stopped.result()
        except CheckpointError:
            if not _is_over(client):
                return self._stop(client, drain=drain)  # an injected fault hit the savepoint
            return None
        self._await(lambda: client.get_job_execution_result().done(), "the job did not end with its savepoint")
        client.get_job_execution_result().result()
        return path

    def _await_checkpoints(self, client: JobClient, count: int) -> None:
        def enough() -> bool:
            statistics = client._handle.checkpoint_statistics()  # type: ignore[attr-defined]
            return statistics["counts"]["completed"] >= count or _is_over(client)

        self._await(enough, f"{count} checkpoints did not complete")

    def _await_results(self, client: JobClient) -> None:
        """Waits for what must come out before the sources end."""
        expected = evaluate(self.program, Mode.STAY)
        missing: list[str] = []

        def complete() -> bool:
            missing[:] = compare(self.program, expected, self._results(), partial=True)
            return not missing or _is_over(client)

        try:
            self._await(complete, "results that do not need the end of the input are missing")
        except Hang as hang:
            raise Hang(f"{hang}: {missing}") from None

    def _await(self, condition: Callable[[], bool], problem: str) -> None:
        while not condition():
            if time.monotonic() > self.deadline:
                status = None if self.client is None else self.client.get_job_status().result().name
                raise Hang(f"{problem} within {self.runner.deadline_s:g} s; the job is {status}")
            time.sleep(_LOOK_S)

    def _give_up(self) -> None:
        if self.client is not None and not _is_over(self.client):
            self.client.cancel()


def _is_over(client: JobClient) -> bool:
    return bool(client.get_job_status().result().is_globally_terminal_state())


def check(program: Program, way: Way, outcome: Outcome) -> list[str]:
    """Returns what is wrong with the outcome of a run."""
    if outcome.problem:
        return [outcome.problem]
    mode = Mode.BATCH if way.phases[0].execution == "batch" else Mode.STREAM
    return compare(program, evaluate(program, mode), outcome.results)
