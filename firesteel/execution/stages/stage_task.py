"""A task outside a slot: it is fed rows, and its output is returned as rows."""

from __future__ import annotations

import pickle
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.config import pipeline_options
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import BATCH, EVENTS, REPORT, ExchangeRow, pack_number, pack_row
from firesteel.execution.stages.task_commands import StageTaskDescriptor
from firesteel.process.concurrency import SYSTEM
from firesteel.process.event_loop import EventLoopThread
from firesteel.runtime.chain.running_operator import RunningOperator
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.codegen.inlining import register_inline_expressions
from firesteel.runtime.columns.wire import EncodedColumns
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model import messages
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.elements import CheckpointBarrier, ControlEvent, EndOfData, WatermarkStatus
from firesteel.runtime.model.serialization import serialize_records
from firesteel.runtime.model.state_handles import TaskStateSnapshot
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.gate import InputChannel, InputGate
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition
from firesteel.runtime.slot.mailbox import Clock, ProcessingTimers, SystemClock
from firesteel.runtime.slot.task_executor import TaskCancelled
from firesteel.runtime.slot.wiring import Wiring
from firesteel.runtime.task.slot_snapshots import SlotSnapshots
from firesteel.runtime.task.source_messages import source_event, split_request, watermark_report
from firesteel.runtime.task.task import Task

if TYPE_CHECKING:
    from firesteel.execution.stages.task_cache import PrintedLines

__all__ = ["ROW_CONFIG", "InlineSnapshots", "RowFile", "StageTask"]

ROW_CONFIG = NetworkConfig(
    segment_size=256 * 1024,
    floating_buffers_per_gate=128,
    max_buffers_per_channel=1 << 30,
    initial_records_per_buffer=4096,
    max_records_per_buffer=16384,
    max_frame_bytes=(1 << 31) - 1024,
)
"""A row costs more than a buffer of the network, so it is longer. Room for 128 of them is what an operator may produce
at one go before they are put aside on disk."""

_UNLIMITED = 1 << 62
_WRITER_WAIT_S = 0.001
_INTERRUPT_CHECK_S = 0.1
_LENGTH = struct.Struct("<I")
_IN_MEMORY = 1 << 20


class InlineSnapshots(SlotSnapshots):
    """Writes state in the calling thread, so that no thread is left when a task of a stage returns."""

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work at once."""
        work()


class RowFile:
    """Rows, or anything of bytes, that wait on disk: in memory as long as they are few."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="firesteel-rows-")  # noqa: SIM115 - see read

    def write(self, row: bytes) -> None:
        self._file.write(_LENGTH.pack(len(row)))
        self._file.write(row)

    def read(self) -> Iterator[bytes]:
        """The rows in their order, once."""
        with self._file as file:
            file.seek(0)
            while length := file.read(_LENGTH.size):
                yield file.read(*_LENGTH.unpack(length))

    def close(self) -> None:
        self._file.close()


