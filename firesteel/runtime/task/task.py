"""Stream task: input gate → fused operator chain → result partitions, run in steps by its slot's mailbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from firesteel.runtime.chain.first_loops import FirstLoops
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.chain.running_operator import RunningOperator, SecondInput
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.codegen.loops import Loop
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.deployment import OutputDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.elements import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ControlEvent,
    EndOfData,
    EndOfPartition,
    Watermark,
    WatermarkStatus,
)
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.runtime.network.gate import InputGate
from firesteel.runtime.network.partition import ResultPartition
from firesteel.runtime.operators.deferring import DeferringOperator
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.state.registry import configured_backend
from firesteel.runtime.task.batch_size import BatchSize
from firesteel.runtime.task.channel_state import restore_channels
from firesteel.runtime.task.deferred_results import DeferredResults
from firesteel.runtime.task.task_checkpoints import TaskCheckpoints
from firesteel.runtime.task.task_metrics import TaskMetrics, TaskTimes
from firesteel.runtime.task.task_services import TaskServices
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import Turn
from firesteel.runtime.time.watermarks import create_valve

if TYPE_CHECKING:
    from firesteel.process.event_loop import EventLoop

__all__ = ["Task"]


class Task:
    """One subtask of one vertex. Is the ChainServices of its chain.

    With checkpoints a task ends in two steps. When all its input has been processed its operators finish, and it sends
    EndOfData downstream. It then stays for the next checkpoint, so that what its sinks prepared last is
    committed; when that is complete the task is finished and its channels end (EndOfPartition). Without checkpoints a
    source ends at once, and the others when their channels have: a savepoint to stop with may come in between.
    """

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        gate: InputGate | None,
        partitions: Sequence[tuple[OutputDescriptor, ResultPartition]],
        services: TaskServices,
        watermark_interval_ms: int,
    ):
        self.descriptor = descriptor
        self.log_name = descriptor.log_name
        self.gate = gate
        self.rank = 0
        """The place of the task's vertex in the job: above that of every producer."""
        self.asked_at = 0.0
        """When its slot last ran the task, or found that it cannot run."""
        self.running = False
        """True while a step of this task is on the stack: it must not be entered again."""
        self.finished = False
        self.ended = False
        """All input has been processed and the operators have finished; only barriers are still of interest."""
        self.suspended = False
        """Stopped with a savepoint that is not complete yet."""
        self.at_work: RunningOperator | None = None
        """The operator being opened, finished or closed: where an error outside a loop belongs."""
        self.records_in = 0
        self.busy_s = 0.0
        self.times: TaskTimes | None = None
        """Where the task's time goes, if its slot looks."""
        self._failure: Exception | None = None
        """Of a sink that was asked for room."""
        self.turn = Turn()
        self.input_clock = InputClock(services.monotonic_ms)
        self._services = services
        self._monotonic = services.monotonic
        self._opened: list[RunningOperator] = []
        self.outputs = [self.create_output(output, partition) for output, partition in partitions]
        execution = descriptor.execution
        interval = 0 if execution.event_time_stands_still else watermark_interval_ms
        runtime = OperatorRuntime(execution, interval, configured_backend(descriptor.configuration).keeps_objects)
        self.chain = [
            RunningOperator(operator, operator.spec.create(runtime), descriptor, self)
            for operator in descriptor.operators
        ]
        self._connect()
        self.head = self.chain[0]
        self.head.take_rest()
        self.source = self.head.operator if isinstance(self.head.operator, SourceOperator) else None
        self._sinks = [c.operator for c in self.chain if isinstance(c.operator, SinkOperator)]
        # in a stage operators wait for results themselves
        self._deferred = DeferredResults(self.chain if descriptor.execution.is_long_lived else ())
        self._unfinished_operators = deque(self.chain)
        """Operators whose ``finish`` has not been called."""
        self._awaits_results = False
        """Whether the input has ended and an operator still waits for results."""
        self._is_stopping = False
        """Whether the input ended because of a savepoint to stop with."""
        # one entry per channel of the gate: which input of the head it belongs to
        self._input_of = [index for entry in descriptor.inputs for index in [entry.input_index] * len(entry.channels)]
        self._valve = create_valve(self._input_of, self._advance, self._set_idle)
        self._unfinished: deque[Callable[[], bool]] = deque()
        """What a turn that ended early has left to be done before any more input is read: firing timers, and what
        follows it."""
        self._open_channels = len(self._input_of)
        self._loops: dict[tuple[int, bool], Loop] = {}
        self._first_loops = FirstLoops(self._loops)
        self.checkpoints = TaskCheckpoints(self, services)
        self.snapshots = self.checkpoints.snapshots
        self._barriers = self.checkpoints.barriers
        self._awaits_checkpoint = self.head.checkpointing
        self._is_long_lived = execution.is_long_lived
        self._batch_size = BatchSize(
            is_source=self.source is not None,
            has_columns=self.source is not None and self._reads_columns(),
            adapts=self._is_long_lived or (execution.has_idle_gaps and self.source is not None),
        )
        self._can_cut = False
        """Whether a batch that takes too long can be ended in the middle."""
        self.reports = TaskMetrics(self)

    def create_output(self, descriptor: OutputDescriptor, partition: ResultPartition) -> TaskOutput:
        """One of the task's outputs."""
        return TaskOutput(descriptor, partition, self.make_room)

    def _connect(self) -> None:
        by_node = {chained.descriptor.node_id: chained for chained in self.chain}
        subtask, parallelism = self.descriptor.subtask, self.descriptor.parallelism
        for chained in self.chain:
            if chained.descriptor.parent is not None:
                by_node[chained.descriptor.parent].add_consumer(chained.descriptor.parent_tag, chained)
            operator = chained.operator
            if isinstance(operator, SourceOperator):
                services, operator_id = self._services, chained.descriptor.operator_id
                operator.connect(
                    subtask,
                    parallelism,
                    partial(services.request_split, self, operator_id),
                    partial(services.report_watermark, self),
                    partial(services.send_source_event, self, operator_id),
                )
            elif isinstance(operator, SinkOperator):
                self._connect_sink(operator, chained.descriptor.operator_id)
        for output in self.outputs:
            producer = by_node[output.descriptor.node_id]
            if producer.operator.emits_columns:
                output.use_columns()
            producer.add_consumer(output.tag, output)

    def _reads_columns(self) -> bool:
        """Whether the records of the source are columns, or become columns in the next operators."""
        consumers = [chained for chained in self.chain if chained.descriptor.parent == self.head.descriptor.node_id]
        makes_columns = bool(consumers) and all(chained.operator.emits_columns for chained in consumers)
        return self.head.operator.emits_columns or makes_columns

    def _connect_sink(self, operator: SinkOperator, operator_id: str) -> None:
        # two sinks may use the same channel, so the client's streams are distinguished by operator
        services = self._services
        operator.connect(
            self.descriptor.subtask,
            self.descriptor.parallelism,
            lambda channel, payload: services.send_to_client(self, f"{channel}#{operator_id}", payload),
            lambda channel: services.client_has_room(self, f"{channel}#{operator_id}"),
        )

    # -- life cycle ---------------------------------------------------------------------------------

    def open(self, restore: TaskRestore | None, files: StateFileReader) -> None:
        """Opens the operators, the last one first: an operator may emit as soon as it is open."""
        for chained in reversed(self.chain):
            self._opened.append(chained)
            self.at_work = chained
            chained.initialize(restore, files)
            chained.open()
        self.at_work = None
        self._can_cut = self._is_long_lived and self.head.reads_iterators
        if restore is None:
            return
        if restore.channels and self.gate is not None:
            restore_channels(
                restore.channels,
                self.gate,
                self.descriptor.inputs,
                self.head.key_selectors,
                self.descriptor,
                files,
                rescaled=restore.rescaled,
            )
        if restore.finished and self.source is not None:
            self.source.ended = True
        if self._is_long_lived:
            self._restore_event_time(restore.watermark)

    def _restore_event_time(self, watermark: int | None) -> None:
        """Continues from a watermark, before all input. Its end comes again with the ends of the inputs."""
        if watermark is not None and MIN_TIMESTAMP < watermark < MAX_WATERMARK:
            self._valve.restore(watermark)
            # when all tasks and their channels are there; the timers that a turn had left fire now
            self._unfinished.append(partial(self._process_watermark, watermark))

    def close(self) -> list[BaseException]:
        """Closes what was opened, the head first; returns what went wrong doing so."""
        errors: list[BaseException] = []
        self.snapshots.close()
        while self._opened:
            self.at_work = self._opened.pop()
            try:
                self.at_work.close()
            except BaseException as error:  # noqa: BLE001 - every operator gets its chance to close
                errors.append(error)
        for chained in self.chain:
            chained.release()
        return errors

    # -- what the mailbox asks ----------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether every output and sink can take another batch."""
        return self._outputs_have_room() and not self._deferred.hold_up_record

    def _outputs_have_room(self) -> bool:
        return all(output.partition.has_room for output in self.outputs) and self.sinks_have_room()

    @property
    def can_read(self) -> bool:
        """Whether the task takes input: not while it waits for results of calls."""
        return not self._deferred or (not self._awaits_results and self._deferred.room > 0)

    def relieve(self) -> bool:
        """While the task waits in the middle of a turn: emits results of an operator that waits for them."""
        return bool(self._deferred) and self._deferred.relieve(self._outputs_have_room)

    def sinks_have_room(self) -> bool:
        """Whether every sink can take another batch."""
        try:
            return all(sink.has_room() for sink in self._sinks)
        except Exception as error:  # noqa: BLE001 - a connector may raise anything
            # asked between steps, where an error would end the whole slot: the task's next step fails with it
            self._failure = error
            return True

    def raise_failure(self) -> None:
        """Raises what a sink raised when it was asked for room."""
        if self._failure is not None:
            raise self._failure

    def has_work(self, now: float) -> bool:
        """Whether there is input, or a source with data, or a failure to report."""
        if self._failure is not None:
            return True
        if self._deferred:
            if self.suspended:
                return self.source is None and self.can_read and self._has_input(now)
            if self._deferred.are_ready:
                return True
            if self._awaits_results:
                return self._can_finish_next()
            if not self.can_read:
                return False
        return self._has_input(now)

    def _has_input(self, now: float) -> bool:
        if self.source is not None:
            if self.ended or self.suspended:
                return False
            return self.source.ended or self.source.has_data(now)
        assert self.gate is not None
        return self.gate.has_input or bool(self._unfinished)

    def run_once(self, most: int = 1 << 62) -> None:
        """Processes one batch or control event; of a source not many more than ``most`` records."""
        self.raise_failure()
        self.running = True
        self.input_clock.go_on()
        before = self.records_in
        started = self._monotonic()
        self.turn.begin(started)
        try:
            if self._deferred and not self._emit_results(started):
                pass  # there is no time, no room or no input
            elif self.source is not None:
                if self.source.ended or self._awaits_results:
                    self.end_of_data()
                else:
                    self.source.poll(min(self._batch_size.most, most, self._deferred.room))
                    self.records_in = self.source.records
                    self._close_full_buffers()
            elif self._unfinished:
                self._go_on()
            else:
                self._process_input()
        finally:
            self.turn.finish()
            self.running = False
            took = self._monotonic() - started
            self.busy_s += took
        self._batch_size.adapt(self.records_in - before, took)

    def _emit_results(self, now: float) -> bool:
        """Emits results that have come; returns whether the task can go on with its input."""
        if not self.suspended:
            # after the barrier of a savepoint to stop with nothing is emitted: it has the records
            self._deferred.emit()
            self._close_full_buffers()
        if self.turn.is_over or not self._outputs_have_room():
            return False
        return self._awaits_results or (self.can_read and self._has_input(now))

    def _process_input(self) -> None:
        assert self.gate is not None
        polled = self.gate.poll(min(self._batch_size.most, self._deferred.room))
        if polled is None:
            return
        channel, element = polled
        if not isinstance(element, Batch):
            self._process_event(channel, element)
            return
        values, timestamps = element.values, element.timestamps
        count = len(values)
        self.records_in += count
        at = self._input_of[channel], timestamps is not None
        loop = self._loops.get(at)
        if loop is None:
            loop = self._first_loops.get(at, self.descriptor.name, [self._target(at[0])], at[1], count)
        turn = self.turn
        if self._can_cut and type(values) is list:
            turn.cursor = iter(values)
            loop(turn.cursor, timestamps)  # type: ignore[arg-type]
        else:
            if type(values) is ColumnBatch:
                self._batch_size.expect_columns()
            loop(values, timestamps)
        rest = turn.take_rest()
        if rest:
            self.records_in -= len(rest)
            times = None if timestamps is None else timestamps[-len(rest) :]
            self.gate.push_back(channel, Batch(rest, times))
        self._close_full_buffers()

    def _close_full_buffers(self) -> None:
        for output in self.outputs:
            output.partition.after_batch()

    def _target(self, index: int) -> Any:
        return self.head if index == 0 else SecondInput(self.head)

    def _process_event(self, channel: int, event: ControlEvent) -> None:
        if isinstance(event, Watermark):
            self._valve.advance(channel, event.timestamp)
        elif isinstance(event, WatermarkStatus):
            self._valve.set_idle(channel, event.idle)
        elif isinstance(event, CheckpointBarrier):
            assert self._barriers is not None
            self._barriers.received(channel, event)
        elif isinstance(event, EndOfPartition):
            assert self._barriers is not None
            self._barriers.ended(channel)
            if self._barriers.all_ended and self.ended and not self._awaits_checkpoint:
                self.finish()
        elif isinstance(event, EndOfData):
            self._valve.finish(channel)
            self._open_channels -= 1
            if self._open_channels == 0:
                self._in_order(self._end_input)

    def _advance(self, watermark: int) -> None:
        self._in_order(partial(self._process_watermark, watermark))

    def _process_watermark(self, watermark: int) -> bool:
        if not self.head.fire_timers(watermark):
            return False
        self.head.process_watermark(watermark)
        return True

    def _set_idle(self, idle: bool) -> None:
        self._in_order(partial(self._process_idle, idle))

    def _process_idle(self, idle: bool) -> bool:
        self.head.process_idle(idle)
        return True

    def _end_input(self) -> bool:
        return self.end_of_data()

    def _in_order(self, step: Callable[[], bool]) -> None:
        """Takes a step, or as much of it as the turn allows, after all that an earlier turn has left."""
        if self._unfinished or not step():
            self._unfinished.append(step)

    def _go_on(self) -> None:
        """Takes the steps that an earlier turn has left."""
        unfinished = self._unfinished
        while unfinished and unfinished[0]():
            unfinished.popleft()

    def end_of_data(self, *, stopping: bool = False) -> bool:
        """All input has been processed: operators emit what is left, in order. False if one waits for results."""
        self._is_stopping |= stopping
        self._awaits_results = False
        while self._unfinished_operators:
            chained = self._unfinished_operators[0]
            self.at_work = chained
            if not self._can_finish(chained):
                self.at_work = None
                self._awaits_results = True
                return False
            chained.operator.finish()
            self._unfinished_operators.popleft()
        self.at_work = None
        for output in self.outputs:
            output.broadcast_event(EndOfData())
        self.ended = True
        if self._awaits_checkpoint:
            self._services.await_checkpoint(self)
        elif self.source is not None and not self._is_stopping:
            # others end with their channels: the barrier of a savepoint to stop with may come before that
            self.finish()
        self.checkpoints.operators_finished()
        return True

    def _can_finish(self, chained: RunningOperator) -> bool:
        """Whether an operator has nothing under way; where tasks do not take turns, waits for that."""
        operator = chained.operator
        if not isinstance(operator, DeferringOperator):
            return True
        if not self._is_long_lived:
            operator.drain()
        return operator.is_drained

    def _can_finish_next(self) -> bool:
        return self._can_finish(self._unfinished_operators[0])

    def finish(self) -> None:
        """Ends the channels of the task."""
        for output in self.outputs:
            output.broadcast_event(EndOfPartition())
        self.finished = True

    # -- ChainServices ------------------------------------------------------------------------------

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._services.processing_time()

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back in the mailbox once the wall clock reaches the timestamp, unless the operators have finished."""
        self._services.schedule(self, timestamp, lambda now: None if self.ended else callback(now))

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self._services.monotonic_ms()

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back in the mailbox after a delay in milliseconds, unless the operators have finished."""
        self._services.schedule_after(self, delay, partial(self._call_back, callback))

    def _call_back(self, callback: Callable[[], None]) -> None:
        if not self.ended:
            callback()
            if self._is_long_lived and self.has_work(self._monotonic()):
                # how long that waits for the slot's other tasks does not mean that there is none
                self.input_clock.stop()

    @property
    def event_loop(self) -> EventLoop:
        """The event loop of the slot."""
        return self._services.event_loop

    def wakeup(self) -> None:
        """Has the slot look for results; may be called from any thread."""
        self._services.wakeup()

    def wait_for_results(self) -> None:
        """Waits in the middle of a turn until an operator has room, or where tasks take no turns, for a wakeup."""
        if self._is_long_lived:
            self._services.wait_for_room(self)
        else:
            self._services.wait_for_wakeup()

    def make_room(self) -> None:
        """Closes full buffers; where that leaves an output far too full, ends the turn, or waits if that is no help."""
        overfull = False
        for output in self.outputs:
            partition = output.partition
            partition.after_batch()
            overfull |= partition.is_overfull
        if not overfull or self.checkpoints.takes_snapshot:
            # what operators emit before a barrier is bounded, and an unaligned barrier must not wait for consumers
            return
        turn = self.turn
        if self._is_long_lived and turn.started and not turn.is_full:
            # checkpoints are taken between turns: what can be left for the next one is. That the watch has just ended
            # the turn, perhaps while buffers were closed above, does not mean that this is no help.
            turn.is_full = True
            turn.end()
        else:
            self._services.wait_for_room(self)

    def open_state_files(self) -> StateFileReader:
        """Reads state files of earlier checkpoints; to be closed."""
        return self._services.open_state_files()

    # -- reports ------------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        """The event time the task has reached."""
        return self._valve.watermark if self.source is None else self.source.watermark

    @property
    def records_out(self) -> int:
        """Records that have left the task: to other tasks, and through its sinks."""
        return sum(output.partition.num_records_out for output in self.outputs) + sum(
            sink.records for sink in self._sinks
        )

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Task metrics under '', operator metrics under their operator id."""
        return self.reports.report()
