"""An operator in its place in a chain: what is downstream of it, its key, state, timers and metrics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options, pipeline_options
from firesteel.runtime.chain.context import StreamingRuntimeContext
from firesteel.runtime.chain.first_loops import FirstLoops
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.chain.result_conversions import ResultConversions
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.codegen.loops import Loop
from firesteel.runtime.codegen.ownership import Ownership, Shape, ownership_of_type, shape_of
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.elements import MIN_TIMESTAMP, CheckpointBarrier, Watermark, WatermarkStatus
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.metrics import Counter, Gauge, MetricRegistry
from firesteel.runtime.model.operator_spec import Operator
from firesteel.runtime.operators.base import StateInitializationContext, StreamOperator
from firesteel.runtime.operators.co import TwoInputOperator
from firesteel.runtime.operators.inline import InlineOperator
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.state.api.backend import KeyedSnapshot, KeyedStateBackend
from firesteel.runtime.state.api.operator_state import OperatorStateBackend, PendingOperatorState
from firesteel.runtime.state.factory import create_keyed_backend
from firesteel.runtime.time.timers import BatchTimerService, InternalTimerService, Triggerable
from firesteel.runtime.time.turns import CUTTABLE

if TYPE_CHECKING:
    from firesteel.process.event_loop import EventLoop
    from firesteel.runtime.checkpoint.files import StateFileReader
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.assigned_state import TaskRestore
    from firesteel.runtime.time.input_clock import InputClock
    from firesteel.runtime.time.turns import Turn
    from firesteel.types.conversion import Conversion

__all__ = ["ChainServices", "OperatorSnapshot", "RunningOperator", "SecondInput"]

_MAX_EMITTED_RECORDS = 4096
_UNKNOWN = object()


class ChainServices(Protocol):
    """What a task gives to its chain."""

    turn: Turn
    """Ends early if it takes too long."""

    input_clock: InputClock
    """The time in which the task was free to read its input."""

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back in the mailbox once the wall clock reaches the timestamp."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back in the mailbox after a delay in milliseconds."""
        ...

    def make_room(self) -> None:
        """Lets consumers catch up where an output is full."""
        ...

    @property
    def event_loop(self) -> EventLoop:
        """The event loop of the slot."""
        ...

    def wakeup(self) -> None:
        """Has the task look for results; may be called from any thread."""
        ...

    def wait_for_results(self) -> None:
        """Waits in the middle of a turn until an operator has room, or where tasks take no turns, for a wakeup."""
        ...

    def open_state_files(self) -> StateFileReader:
        """Reads state files of earlier checkpoints; to be closed."""
        ...


@dataclass(frozen=True)
class OperatorSnapshot:
    """An operator's state at a barrier, ready to be written."""

    keyed: KeyedSnapshot | None
    operator: PendingOperatorState