class StageTask:
    """One task of a stage. Is its task's TaskServices.

    ``feed`` puts a row into its input, ``run`` processes all that is there, ``drain`` takes what it has produced. Its
    memory stays flat if these are called in turn. Messages for the JobMaster are collected in ``messages``. An
    exception in the user's code becomes a StageTaskError with the messages of a slot.
    """

    task_class: type[Task] = Task

    def __init__(
        self, descriptor: StageTaskDescriptor, *, clock: Clock | None = None, snapshots: SlotSnapshots | None = None
    ):
        task = descriptor.task
        register_inline_expressions(descriptor.inline_expressions)
        self.descriptor = descriptor
        self.messages: list[messages.SlotMessage] = []
        self.printed: PrintedLines | None = None
        """What functions print and log, if that is captured."""
        self.clock: Clock = SystemClock() if clock is None else clock
        self.snapshots = InlineSnapshots(task.configuration, task.job_id) if snapshots is None else snapshots
        self.timers = ProcessingTimers(self.clock)
        self.event_loop = EventLoopThread(SYSTEM)
        """Where async functions run."""
        self._woken = threading.Event()
        self._sequences: dict[tuple[str, int], int] = {}
        self._aside: RowFile | None = None
        inputs = [
            (edge, channel.producer)
            for edge, entry in zip(descriptor.input_edges, task.inputs, strict=True)
            for channel in entry.channels
        ]
        gate = InputGate(len(inputs), config=ROW_CONFIG) if inputs else None
        self.channels: dict[tuple[int, int], InputChannel] = (
            {} if gate is None else dict(zip(inputs, gate.channels, strict=True))
        )
        """By the edge and the subtask of the producer."""
        self._ended: set[InputChannel] = set()
        partitions = [self.create_partition(index) for index in range(len(task.outputs))]
        self.numbers = [
            [pack_number(offset + channel.consumer) for channel in output.channels]
            for offset, output in zip(descriptor.output_offsets, task.outputs, strict=True)
        ]
        """What stands before a row, by output and channel."""
        self.restart_rows()
        interval = task.configuration.get(pipeline_options.AUTO_WATERMARK_INTERVAL).to_millis()
        try:
            self.task = self.task_class(task, gate, list(zip(task.outputs, partitions, strict=True)), self, interval)
        except Exception as error:
            raise StageTaskError([self._failure(error, [], None)]) from error

    def create_partition(self, index: int) -> ResultPartition:
        """Where one of the task's outputs goes."""
        channels = len(self.descriptor.task.outputs[index].channels)
        subpartitions = [ResultSubpartition(config=ROW_CONFIG) for _ in range(channels)]
        for subpartition in subpartitions:
            subpartition.sender.add_credit(_UNLIMITED)
        first = self.descriptor.task.subtask % channels
        return ResultPartition(subpartitions, config=ROW_CONFIG, first_channel=first)

    # -- the task's life ----------------------------------------------------------------------------

    def open(self, restore: TaskRestore | None = None) -> None:
        """Opens the operators, with the state of a checkpoint if there is one."""
        files = self.snapshots.create_reader()
        try:
            self.act(lambda: self.task.open(restore, files))
        finally:
            files.close()

    def close(self) -> list[BaseException]:
        """Closes what was opened; returns what went wrong doing so."""
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        self.task.finished = True
        return self.task.close()

    def act(self, action: Callable[[], object]) -> None:
        """Calls the task; an exception becomes the task's failure."""
        before, started = self.task.busy_s, time.perf_counter()
        try:
            action()
            # all of it: a step of the task has added its own part already
            self.task.busy_s = before + time.perf_counter() - started
        except (StageTaskError, TaskCancelled, GeneratorExit):
            raise
        except BaseException as error:
            # user code may raise anything, SystemExit too; its payloads for the client are sent all the same
            raise StageTaskError([*self.told_to_client(), self.failed(error)]) from error

    def failed(self, error: BaseException) -> messages.TaskStateChanged:
        """The messages of a slot for an error."""
        return self._failure(error, self.task.chain, self.task.at_work)

    def _failure(
        self, error: BaseException, chain: Sequence[RunningOperator], at_work: RunningOperator | None
    ) -> messages.TaskStateChanged:
        descriptor = self.descriptor.task
        failure = describe_failure(error, descriptor, chain, at_work)
        return messages.TaskStateChanged(
            descriptor.attempt, descriptor.vertex_id, descriptor.subtask, "FAILED", failure
        )

    # -- rows in ------------------------------------------------------------------------------------

    def feed(self, row: ExchangeRow) -> None:
        """Puts a row of records or events into the input, behind what came through the same channel before."""
        channel = self.channels[row.edge, row.producer]
        gate = channel.gate
        if row.kind == BATCH:
            gate.num_buffers_in += 1
            gate.num_bytes_in += len(row.payload)
            # unpickled where it lies
            channel.restore((row.payload,))  # type: ignore[arg-type]
        elif row.kind == EVENTS:
            channel.restore(event for event in pickle.loads(row.payload) if self.accepts(channel, event))
        else:
            raise ValueError(f"a task cannot read rows of kind {row.kind}")

    def accepts(self, channel: InputChannel, event: ControlEvent) -> bool:
        """Whether an event that came is for the task itself: the end of a channel is, once."""
        if isinstance(event, EndOfData):
            if channel in self._ended:
                return False
            self._ended.add(channel)
        return True

    def run(self) -> None:
        """Processes all input that is there, and runs timers that are due."""
        task = self.task
        while task.gate is not None and task.gate.has_input and not task.finished:
            self.await_sinks()
            self.act(task.run_once)
        self.run_timers()

    def run_timers(self) -> None:
        """Runs processing-time timers that are due."""
        task = self.task
        self.timers.look_again()
        while (due := self.timers.pop_due(self.clock.monotonic_ms())) is not None:
            _, callback, now = due
            task.running = True
            try:
                self.act(lambda callback=callback, now=now: callback(now))  # type: ignore[misc]
            finally:
                task.running = False

    def await_sinks(self) -> None:
        """Waits while a writer cannot take more; what else is full is put aside."""
        while not self.task.sinks_have_room():
            time.sleep(_WRITER_WAIT_S)
        self.act(self.task.raise_failure)

    # -- rows out -----------------------------------------------------------------------------------

    def restart_rows(self, first: int = 0) -> None:
        """Restarts the numbering of the rows for each consumer."""
        self._next_row = [[first] * len(numbers) for numbers in self.numbers]

    def drain(self, *, flush: bool = False) -> Iterator[bytes]:
        """Takes what was produced: number, row, number, row, …; buffers that are not full only with ``flush``."""
        if flush:
            for output in self.task.outputs:
                self.act(output.partition.flush)
        if self._aside is not None:
            aside, self._aside = self._aside, None
            yield from aside.read()
        yield from self.take_rows()

    def take_rows(self) -> Iterator[bytes]:
        """Takes the rows that are ready."""
        for index, output in enumerate(self.task.outputs):
            for channel, subpartition in enumerate(output.partition.subpartitions):
                if not len(subpartition.sender):
                    continue
                events: list[ControlEvent] = []
                while (polled := subpartition.poll()) is not None:
                    item = polled[0]
                    if isinstance(item, ControlEvent):
                        if self.sends(index, channel, item):
                            if _are_statuses(events[-1:], item):
                                events.pop()  # else each flip would become several in every stage that follows
                            events.append(item)
                        continue
                    if events:
                        yield from self.row(EVENTS, index, channel, pickle.dumps(events, 5))
                        events = []
                    if isinstance(item, EncodedColumns):
                        item = item.to_bytes(with_schema=True)  # a row is read by itself
                    assert isinstance(item, bytes)
                    yield from self.row(BATCH, index, channel, item)
                if events:
                    yield from self.row(EVENTS, index, channel, pickle.dumps(events, 5))

    def sends(self, output: int, channel: int, event: ControlEvent) -> bool:
        """Whether an event travels to a consumer. Barriers do not: all of a task's input is before its snapshot."""
        return not isinstance(event, CheckpointBarrier)

    def row(self, kind: int, output: int, channel: int, payload: bytes) -> Iterator[bytes]:
        """A row for one consumer, with its number."""
        sequence = self.next_sequence(output, channel)
        edge, producer = self.descriptor.output_edges[output], self.descriptor.task.subtask
        yield self.numbers[output][channel]
        yield pack_row(kind, edge, producer, sequence, payload)

    def next_sequence(self, output: int, channel: int) -> int:
        """The number of the next row for a consumer."""
        sequence = self._next_row[output][channel]
        self._next_row[output][channel] = sequence + 1
        return sequence

    def report_row(self, told: Iterable[Any], order: int = 0) -> Iterator[bytes]:
        """A row of messages for the host, on its way through the stages that follow."""
        payload = pickle.dumps(list(told), 5)
        return self.pass_on(pack_row(REPORT, 0, self.descriptor.task.subtask, 0, payload), order)

    def pass_on(self, report: bytes, order: int = 0) -> Iterator[bytes]:
        """Sends a row of messages on, to the first consumer or, from a task without consumers, as a result."""
        offsets = self.descriptor.output_offsets
        yield pack_number(offsets[0], order) if offsets else pack_number(0)
        yield report

    def put_aside(self) -> None:
        """Keeps the rows that are ready on disk until the task is drained."""
        for part in self.take_rows():
            if self._aside is None:
                self._aside = RowFile()
            self._aside.write(part)

    # -- TaskServices -------------------------------------------------------------------------------

    def wakeup(self) -> None:
        """Ends a wait for results; may be called from any thread."""
        self._woken.set()

    def wait_for_wakeup(self) -> None:
        """Waits until there are new results."""
        # not for ever in one call, which could not be interrupted
        while not self._woken.wait(_INTERRUPT_CHECK_S):
            pass
        self._woken.clear()

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self.clock.now_ms()

    def monotonic(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back once the wall clock reaches the timestamp, in ``run_timers``."""
        self.timers.schedule(task, timestamp, callback)

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self.clock.monotonic_ms()

    def schedule_after(self, task: Task, delay: int, callback: Callable[[], None]) -> None:
        """Calls back after a delay in milliseconds, in ``run_timers``."""
        self.timers.schedule_after(task, delay, callback)

    def wait_for_room(self, task: Task) -> None:
        """Puts what the outputs hold aside on disk: a task in the middle of a batch cannot hand it out."""
        self.put_aside()

    def request_split(self, task: Task, operator_id: str) -> None:
        """Asks a source's enumerator for a split."""
        self.messages.append(split_request(task.descriptor.attempt, task, operator_id))

    def send_source_event(self, task: Task, operator_id: str, event: Any) -> None:
        """Sends an event to a source's enumerator."""
        self.messages.append(source_event(task.descriptor.attempt, task, operator_id, event))

    def report_watermark(self, task: Task, watermark: int) -> None:
        """Reports a source's watermark to its alignment group."""
        self.messages.append(watermark_report(task.descriptor.attempt, task, watermark))

    def send_to_client(self, task: Task, channel: str, payload: Any) -> None:
        """Keeps a payload for the client, numbered since the task was loaded."""
        attempt, subtask = task.descriptor.attempt, task.descriptor.subtask
        number, checkpoint_id = self.next_number(channel, subtask), task.snapshots.last_id
        self.messages.append(messages.ClientPayload(attempt, channel, subtask, number, payload, checkpoint_id))

    def next_number(self, channel: str, subtask: int) -> int:
        """The number of the next payload of a channel."""
        number = self._sequences.get((channel, subtask), 0)
        self._sequences[channel, subtask] = number + 1
        return number

    def client_has_room(self, task: Task, channel: str) -> bool:
        """Output is not consumed before the task has finished."""
        return True

    def act_soon(self, task: Task, action: Callable[[], None]) -> None:
        """Never needed: no barriers come."""
        raise AssertionError("a task of a stage reads no barriers")

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work, at once unless the snapshots have threads."""
        self.snapshots.run_async(work)

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where the state of the task goes."""
        return self.snapshots.create_files(barrier)

    def open_state_files(self) -> StateFileReader:
        """Reads state files of earlier checkpoints; to be closed."""
        return self.snapshots.create_reader()

    def acknowledge(self, task: Task, checkpoint_id: int, state: TaskStateSnapshot, metrics: CheckpointMetrics) -> None:
        """Acknowledges the task's part of a checkpoint."""
        descriptor = task.descriptor
        self.messages.append(
            messages.AcknowledgeCheckpoint(
                descriptor.attempt, checkpoint_id, descriptor.vertex_id, descriptor.subtask, state, metrics
            )
        )

    def decline(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """Declines a checkpoint for the task."""
        descriptor = task.descriptor
        self.messages.append(
            messages.DeclineCheckpoint(
                descriptor.attempt, checkpoint_id, descriptor.vertex_id, descriptor.subtask, reason
            )
        )

    def await_checkpoint(self, task: Task) -> None:
        """Reports that the task has finished, except for a last checkpoint."""
        descriptor = task.descriptor
        self.messages.append(
            messages.TaskAwaitsCheckpoint(descriptor.attempt, descriptor.vertex_id, descriptor.subtask)
        )

    # -- reports ------------------------------------------------------------------------------------

    def told_to_client(self) -> list[messages.ClientPayload]:
        """The payloads for the client, with the printed output of functions."""
        task = self.descriptor.task
        if self.printed is not None:
            for name, lines in self.printed.take():
                payload = serialize_records((name, list(lines)), None)
                self.messages.append(
                    messages.ClientPayload(
                        task.attempt, f"print#{name}", task.slot, self.next_number(f"print#{name}", task.slot), payload
                    )
                )
        return [message for message in self.messages if isinstance(message, messages.ClientPayload)]

    def metric_report(self) -> messages.MetricReport:
        """The task's metrics and accumulators, as its slot would report them."""
        descriptor = self.descriptor.task
        metrics = {
            (descriptor.vertex_id, operator_id, descriptor.subtask): values
            for operator_id, values in self.task.metrics().items()
        }
        return messages.MetricReport(descriptor.attempt, descriptor.slot, metrics, Wiring.accumulators([self.task]))


def _are_statuses(before: list[ControlEvent], event: ControlEvent) -> bool:
    return isinstance(event, WatermarkStatus) and any(isinstance(each, WatermarkStatus) for each in before)
