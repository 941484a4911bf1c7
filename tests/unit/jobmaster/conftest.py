"""A harness around the JobMaster: plays clock, host and slots, and checks invariants after every event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.job_graph import ChainedOperator, JobGraph, JobVertex
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.events import (
    AttemptEnded,
    CancelJob,
    Event,
    MessageReceived,
    SlotLost,
    StartJob,
    TimerFired,
)
from firesteel.jobmaster.model.instructions import (
    CancelTimer,
    DeliverToClient,
    Instruction,
    JobDone,
    KillAttempt,
    NotifyStatus,
    SendToSlot,
    SetTimer,
    StartAttempt,
)
from firesteel.jobmaster.model.life_cycle import may_follow
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.restart_strategy import NoRestartStrategy, RestartStrategy
from firesteel.runtime.model.messages import (
    CancelSlot,
    RegisterSlot,
    SlotFailed,
    SlotMessage,
    SlotStopped,
    TaskStateChanged,
)
from firesteel.runtime.operators.inline import MapSpec
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spi.source import Boundedness, Source, SplitEnumerator

SETTINGS = JobMasterSettings(
    slot_request_timeout=20_000,
    heartbeat_timeout=5_000,
    cancellation_timeout=3_000,
    kill_timeout=2_000,
    failure_grace=1_000,
)


@dataclass(frozen=True)
class Split:
    split_id: str


class ListEnumerator(SplitEnumerator[Split]):
    """Hands out splits on request, then says that there are no more."""

    def __init__(self, context: Any, splits: list[Split]):
        self.context = context
        self.left = list(splits)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        if self.left:
            self.context.assign_split(self.left.pop(0), subtask)
        else:
            self.context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Split], subtask: int) -> None:
        self.left += splits


@dataclass
class ListSource(Source[Split]):
    """A source of as many splits as asked for."""

    count: int = 3
    make_enumerator: Callable[[Any, list[Split]], SplitEnumerator[Split]] = ListEnumerator
    enumerators: list[Any] = field(default_factory=list)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: Any) -> SplitEnumerator[Split]:
        enumerator = self.make_enumerator(context, [Split(f"split-{i}") for i in range(self.count)])
        self.enumerators.append(enumerator)
        return enumerator

    def create_reader(self, context: Any) -> Any:
        raise NotImplementedError


def make_job_graph(source: Source[Any], parallelism: int = 2) -> JobGraph:
    """A source vertex and a map vertex that share slots."""

    def node(id: int, name: str, spec: Any) -> StreamNode:
        return StreamNode(
            id=id,
            name=name,
            spec=spec,
            parallelism=parallelism,
            max_parallelism=128,
            operator_id=f"op-{name}",
            slot_sharing_group="default",
            uid=f"uid-{name}",
            defined_at="job.py:7",
        )

    def vertex(operator: StreamNode) -> JobVertex:
        return JobVertex(operator.name, operator.name, (ChainedOperator(operator),), parallelism, 128, "default")

    nodes = node(1, "source", SourceSpec(source, None)), node(2, "map", MapSpec(str))
    execution = Execution(JobExecution.PIPELINED, "it is the default")
    return JobGraph("job-id", "job", Configuration(), tuple(vertex(n) for n in nodes), (), execution)


class JobMasterHarness:
    """Feeds a JobMaster and remembers what it wanted done."""

    def __init__(
        self,
        restart_strategy: RestartStrategy | None = None,
        source: ListSource | None = None,
        settings: JobMasterSettings = SETTINGS,
        parallelism: int = 2,
    ):
        self.source = source or ListSource()
        self.graph = ExecutionGraph(make_job_graph(self.source, parallelism))
        self.jm = JobMaster(self.graph, restart_strategy or NoRestartStrategy(), settings)
        self.slots = parallelism
        self.now = 1_000_000
        self.wall_offset = 0
        """What the wall clock shows more than the monotonic one."""
        self.instructions: list[Instruction] = []
        self.statuses = [JobStatus.INITIALIZING]
        self.done: JobDone | None = None
        self.timers: dict[str, int] = {}
        self.started: list[int] = []
        self.ended: set[int] = set()
        self.killed: set[int] = set()
        self.connected: set[tuple[int, int]] = set()

    # Feeding

    def feed(self, event: Event, after: int = 1) -> list[Instruction]:
        """Lets time pass, feeds the event, checks everything that must always hold."""
        self.now += after
        self._observe(event)
        instructions = self.jm.handle(event, self.now, self.now + self.wall_offset)
        for instruction in instructions:
            self._carry_out(instruction)
        self.instructions += instructions
        self._check()
        return instructions

    def say(self, slot: int, message: SlotMessage) -> list[Instruction]:
        return self.feed(MessageReceived(slot, message))

    def start(self) -> list[Instruction]:
        return self.feed(StartJob())

    def register(self, slot: int, attempt: int | None = None) -> list[Instruction]:
        attempt = self.jm.attempt if attempt is None else attempt
        return self.say(slot, RegisterSlot(attempt, slot, "host", ("host", 5000 + slot), 100 + slot, "exec-1"))

    def task(self, vertex: str, subtask: int, state: str, failure: TaskFailure | None = None) -> list[Instruction]:
        return self.say(subtask, TaskStateChanged(self.jm.attempt, vertex, subtask, state, failure))

    def stopped(self, slot: int, **accumulators: Any) -> list[Instruction]:
        return self.say(slot, SlotStopped(self.jm.attempt, slot, {("map", slot): accumulators}))

    def failed(self, slot: int, failure: TaskFailure) -> list[Instruction]:
        return self.say(slot, SlotFailed(self.jm.attempt, slot, failure))

    def lost(self, slot: int) -> list[Instruction]:
        return self.feed(SlotLost(self.jm.attempt, slot))

    def attempt_ended(self, failure: TaskFailure | None = None) -> list[Instruction]:
        return self.feed(AttemptEnded(self.jm.attempt, failure))

    def cancel(self) -> list[Instruction]:
        return self.feed(CancelJob())

    def fire(self, name: str) -> list[Instruction]:
        """Waits until the timer is due and fires it."""
        return self.feed(TimerFired(name), after=max(0, self.timers[name] - self.now))

    # Longer stretches

    def run(self) -> None:
        """Brings a job, or its next attempt, to where all tasks run."""
        if self.jm.status is JobStatus.INITIALIZING:
            self.start()
        for slot in range(self.slots):
            self.register(slot)
        self.all_tasks("INITIALIZING")
        self.all_tasks("RUNNING")

    def all_tasks(self, state: str) -> None:
        for vertex in self.graph.job_vertices:
            for subtask in range(self.slots):
                self.task(vertex, subtask, state)

    # Looking

    @property
    def status(self) -> JobStatus:
        return self.jm.status

    def sent(self, kind: type, attempt: int | None = None) -> list[tuple[int, Any]]:
        """The messages of a kind that were sent to slots."""
        return [
            (instruction.slot_index, instruction.message)
            for instruction in self.instructions
            if isinstance(instruction, SendToSlot)
            and isinstance(instruction.message, kind)
            and attempt in (None, instruction.attempt)
        ]

    def delivered(self) -> list[Any]:
        return [i.payload for i in self.instructions if isinstance(i, DeliverToClient)]

    # The invariants

    def _observe(self, event: Event) -> None:
        if isinstance(event, TimerFired):
            self.timers.pop(event.name, None)
        elif isinstance(event, AttemptEnded):
            self.ended.add(event.attempt)
            self.connected = {slot for slot in self.connected if slot[0] != event.attempt}
        elif isinstance(event, SlotLost):
            self.connected.discard((event.attempt, event.slot_index))
        elif isinstance(event, MessageReceived):
            slot = event.message.attempt, event.slot_index
            if isinstance(event.message, RegisterSlot):
                self.connected.add(slot)
            elif isinstance(event.message, (SlotStopped, SlotFailed)):
                self.connected.discard(slot)

    def _carry_out(self, instruction: Instruction) -> None:
        if self.done is not None:
            # A slot that registers too late is turned away; nothing else follows the end.
            assert isinstance(instruction, SendToSlot)
            assert isinstance(instruction.message, CancelSlot)
        if isinstance(instruction, NotifyStatus):
            assert instruction.old is self.statuses[-1]
            assert may_follow(instruction.old, instruction.new)
            assert instruction.at == self.now + self.wall_offset
            self.statuses.append(instruction.new)
        elif isinstance(instruction, SetTimer):
            assert instruction.at >= self.now
            self.timers[instruction.name] = instruction.at
        elif isinstance(instruction, CancelTimer):
            del self.timers[instruction.name]
        elif isinstance(instruction, SendToSlot):
            address = instruction.attempt, instruction.slot_index
            assert address in self.connected, f"{instruction} goes to a slot that is gone"
        elif isinstance(instruction, StartAttempt):
            # An attempt whose source failed was never started and so never ends.
            assert not self.started or self.started[-1] in self.ended | self.killed
            self.started.append(instruction.attempt)
        elif isinstance(instruction, KillAttempt):
            assert instruction.attempt == self.jm.attempt
            assert instruction.attempt not in self.killed
            self.killed.add(instruction.attempt)
        elif isinstance(instruction, JobDone):
            assert instruction.status is self.statuses[-1]
            assert instruction.status.is_terminal_state()
            assert (instruction.failure is not None) == (instruction.status is JobStatus.FAILED)
            self.done = instruction

    def _check(self) -> None:
        assert self.timers == self.jm.timers()
        assert self.jm.status is self.statuses[-1]
        terminal = [status for status in self.statuses if status.is_terminal_state()]
        assert len(terminal) <= 1
        assert (self.done is not None) == bool(terminal)
        if terminal:
            assert self.graph.all_terminal
            assert self.graph.all_finished or self.status is not JobStatus.FINISHED
            assert not self.timers
        elif self.status is not JobStatus.INITIALIZING:
            assert self.timers, f"nothing would wake the job in {self.status}"


@pytest.fixture
def make_harness() -> type[JobMasterHarness]:
    return JobMasterHarness


@pytest.fixture
def harness() -> JobMasterHarness:
    return JobMasterHarness()


@pytest.fixture
def make_source() -> type[ListSource]:
    return ListSource


@pytest.fixture
def make_split() -> type[Split]:
    return Split


@pytest.fixture
def list_enumerator() -> type[ListEnumerator]:
    return ListEnumerator