class RunningOperator:
    """One operator of a running chain. Is its operator's OperatorContext."""

    def __init__(
        self,
        descriptor: OperatorDescriptor,
        operator: Operator,
        task: TaskDeploymentDescriptor,
        services: ChainServices,
    ):
        if not isinstance(operator, InlineOperator | StreamOperator):
            raise InvalidProgramError(
                f"{type(descriptor.spec).__name__}.create returned {operator!r}, which is not an operator.",
                hint="Return an InlineOperator or a StreamOperator.",
            )
        self.descriptor = descriptor
        self.operator = operator
        self.metrics = MetricRegistry()
        self._selectors = [_own_selector(selector) for selector in descriptor.key_selectors]
        self.key_selectors: tuple[Callable[[Any], Any], ...] = tuple(
            method_of(selector, "get_key") for selector in self._selectors
        )
        self.backend: KeyedStateBackend | None = None
        if self.key_selectors:
            groups = KeyGroupRange.of(task.subtask, task.max_parallelism, task.parallelism)
            self.backend = create_keyed_backend(
                task.configuration,
                groups,
                task.max_parallelism,
                services.processing_time,
                operator_id=descriptor.operator_id,
                subtask=task.subtask,
                open_files=self._open_state_files,
                execution=task.execution,
            )
        self.reuses_objects = task.configuration.get(pipeline_options.OBJECT_REUSE)
        self.operator_state = OperatorStateBackend(self.reuses_objects)
        self.checkpointing = _checkpoint_follows(task)
        """Whether a checkpoint follows the end of the input: sinks then commit with it, not at the end itself."""
        self.execution = task.execution
        self.turn = services.turn
        self.input_clock = services.input_clock
        self.runtime_context = StreamingRuntimeContext(task, descriptor, self.backend, self.metrics)
        converts = task.configuration.get(pipeline_options.CONVERT_TYPED_RECORDS)
        self.conversions = ResultConversions(descriptor, enabled=converts and not operator.emits_columns)
        self.type_check = None if operator.emits_columns else self.conversions.check
        self.results = Ownership.FIXED if self.reuses_objects else ownership_of_type(descriptor.output_type)
        """Who may change what the operator's function returns."""
        self.copies_results = self.results is not Ownership.FIXED
        self.usual_shape: Shape | None = None
        """What the first results were, if they were all alike; empty if they were not."""
        self._services = services
        self.downstream: dict[str | None, list[RunningOperator | TaskOutput]] = {None: []}
        """What reads the results (None) and each side output that is read."""
        self.emitted: dict[str | None, int] = {}
        """Records handed on outside of generated loops, by side output."""
        self.input_watermark = self.output_watermark = MIN_TIMESTAMP
        self._tags: dict[str, OutputTag] = {}
        self._converters: dict[str | None, Any] = {}
        self._loops: dict[tuple[str | None, bool], Loop] = {}
        self._first_loops = FirstLoops(self._loops)
        self.takes_rest = False
        """Whether whoever hands records to this operator takes back those that it leaves when the turn is over."""
        self._cuts = self._reads_whole = False
        self._timers: list[InternalTimerService] = []
        self._open_choosers: list[Any] = []

    # -- the chain around the operator --------------------------------------------------------------

    def add_consumer(self, tag: OutputTag | None, consumer: RunningOperator | TaskOutput) -> None:
        """Connects what reads this operator's results, or one of its side outputs."""
        if tag is None:
            self.downstream[None].append(consumer)
        else:
            self._tags[tag.tag_id] = tag
            self.downstream.setdefault(tag.tag_id, []).append(consumer)

    def consumers(self, tag: OutputTag | None) -> Sequence[RunningOperator | TaskOutput]:
        """What reads the results, or a side output."""
        return self.downstream.get(None if tag is None else tag.tag_id, ())

    def tags(self) -> Sequence[OutputTag]:
        """The side outputs that are read."""
        return list(self._tags.values())

    def conversion(self, tag: OutputTag | None) -> Conversion | None:
        """How results, or those of a side output, become values of their type where they leave the functions."""
        if tag is not None:
            return self.conversions.of_tag(tag)
        targets = self.downstream[None]
        if len(targets) == 1 and isinstance(targets[0], RunningOperator) and targets[0].conversions.is_function:
            return None  # as in PyFlink, functions of a chain see each other's results as they are
        return None if all(target.discards for target in targets) else self.conversions.main

    @property
    def name(self) -> str:
        return self.descriptor.name

    @property
    def process_context(self) -> Any:
        """The context that a process function is called with, if it is one."""
        return getattr(self.operator, "process_context", None)

    @property
    def timer_services(self) -> Sequence[InternalTimerService]:
        return self._timers

    def initialize(self, restore: TaskRestore | None, files: StateFileReader) -> None:
        """Restores the state of a checkpoint, if the job starts from one; called before ``open``."""
        restored = None if restore is None else restore.operators.get(self.descriptor.operator_id)
        if restore is not None and restored is not None:
            if self.backend is not None and restored.keyed:
                self.backend.restore(restored.keyed, files, reusable=restore.reusable)
            self.operator_state.restore(restored.operator, files)
        checkpoint_id = None if restore is None else restore.checkpoint_id
        self.operator.initialize_state(StateInitializationContext(self, checkpoint_id))

    def _open_state_files(self) -> StateFileReader:
        return self._services.open_state_files()

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Lets the operator emit what must be before the barrier."""
        self.operator.prepare_snapshot_pre_barrier(checkpoint_id)

    def snapshot_operator(self, barrier: CheckpointBarrier) -> None:
        """Has the operator put what it holds into its state; to be called before ``snapshot``."""
        self.operator.snapshot_state(barrier.checkpoint_id, self.operator_state, barrier.timestamp)

    def snapshot(self, barrier: CheckpointBarrier) -> OperatorSnapshot:
        """The synchronous part of a snapshot."""
        operator_state = self.operator_state.snapshot()
        if self.backend is None:
            return OperatorSnapshot(None, operator_state)
        return OperatorSnapshot(self.backend.snapshot(barrier.checkpoint_id, barrier.options.kind), operator_state)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self.backend is not None:
            self.backend.notify_checkpoint_complete(checkpoint_id)
        self.operator.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never exist."""
        if self.backend is not None:
            self.backend.notify_checkpoint_aborted(checkpoint_id)
        self.operator.notify_checkpoint_aborted(checkpoint_id)

    def open(self) -> None:
        """Opens the operator and what chooses its keys and channels; what is downstream is open already."""
        for function in self._choosers():
            function.open(self.runtime_context)
            self._open_choosers.append(function)
        self._look_downstream()
        self.operator.open(self)

    def close(self) -> None:
        try:
            self.operator.close()
        finally:
            while self._open_choosers:
                self._open_choosers.pop().close()
            self.release()

    def release(self) -> None:
        """Releases the state; also if the operator was never opened. May be called again."""
        if self.backend is not None:
            self.backend.close()

    def _choosers(self) -> Iterator[Any]:
        """KeySelector and Partitioner objects, which have a life as other functions do."""
        functions = list(self._selectors)
        for consumer in itertools.chain.from_iterable(self.downstream.values()):
            if isinstance(consumer, TaskOutput):
                functions += consumer.functions
        for function in functions:
            if hasattr(function, "open") and hasattr(function, "close"):
                yield function

    def note_shape(self, result: Any) -> None:
        """Inspects one of the first results."""
        shape = shape_of(result)
        self.usual_shape = shape if self.usual_shape in (None, shape) else ()

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes this operator's lines into a loop."""
        with writer.operator(self):
            if isinstance(self.operator, InlineOperator):
                self.operator.write(writer, value)
            elif self.operator.record_function is not None:
                writer.line(f"{writer.bind('take', self.operator.record_function)}({value})", element=value)
            elif not self.discards:
                writer.collect(value, self.operator.process_batch, "")

    @property
    def discards(self) -> bool:
        """Whether results sent here are of no consequence at all."""
        return isinstance(self.operator, SinkOperator) and self.operator.discards

    @property
    def keeps_records(self) -> bool:
        """Whether the operator may still have a record when it has been processed."""
        return self.operator.keeps_records

    def batch_function(self) -> Loop | None:
        """What to call with a whole batch, for operators that work on batches."""
        if isinstance(self.operator, StreamOperator) and self.operator.record_function is None:
            return self.operator.process_batch
        return None

    @property
    def reads_iterators(self) -> bool:
        """Whether a batch for this operator, which is open, may be an iterator that another thread can cut short."""
        return self.batch_function() is None or getattr(self.operator, "reads_iterators", False)

    @property
    def leaves_rest(self) -> bool:
        """Whether the operator ends a batch with the turn, and leaves the rest of it there."""
        return self._cuts and self._can_leave_rest

    @property
    def _can_leave_rest(self) -> bool:
        return isinstance(self.operator, StreamOperator) and self.operator.leaves_rest

    def take_rest(self) -> None:
        """Declares that the caller takes back the records that this operator leaves; so does the operator."""
        self.takes_rest = True
        targets = self.downstream[None]
        if self._can_leave_rest and len(targets) == 1 and isinstance(targets[0], RunningOperator):
            targets[0].take_rest()

    def _look_downstream(self) -> None:
        """Notes whether what reads the results, which is open, can be stopped in the middle of a batch."""
        targets = self.downstream[None]
        first = targets[0] if len(targets) == 1 else None
        self._reads_whole = first is not None and first.batch_function() is not None
        if not self.execution.is_long_lived or not self.takes_rest or not targets:
            return
        self._cuts = not self._reads_whole or (isinstance(first, RunningOperator) and first.leaves_rest)

    # -- OperatorContext ----------------------------------------------------------------------------

    @property
    def event_loop(self) -> EventLoop:
        """The event loop of the slot."""
        return self._services.event_loop

    def wakeup(self) -> None:
        """Has the task look for results; may be called from any thread."""
        self._services.wakeup()

    def wait_for_results(self) -> None:
        """Waits in the middle of a turn until the operator has room, or where tasks take no turns, for a wakeup."""
        self._services.wait_for_results()

    def emit_in_turn(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """Hands records to the operators downstream until the turn is over; returns how many of the last are left.

        They are in the turn, from which the caller that gave the records to this operator takes them.
        """
        values = self._converted(None, values)
        turn = self.turn
        if not self._cuts or turn.is_whole or values.__class__ not in CUTTABLE or len(values) > _MAX_EMITTED_RECORDS:
            self._emit_converted(None, values, timestamps)
            return 0
        loop = self._loop(None, values, timestamps)
        if self._reads_whole:
            loop(values, timestamps)
        else:
            turn.cursor = iter(values)
            loop(turn.cursor, timestamps)  # type: ignore[arg-type]
            turn.cursor = None
        left = len(turn.rest)
        self.emitted[None] -= left
        if not turn.is_over:
            self._services.make_room()
        return left

    def emit(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Hands records to the operators downstream."""
        self._emit(None, values, timestamps)

    def emit_side(self, tag: OutputTag, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits records to a side output; dropped if it has no consumer."""
        if tag.tag_id in self.downstream:
            self._emit(tag.tag_id, values, timestamps)

    def _emit(self, tag_id: str | None, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._emit_converted(tag_id, self._converted(tag_id, values), timestamps)

    def _converted(self, tag_id: str | None, values: Sequence[Any]) -> Sequence[Any]:
        """Converts what the operator emits itself, outside of a loop."""
        convert = self._converters.get(tag_id, _UNKNOWN)
        if convert is _UNKNOWN:
            conversion = self.conversion(None if tag_id is None else self._tags[tag_id])
            convert = None if conversion is None else conversion.convert_all()
            self._converters[tag_id] = convert
        return values if convert is None else convert(values)

    def _emit_converted(self, tag_id: str | None, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        if len(values) > _MAX_EMITTED_RECORDS and not self.operator.emits_columns:
            for start in range(0, len(values), _MAX_EMITTED_RECORDS):
                end = start + _MAX_EMITTED_RECORDS
                self._emit_converted(tag_id, values[start:end], None if timestamps is None else timestamps[start:end])
            return
        loop = self._loop(tag_id, values, timestamps)
        turn = self.turn
        # the caller that emits these records takes none back: an operator further down, which could leave some, must
        # not
        before, turn.is_whole = turn.is_whole, True
        loop(values, timestamps)
        turn.is_whole = before
        self._services.make_room()

    def _loop(self, tag_id: str | None, values: Sequence[Any], timestamps: Sequence[int] | None) -> Loop:
        """Counts records, and returns what carries them downstream."""
        self.emitted[tag_id] = self.emitted.get(tag_id, 0) + len(values)
        with_timestamps = timestamps is not None
        loop = self._loops.get((tag_id, with_timestamps))
        if loop is None and self.operator.emits_columns:
            loop = self._loops[tag_id, with_timestamps] = self._column_loop(tag_id)
        elif loop is None:
            if tag_id is None and self.type_check is not None:
                for value in values:
                    self.type_check(value)
            consumers, name = self.downstream[tag_id], self.descriptor.name
            loop = self._first_loops.get(
                (tag_id, with_timestamps),
                name,
                consumers,
                with_timestamps,
                len(values),
                self._ownership_of_emitted(tag_id),
            )
        return loop

    def _column_loop(self, tag_id: str | None) -> Loop:
        """What carries whole batches to all consumers: columns are never changed, so they share them."""
        functions = []
        for consumer in self.downstream[tag_id]:
            function = consumer.batch_function()
            if function is None:
                raise InvalidProgramError(
                    f"'{consumer.name}' reads records, but '{self.name}' emits columns.",  # type: ignore[union-attr]
                    hint="Put the operator that converts columns to rows between them: ColumnsToRowsSpec.",
                )
            functions.append(function)
        if len(functions) == 1:
            return functions[0]

        def emit_to_all(values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
            for function in functions:
                function(values, timestamps)

        return emit_to_all

    def _ownership_of_emitted(self, tag_id: str | None) -> Ownership:
        """The ownership of what the operator emits itself, outside of a loop."""
        if self.reuses_objects or (tag_id is None and self.results is Ownership.FIXED):
            return Ownership.FIXED
        if self.operator.emits_own_records:
            return Ownership.EXCLUSIVE
        return self.results if tag_id is None else Ownership.SHARED

    def emit_watermark(self, timestamp: int) -> None:
        """Sends a watermark downstream, into side outputs as well."""
        self.output_watermark = timestamp
        for consumers in self.downstream.values():
            for consumer in consumers:
                if isinstance(consumer, RunningOperator):
                    consumer.process_watermark(timestamp)
                else:
                    consumer.broadcast_event(Watermark(timestamp))

    def fire_timers(self, timestamp: int) -> bool:
        """Fires timers up to a watermark that is to be processed then, while the turn lasts; whether none is left."""
        self.input_watermark = timestamp
        return self.operator.fire_timers(timestamp)

    def process_watermark(self, timestamp: int) -> None:
        """Event time has advanced: timers fire, then the operator passes it on."""
        self.input_watermark = timestamp
        self.operator.process_watermark(timestamp)

    def emit_idle(self, idle: bool) -> None:
        """Signals downstream whether this operator's watermark counts."""
        for consumers in self.downstream.values():
            for consumer in consumers:
                if isinstance(consumer, RunningOperator):
                    consumer.process_idle(idle)
                else:
                    consumer.broadcast_event(WatermarkStatus(idle))

    def process_idle(self, idle: bool) -> None:
        """The input became idle or active."""
        self.operator.process_idle(idle)

    def timer_service(self, name: str, triggerable: Triggerable) -> InternalTimerService:
        assert self.backend is not None
        service = BatchTimerService if self.execution.one_key_at_a_time else InternalTimerService
        services = self._services
        timers = service(
            self.backend, triggerable, services.processing_time, services.schedule, name=name, turn=services.turn
        )
        self._timers.append(timers)
        return timers

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._services.processing_time()

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back in the mailbox once the wall clock reaches the timestamp."""
        self._services.schedule(timestamp, callback)

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self._services.monotonic_ms()

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back in the mailbox after a delay in milliseconds."""
        self._services.schedule_after(delay, callback)

    def counter(self, name: str) -> Counter:
        """The operator's counter of that name."""
        return self.metrics.counter(name)

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        return self.metrics.gauge(name, read)


class SecondInput:
    """A two-input operator as the target of its second input's loop."""

    discards = False
    keeps_records = True

    def __init__(self, chained: RunningOperator):
        self._chained = chained

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the operator's lines for its second input."""
        operator = self._chained.operator
        assert isinstance(operator, TwoInputOperator)
        with writer.operator(self._chained):
            operator.write_input(writer, value, 1)

    def batch_function(self) -> Loop | None:
        """What to call with a whole batch: operators on columns have that, others are inlined."""
        function: Loop | None = getattr(self._chained.operator, "process_second_batch", None)
        return function


def _own_selector(selector: Any) -> Any:
    """A selector that can be opened and closed by itself: the task that sends the records may use the same object."""
    return cloudpickle.loads(cloudpickle.dumps(selector)) if hasattr(selector, "open") else selector


def _checkpoint_follows(task: TaskDeploymentDescriptor) -> bool:
    if not task.execution.is_long_lived:
        return task.execution.has_idle_gaps
    configuration = task.configuration
    return configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL) is not None and configuration.get(
        checkpointing_options.CHECKPOINTS_AFTER_TASKS_FINISH
    )
