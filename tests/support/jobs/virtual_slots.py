"""The slots of a job in one process and in virtual time: real TaskExecutors, each with a processor of its own.

Only one slot's thread runs at a time, the one whose clock is behind the others', so a run is the same each time. Time
passes only where it is spent: a function calls ``spend``, and each turn of a mailbox costs a little.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cloudpickle

from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.deployment import Deployment
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import assign_slots
from firesteel.process.concurrency import SystemConcurrency
from firesteel.runtime.codegen.inlining import register_inline_expressions
from firesteel.runtime.model import messages
from firesteel.runtime.network.gate import InputChannel
from firesteel.runtime.network.local import connect_local
from firesteel.runtime.network.partition import ResultSubpartition
from firesteel.runtime.slot.task_executor import TaskExecutor
from firesteel.runtime.slot.wiring import Wiring
from firesteel.runtime.task.task import Task
from firesteel.spi.source import Boundedness, InputStatus, ReaderOutput, Source, SourceReader

__all__ = ["POLL_INTERVAL_S", "STEP_S", "EndlessNumbers", "VirtualSlots", "Waits", "endless_numbers", "now_ms", "spend"]

STEP_S = 20e-6
"""What a turn of a mailbox costs besides the work in it."""
POLL_INTERVAL_S = 0.001
"""How often turns are looked at that take long."""
_JOIN_TIMEOUT_S = 60.0

_running: _Slot | None = None
"""The slot whose thread runs."""


def spend(seconds: float) -> None:
    """What a function of the job calls that takes time."""
    slot = _running
    assert slot is not None
    assert slot.executor is not None
    slot.now += seconds
    if slot.now >= slot.looks_at:
        # what the watch does that a slot in real time has
        slot.looks_at = slot.now + POLL_INTERVAL_S
        for task in slot.executor._tasks:
            task.turn.end_if_long(slot.now)


def now_ms() -> int:
    """The time in the slot that runs."""
    assert _running is not None
    return int(_running.now * 1000)


class _Over(BaseException):
    """Unwinds the threads when the time is over."""


class _Slot(SystemConcurrency):
    """One slot: its clock, its mailbox thread and its poller."""

    def __init__(self, slots: VirtualSlots, index: int):
        self.now = 0.0
        self.wake_at = 0.0
        self.looks_at = 0.0
        self.is_over = False
        self.baton = threading.Semaphore(0)
        self.executor: _Executor | None = None  # type: ignore[assignment]
        self.failure: BaseException | None = None
        self._slots = slots
        self.index = index

    # -- clocks -------------------------------------------------------------------------------------

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic_ms(self) -> int:
        return int(self.now * 1000)

    # -- poller -------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> bool:
        self.now += STEP_S
        self.wake_at = self.now + max(timeout_s, 0.0)
        self._slots.switch(self)
        return True

    def wakeup(self) -> None:
        self.wake_at = min(self.wake_at, self.now)

    def close(self) -> None:
        """There is nothing to release."""

    # -- network ------------------------------------------------------------------------------------

    is_drained = True

    def connect_peers(self, peers: Mapping[int, Any], timeout_s: float) -> None:
        """All slots are here."""

    def register_output(self, channel_id: int, peer: int, subpartition: ResultSubpartition) -> None:
        self._slots.register(channel_id, (self, subpartition))

    def register_input(self, channel_id: int, peer: int, channel: InputChannel) -> None:
        self._slots.register(channel_id, (self, channel))

    def run(self) -> None:
        self.baton.acquire()
        try:
            assert self.executor is not None
            self.executor.run()
        except _Over:
            pass
        except BaseException as error:
            self.failure = error
        self.is_over = True
        self._slots.switch(self)


class Waits:
    """Looks at the scheduler of a slot: how long tasks that can run wait, and how long turns take."""

    def __init__(self, executor: TaskExecutor):
        self.longest = self.longest_turn = 0.0
        self._executor = executor
        self._since: dict[Task, float] = {}
        self._next = executor._scheduler.next_task
        self._turn_began: float | None = None
        executor._scheduler.next_task = self.next_task  # type: ignore[method-assign]

    def next_task(self, now: float, above: int = -1) -> Task | None:
        """Asks the scheduler itself."""
        if self._turn_began is not None:
            self.longest_turn = max(self.longest_turn, now - self._turn_began)
        for task in self._executor._tasks:
            if not task.running and task.has_work(now) and task.has_room():
                self._since.setdefault(task, now)
            else:
                self._since.pop(task, None)
        chosen = self._next(now, above)
        self._turn_began = None if chosen is None else now
        if chosen is not None:
            self.longest = max(self.longest, now - self._since.pop(chosen))
        return chosen


class _Executor(TaskExecutor):
    waits: Waits

    def _start_tasks(self) -> bool:
        started = super()._start_tasks()
        self.waits = Waits(self)
        return started


class VirtualSlots:
    """Runs the job of an environment without JobMaster: readers must not need splits."""

    def __init__(self, env: StreamExecutionEnvironment):
        job = _job_graph_of(env)
        self.messages: list[tuple[float, int, messages.SlotMessage]] = []
        """Time, slot and message of all that slots told their JobMaster."""
        self._ends: dict[int, tuple[_Slot, Any]] = {}
        self._until = 0.0
        self._second = 0
        self._every_second: Callable[[], None] = lambda: None
        self._done = threading.Semaphore(0)
        serialized = cloudpickle.dumps(job)
        slots = assign_slots(job).total
        self._slots = [_Slot(self, index) for index in range(slots)]
        for slot in self._slots:
            # a copy of every function for each slot
            copy = cloudpickle.loads(serialized)
            register_inline_expressions(copy.inline_expressions)
            tasks = Deployment(copy, 0).tasks_in(slot.index)
            slot.executor = _Executor(
                {slot.index: tasks},
                _Gateway(self, slot),
                slot,
                slot,
                Wiring([slot.index], job.configuration, slot),  # type: ignore[arg-type]
                attempt=0,
                host="localhost",
                concurrency=slot,
                watch_turns=False,
            )
            slot.executor.deliver(messages.Deploy(0, {}, slots))

    @property
    def executors(self) -> list[_Executor]:
        """That of each slot."""
        return [slot.executor for slot in self._slots if slot.executor is not None]

    @property
    def waits(self) -> list[Waits]:
        """What was seen of the scheduler of each slot."""
        return [executor.waits for executor in self.executors]

    def tasks(self, name: str) -> list[Task]:
        """The subtasks of the vertices whose names contain this."""
        return [task for executor in self.executors for task in executor._tasks if name in task.descriptor.name]

    def send(self, message: messages.JobMasterMessage) -> None:
        """Sends a message of the JobMaster to all slots."""
        for executor in self.executors:
            executor.deliver(message)

    def run(self, seconds: float, every_second: Callable[[], None] = lambda: None) -> None:
        """Lets so much time pass in every slot, then ends them all."""
        self._until = seconds
        self._every_second = every_second
        threads = [threading.Thread(target=slot.run, daemon=True) for slot in self._slots]
        for thread in threads:
            thread.start()
        self._next().baton.release()
        if not self._done.acquire(timeout=_JOIN_TIMEOUT_S):
            raise TimeoutError("the slots did not come to the end of their time: do they wait for each other?")
        for thread in threads:
            thread.join(_JOIN_TIMEOUT_S)
        for slot in self._slots:
            if slot.failure is not None:
                raise slot.failure

    # -- called by slots ----------------------------------------------------------------------------

    def switch(self, slot: _Slot) -> None:
        """Goes on with the slot that is behind the others."""
        while True:
            if all(each.is_over for each in self._slots):
                self._done.release()
                return
            behind = self._next()
            if behind is not slot:
                behind.baton.release()
                if slot.is_over:
                    return
                slot.baton.acquire()
                if self._next() is not slot:
                    continue
            self._resume(slot)
            return

    def _resume(self, slot: _Slot) -> None:
        global _running
        _running = slot
        slot.now = max(slot.now, slot.wake_at)
        while slot.now >= self._second + 1:
            self._second += 1
            self._every_second()
        if slot.now >= self._until:
            raise _Over

    def _next(self) -> _Slot:
        return min((slot for slot in self._slots if not slot.is_over), key=lambda slot: (slot.wake_at, slot.index))

    def register(self, channel_id: int, end: tuple[_Slot, Any]) -> None:
        """One end of a channel between two slots; joins it to the other if that is there."""
        other = self._ends.pop(channel_id, None)
        if other is None:
            self._ends[channel_id] = end
            return
        (sender, subpartition), (receiver, channel) = sorted((end, other), key=lambda each: hasattr(each[1], "gate"))
        local = connect_local(subpartition, channel, serialized=True)
        subpartition.on_available = lambda: self._between(sender, receiver, local._move)
        channel.receiver.on_credit = lambda: self._between(receiver, sender, local._on_credit)

    @staticmethod
    def _between(from_slot: _Slot, to_slot: _Slot, move: Callable[[], None]) -> None:
        move()
        to_slot.wake_at = min(to_slot.wake_at, max(from_slot.now, to_slot.now))


class _Gateway:
    def __init__(self, slots: VirtualSlots, slot: _Slot):
        self._slots = slots
        self._slot = slot

    def send(self, message: messages.SlotMessage) -> None:
        self._slots.messages.append((self._slot.now, self._slot.index, message))


class _Capture:
    """A PipelineExecutor that only takes the job."""

    job_graph: JobGraph | None = None

    def execute(self, job_graph: JobGraph, configuration: Any) -> Any:
        self.job_graph = job_graph


def _job_graph_of(env: StreamExecutionEnvironment) -> JobGraph:
    capture: Any = _Capture()
    env._executor = capture
    env.execute_async("job")
    assert capture.job_graph is not None
    return capture.job_graph  # type: ignore[no-any-return]


class EndlessNumbers(Source[Any]):
    """0, 1, 2, … in every subtask, each with its number as timestamp, as fast as they are taken."""

    def __init__(self, at_a_time: int = 1 << 62):
        self._at_a_time = at_a_time

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: Any) -> Any:
        raise AssertionError("there is no JobMaster")

    def create_reader(self, context: Any) -> SourceReader[Any]:
        return _EndlessReader(self._at_a_time)


class _EndlessReader(SourceReader[Any]):
    def __init__(self, at_a_time: int) -> None:
        self._next = 0
        self._at_a_time = at_a_time

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        max_records = min(max_records, self._at_a_time)
        spend(1e-6 * max_records)
        numbers = range(self._next, self._next + max_records)
        self._next += max_records
        output.collect("numbers", list(numbers), list(numbers))
        return InputStatus.MORE_AVAILABLE

    def add_splits(self, splits: Sequence[Any]) -> None:
        raise AssertionError("there are no splits")

    def notify_no_more_splits(self) -> None:
        """There are none."""

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return []


def endless_numbers(env: StreamExecutionEnvironment, at_a_time: int = 1 << 62) -> Any:
    """A stream of them, with a watermark that follows them."""
    return env.from_source(EndlessNumbers(at_a_time), WatermarkStrategy.for_monotonous_timestamps(), "numbers")
