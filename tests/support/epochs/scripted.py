"""Epochs without tasks: a StageRunner that does what a list says, and jobs that run on it with a real JobMaster."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.errors import TaskFailure
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.epochs.host import EpochHost
from firesteel.execution.stages.stage_runner import EpochRun, StageError, StageMessage
from firesteel.execution.stages.task_commands import EpochCommand, EpochReport
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.jobmaster.model.events import Event
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.job_preparation import prepare_job
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    DeclineCheckpoint,
    JobMasterMessage,
    NotifyCheckpointComplete,
    RequestSplit,
    TaskStateChanged,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import (
    SPLIT,
    InlineBytes,
    OperatorStateHandle,
    OperatorSubtaskState,
    TaskStateSnapshot,
)
from firesteel.runtime.operators.sink import COMMITTABLES, SinkSpec
from firesteel.runtime.operators.source import SourceSpec
from firesteel.runtime.slot.mailbox import Clock
from firesteel.spi.sink import Committer, Sink, SinkWriter
from firesteel.testing import TestingSource

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Epoch:
    """What happens in one epoch; the sources read so many records each."""

    records: int = 0
    used_up: bool = False
    requests: int = 0
    """How many splits each reader asks for."""
    timer: int | None = None
    ready_in_ms: int | None = None
    pending: int | None = None
    ended: bool = False
    prepared: tuple[Any, ...] = ()
    """What subtask 0 of each sink prepares."""
    declined: str | None = None
    reloaded: bool = False
    says: tuple[StageMessage, ...] = ()
    mixed: bool = False


@dataclass(frozen=True)
class Fails:
    """The run fails: with an account of subtask 0 of the first vertex, or without."""

    message: str
    by_task: bool = False


@dataclass
class Waits:
    """The run lasts until it is cancelled, or the test lets it go on."""

    began: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)


Step = Epoch | Fails | Waits | Exception


class ScriptedStageRunner:
    """Plays one step per epoch; when there is none left, nothing is read any more."""

    def __init__(self, *steps: Step):
        self.steps = list(steps)
        self.runs: list[EpochRun] = []
        self.cancelled: list[str] = []
        self.closed = 0
        self._cancel = threading.Event()
        self._prepared: dict[str, list[tuple[int, Any]]] = {}

    def commands(self, run: int, vertex: int = 0) -> EpochCommand:
        """The command of subtask 0 of a vertex in a run."""
        commands = list(self.runs[run].commands.values())
        names = list(dict.fromkeys(command.descriptor.task.vertex_id for command in commands))
        return self.runs[run].commands[names[vertex], 0]

    def said(self, run: int, vertex: int = 0) -> list[JobMasterMessage]:
        """What subtask 0 of a vertex was told in a run."""
        return list(self.commands(run, vertex).messages)

    def run_batch(self, job_graph: JobGraph, commands: Mapping[Any, Any]) -> Sequence[StageMessage]:
        raise NotImplementedError

    def run_epoch(self, job_graph: JobGraph, epoch: EpochRun) -> Sequence[StageMessage]:
        step = self.steps.pop(0) if self.steps else Epoch()
        self.runs.append(epoch)
        if isinstance(step, Waits):
            self._cancel.clear()
            step.began.set()
            while not step.go_on.wait(0.002):
                if self._cancel.is_set():
                    raise StageError(f"cancelled: {self.cancelled[-1]}")
            step = Epoch()
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Fails):
            first = next(iter(epoch.commands.values())).descriptor.task
            failure = TaskFailure(step.message, "ValueError", first.name_with_subtask, first.operators[0].name)
            state = TaskStateChanged(first.attempt, first.vertex_id, 0, "FAILED", failure)
            raise StageError(step.message, [state] if step.by_task else ())
        said = list(step.says)
        for command in epoch.commands.values():
            said += self._task(command, step)
        return said

    def _task(self, command: EpochCommand, step: Epoch) -> list[StageMessage]:
        task = command.descriptor.task
        head = task.operators[0]
        key = task.vertex_id, task.subtask
        said: list[StageMessage] = []
        report = EpochReport(*key, command.epoch, ended=step.ended, reloaded=step.reloaded, run=str(command.epoch))
        if isinstance(head.spec, SourceSpec):
            said += [RequestSplit(task.attempt, key[0], head.operator_id, key[1])] * step.requests
            report = replace(
                report,
                records=step.records,
                ran_dry=not step.used_up,
                next_timer=step.timer,
                ready_in_ms=step.ready_in_ms,
                pending_records=step.pending,
            )
        if step.mixed:
            report = replace(report, read_runs={(0, 0): "another"}, output_edges=(0,))
        said.append(report)
        trigger = command.messages[-1]
        if isinstance(trigger, TriggerCheckpoint):
            number, states = trigger.checkpoint_id, self._states(command, step)
            if step.declined is not None:
                said.append(DeclineCheckpoint(task.attempt, number, *key, step.declined))
            else:
                state = TaskStateSnapshot(states, finished=step.ended)
                said.append(AcknowledgeCheckpoint(task.attempt, number, *key, state, CheckpointMetrics()))
        return said

    def _states(self, command: EpochCommand, step: Epoch) -> dict[str, OperatorSubtaskState]:
        """Like a SinkOperator: what was prepared stays until the task hears that it is committed."""
        task = command.descriptor.task
        states = {}
        for operator in task.operators:
            if isinstance(operator.spec, SinkSpec) and task.subtask == 0:
                prepared = self._prepared.setdefault(operator.operator_id, [])
                heard = (m.checkpoint_id for m in command.messages if isinstance(m, NotifyCheckpointComplete))
                complete = max(heard, default=0)
                prepared[:] = [pair for pair in prepared if pair[0] > complete]
                prepared += [(command.epoch, item) for item in step.prepared]
                items = [pickle.dumps(pair) for pair in prepared]
                handle = OperatorStateHandle(COMMITTABLES, SPLIT, len(items), InlineBytes(pickle.dumps(items)))
                states[operator.operator_id] = OperatorSubtaskState(operator=(handle,))
        return states

    def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)
        self._cancel.set()

    def close(self, on_closed: Callable[[], Any] | None = None) -> None:
        self.closed += 1


committed: list[Any] = []
"""What was committed: committers run in this process."""


class RecordingSink(Sink):
    """Commits into a list of this process; as many commits fail as ``failures`` says."""

    failures = 0

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        raise NotImplementedError("no task is run")

    def create_committer(self) -> Committer[Any]:
        return _Recorder()


class _Recorder(Committer[Any]):
    def commit(self, committables: Sequence[Any]) -> None:
        if RecordingSink.failures:
            RecordingSink.failures -= 1
            raise OSError("the store is full")
        committed.append(list(committables))

    def close(self) -> None:
        committed.append("closed")


class EavesdroppingHost(EpochHost):
    """Also keeps what was posted."""

    def __init__(self, runner: ScriptedStageRunner, clock: Clock | None = None):
        super().__init__(runner, clock)
        self.posted: list[Event] = []

    def start(self, attempt: Attempt, post: Post) -> None:
        def overheard(event: Event) -> None:
            self.posted.append(event)
            post(event)

        super().start(attempt, overheard)


class ScriptedJob:
    """A job of a source, a keyed function and a sink, whose epochs are scripted."""

    def __init__(
        self,
        *steps: Step,
        settings: Mapping[str, str] | None = None,
        parallelism: int = 2,
        splits: int = 0,
        clock: Clock | None = None,
        name: str = "scripted",
    ):
        self.stages = ScriptedStageRunner(*steps)
        configuration = Configuration().set_string("execution.exchange", "spark")
        configuration.set_string("execution.runtime-mode", "STREAMING")
        configuration.set_string("restart-strategy.type", "none")
        for key, value in (settings or {}).items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
        source = TestingSource.with_splits(*([1] for _ in range(splits or parallelism)), bounded=False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.key_by(lambda value: value).map(lambda value: value).name("keyed").sink_to(RecordingSink()).name("out")
        job_graph = create_job_graph(env._generate_stream_graph(name, clear=True))
        self.job = prepare_job(job_graph, single_host=True)
        self.host = EavesdroppingHost(self.stages, clock)
        self.runner = JobMasterRunner(self.job, self.host)

    def start(self) -> ScriptedJob:
        """Starts the job."""
        self.runner.start()
        return self

    def result(self) -> Any:
        """Waits for the end of the job."""
        return self.runner.result_future().result(DEADLINE_S)

    def cancel(self) -> None:
        """Ends the job."""
        self.runner.cancel().result(DEADLINE_S)
