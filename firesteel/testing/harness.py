"""Operator test harness: feeds one operator by hand and returns its outputs, timers and state.

The operator, its place in a chain, its state backend, its timers and the generated loop are those of the runtime.
Only what is around them is a fake: a clock that the test moves, and a consumer that keeps what it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from firesteel.api.output_tag import OutputTag
from firesteel.api.state import StateDescriptor
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.chain.running_operator import RunningOperator, SecondInput
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.codegen.loops import Loop, LoopWriter
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.metrics import Counter
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.deferring import DeferringOperator
from firesteel.runtime.state.registry import configured_backend
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.timers import InternalTimerService, TimerQueue
from firesteel.runtime.time.turns import Turn
from firesteel.runtime.time.watermarks import WatermarkValve
from firesteel.testing.clock import FakeClock
from firesteel.testing.snapshots import HarnessSnapshot, take_snapshot
from firesteel.testing.source import At
from firesteel.testing.stored_values import visible_value
from firesteel.testing.virtual_event_loop import ManualEventLoop

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Emitted", "OneInputHarness", "OperatorHarness", "Timer", "TwoInputHarness"]

_WATERMARK_INTERVAL_MS = 200


class Emitted(NamedTuple):
    """A record that came out, with its timestamp if it has one."""

    value: Any
    timestamp: int | None


class Timer(NamedTuple):
    """A timer that has not fired yet."""

    timestamp: int
    key: Any


class OperatorHarness:
    """What the harnesses share: the operator's life, time, outputs, state, timers and checkpoints.

    It opens the operator when it is first used, and is a context manager that closes it. A function is used as
    it is, not as a copy, so that a test can look into it. What a function raises comes out unchanged.

    ``backend`` is ``hashmap`` or ``rocksdb``. A snapshot taken with one can be restored with the other, and with
    another ``parallelism``, each harness being one ``subtask`` of it.
    """

    _inputs = 1

    def __init__(
        self,
        spec: OperatorSpec,
        key_selectors: Sequence[Any] = (),
        *,
        clock: FakeClock | None = None,
        name: str = "operator",
        output_type: Any = None,
        parallelism: int = 1,
        subtask: int = 0,
        max_parallelism: int = 128,
        attempt: int = 0,
        job_id: str = "",
        run_id: str = "",
        backend: str | None = None,
        configuration: Configuration | None = None,
    ):
        self._check_spec(spec)
        self.clock = FakeClock() if clock is None else clock
        settings = Configuration() if configuration is None else Configuration(configuration)
        if backend is not None:
            settings.set(checkpointing_options.STATE_BACKEND, backend)
        operator = OperatorDescriptor(1, name, name, spec, key_selectors=tuple(key_selectors), output_type=output_type)
        capture = OperatorDescriptor(2, "capture", "capture", spec, parent=1)
        task = TaskDeploymentDescriptor(
            name,
            name,
            subtask,
            parallelism,
            max_parallelism,
            attempt,
            0,
            (operator, capture),
            configuration=settings,
            job_id=job_id,
            # so that the subtasks of an attempt, a harness each, know each other
            run_id=run_id or job_id,
        )
        services = self._services = _HarnessServices(self.clock, self._settle)
        self._captured = _Capture()
        keeps_objects = configured_backend(settings).keeps_objects
        created = spec.create(OperatorRuntime(task.execution, _WATERMARK_INTERVAL_MS, keeps_objects))
        self._task = task
        self._chained = _HarnessOperator(operator, created, task, services)
        self._consumer = RunningOperator(capture, self._captured, task, services)
        self._chained.add_consumer(None, self._consumer)
        self._valve = WatermarkValve(self._inputs, self._chained.process_watermark, self._chained.process_idle)
        self._loops: dict[tuple[int, bool], Loop] = {}
        self._is_initialized = False
        self._is_open = False
        self._is_closed = False

    @staticmethod
    def _check_spec(spec: OperatorSpec) -> None:
        if spec.get_source() is not None or spec.get_sink() is not None:
            raise TypeError(f"A harness is for operators between source and sink, not for a {type(spec).__name__}.")

    # -- life -----------------------------------------------------------------------------------------

    def open(self) -> Self:
        """Opens the operator and its function; done by the first use otherwise."""
        if self._is_closed:
            raise RuntimeError("The harness is closed: make a new one.")
        if not self._is_open:
            if not self._is_initialized:
                self.initialize_state(None)
            self._is_open = True
            self._consumer.open()
            self._chained.open()
            self._settle()
        return self

    def finish(self) -> None:
        """Ends the input as a bounded source does: event time ends, and everything left comes out."""
        self.open()
        for index in range(self._inputs):
            self._process_watermark(index, MAX_WATERMARK)
        operator = self._chained.operator
        if isinstance(operator, DeferringOperator) and not operator.is_drained:
            raise RuntimeError("Calls are under way: advance the clock until they are done, then finish.")
        operator.finish()

    def close(self) -> None:
        """Closes the operator and its function."""
        if self._is_open and not self._is_closed:
            self._is_closed = True
            self._chained.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    # -- checkpoints ----------------------------------------------------------------------------------

    def initialize_state(self, snapshot: HarnessSnapshot | None) -> Self:
        """Starts from a snapshot; before the operator is opened."""
        if self._is_initialized:
            raise RuntimeError("The harness has its state already: restore a snapshot into a new one.")
        self._is_initialized = True
        task = self._task
        restore = None
        if snapshot is not None:
            operator_id = self._chained.descriptor.operator_id
            restore = snapshot.restore_for(operator_id, task.subtask, task.parallelism, task.max_parallelism)
        with StateFileReader() as files:
            self._chained.initialize(restore, files)
        return self

    def snapshot(self, checkpoint_id: int = 1) -> HarnessSnapshot:
        """Takes a checkpoint of the operator, without notifying it of the completion."""
        self.open()
        return take_snapshot(self._chained, checkpoint_id, self.clock.now)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notifies the operator that the checkpoint is complete."""
        self._chained.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Notifies the operator that the checkpoint is aborted."""
        self._chained.notify_checkpoint_aborted(checkpoint_id)

    # -- time -----------------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Moves the clock: processing-time timers that are due fire, each at its time."""
        self.open()
        self.clock.advance(milliseconds)

    def process_watermark(self, timestamp: int) -> None:
        """Moves event time, on all inputs: event-time timers and windows that are due fire."""
        for index in range(self._inputs):
            self._process_watermark(index, timestamp)

    # -- what came out --------------------------------------------------------------------------------

    @property
    def output(self) -> list[Any]:
        """The values that came out of the main output, in order."""
        return [record.value for record in self._captured.records]

    @property
    def records(self) -> list[Emitted]:
        """What came out of the main output, with timestamps."""
        return list(self._captured.records)

    @property
    def watermarks(self) -> list[int]:
        """The watermarks that were sent on."""
        return list(self._captured.watermarks)

    def side_output(self, tag: OutputTag) -> list[Any]:
        """The values that went to a side output, in order."""
        return [record.value for record in self.side_records(tag)]

    def side_records(self, tag: OutputTag) -> list[Emitted]:
        """What went to a side output, with timestamps."""
        return list(self._chained.sides.get(tag.tag_id, ()))

    def take_output(self) -> list[Any]:
        """The values of the main output since the last call."""
        values = self.output
        self._captured.records.clear()
        return values

    # -- what is inside -------------------------------------------------------------------------------

    def state(self, state: str | StateDescriptor, key: Any, window: Any = None) -> Any:
        """What a state holds for a key: a value, a list or a dict; None (or an empty one) if nothing.

        The state goes by its name or its descriptor. Looking does not count as a read for time-to-live.
        ``window`` is for the per-window state of a ProcessWindowFunction; that of a trigger has ``trigger/``
        before its name.
        """
        backend = self._chained.backend
        if backend is None:
            raise RuntimeError(f"{self._chained.descriptor.name} is not keyed, so it has no keyed state.")
        name = state if isinstance(state, str) else state.get_name()
        if window is not None and "/" not in name:
            name = f"window/{name}"
        descriptor = backend.descriptors().get(name)
        if descriptor is None:
            known = ", ".join(sorted(backend.descriptors())) or "none"
            raise KeyError(f"No function has declared a state '{name}' (declared: {known}).")
        for namespace, stored_key, stored in backend.entries(name):
            if namespace == window and stored_key == key:
                return visible_value(descriptor, stored, self.clock.now)
        return visible_value(descriptor, None, self.clock.now)

    def keys(self, state: str | StateDescriptor) -> list[Any]:
        """The keys for which a state holds something."""
        backend = self._chained.backend
        name = state if isinstance(state, str) else state.get_name()
        return [] if backend is None else list(backend.keys(name))

    @property
    def event_time_timers(self) -> list[Timer]:
        """The event-time timers that wait, in firing order."""
        return self._timers(lambda service: service.event)

    @property
    def processing_time_timers(self) -> list[Timer]:
        """The processing-time timers that wait, in firing order."""
        return self._timers(lambda service: service.processing)

    def num_event_time_timers(self) -> int:
        """How many event-time timers wait."""
        return len(self.event_time_timers)

    def num_processing_time_timers(self) -> int:
        """How many processing-time timers wait."""
        return len(self.processing_time_timers)

    def counter(self, name: str) -> int:
        """The present count of a counter: the function's own, or one like ``numLateRecordsDropped``."""
        metrics = self._chained.metrics.metrics
        metric = metrics.get(f"user.{name}") or metrics.get(name)
        if not isinstance(metric, Counter):
            raise KeyError(f"No counter '{name}' (known: {', '.join(sorted(metrics)) or 'none'}).")
        return metric.count

    # -- for the harnesses ----------------------------------------------------------------------------

    def _timers(self, queue: Callable[[InternalTimerService], TimerQueue]) -> list[Timer]:
        timers = [timer for service in self._chained.timer_services for timer in queue(service).timers()]
        return [Timer(timestamp, key) for timestamp, key, _ in sorted(timers, key=lambda timer: timer[0])]

    def _process(self, index: int, value: Any, timestamp: int | None) -> None:
        self.open()
        if isinstance(value, At):
            value, timestamp = value.value, value.timestamp
        with_timestamps = timestamp is not None
        loop = self._loops.get((index, with_timestamps))
        if loop is None:
            loop = self._loops[index, with_timestamps] = self._compile(index, with_timestamps)
        loop([value], None if timestamp is None else [timestamp])
        self._settle()
        # a processing-time timer set for a time that has passed fires at once
        self.clock.advance(0)

    def _settle(self) -> None:
        """Lets calls of async functions go as far as they can, and emits their results."""
        operator = self._chained.operator
        self._services.event_loop.run_ready()
        while isinstance(operator, DeferringOperator) and operator.has_results:
            operator.emit_results()
            self._services.event_loop.run_ready()

    def _compile(self, index: int, with_timestamps: bool) -> Loop:
        target: Any = self._chained if index == 0 else SecondInput(self._chained)
        direct: Loop | None = target.batch_function()
        if direct is not None:
            return direct
        writer = _HarnessWriter(with_timestamps, self._chained.record_side)
        writer.write_targets([target], "v0")
        return writer.compile(self._chained.descriptor.name)

    def _process_watermark(self, index: int, timestamp: int) -> None:
        self.open()
        self._valve.advance(index, timestamp)
        self._settle()


class OneInputHarness(OperatorHarness):
    """A harness for an operator with one input."""

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record; ``At(value, timestamp)`` will do as well."""
        self._process(0, value, timestamp)

    def process_elements(self, values: Iterable[Any]) -> None:
        """Processes records one after the other."""
        for value in values:
            self._process(0, value, None)


class TwoInputHarness(OperatorHarness):
    """A harness for an operator with two inputs."""

    _inputs = 2

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the first input."""
        self._process(0, value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the second input."""
        self._process(1, value, timestamp)

    def process_watermark1(self, timestamp: int) -> None:
        """Moves the first input's event time; the operator's is the lower one of the two."""
        self._process_watermark(0, timestamp)

    def process_watermark2(self, timestamp: int) -> None:
        """Moves the second input's event time; the operator's is the lower one of the two."""
        self._process_watermark(1, timestamp)


class _HarnessServices:
    """What a task gives to its chain, here a fake clock and endless room."""

    def __init__(self, clock: FakeClock, settle: Callable[[], None]):
        self._clock = clock
        self.event_loop = ManualEventLoop(clock, settle)
        self.turn = Turn()
        self.input_clock = InputClock(clock.monotonic_ms)

    def processing_time(self) -> int:
        return self._clock.now

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        self._clock.schedule(timestamp, callback)

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        self._clock.schedule_after(delay, callback)

    def wakeup(self) -> None:
        """Not needed: the harness looks for results after every step."""

    def wait_for_results(self) -> None:
        self.event_loop.run_ready()

    def make_room(self) -> None:
        """There is always room."""

    def open_state_files(self) -> StateFileReader:
        return StateFileReader()


class _Capture(StreamOperator):
    """Keeps what the operator under test emits."""

    def __init__(self) -> None:
        self.records: list[Emitted] = []
        self.watermarks: list[int] = []

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.records += _emitted(values, timestamps)

    def process_watermark(self, timestamp: int) -> None:
        self.watermarks.append(timestamp)

    def process_idle(self, idle: bool) -> None:
        pass


class _HarnessOperator(RunningOperator):
    """An operator of which every side output is read."""

    def __init__(self, *args: Any):
        self.sides: dict[str, list[Emitted]] = {}
        super().__init__(*args)

    def emit_side(self, tag: OutputTag, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.sides.setdefault(tag.tag_id, []).extend(_emitted(values, timestamps))

    def record_side(self, tag: OutputTag, value: Any, timestamp: int | None) -> None:
        self.sides.setdefault(tag.tag_id, []).append(Emitted(value, timestamp))


class _HarnessWriter(LoopWriter):
    """Writes the loop of a task, except that a result for a side output is kept for any tag."""

    def __init__(self, with_timestamps: bool, record_side: Callable[[OutputTag, Any, int | None], None]):
        super().__init__(with_timestamps, checked=True)
        self._record_side = record_side

    def write_tagged_consumers(self, value: str) -> None:
        tag_class = self.bind("OutputTag", OutputTag)
        record = self.bind("side", self._record_side)
        with self.block(
            f"if {value}.__class__ is tuple and len({value}) == 2 and {value}[0].__class__ is {tag_class}:"
        ):
            self.line(f"{record}({value}[0], {value}[1], {self.timestamp if self.with_timestamps else None})")
        with self.block("else:"):
            self.write_consumers(value)


def _emitted(values: Sequence[Any], timestamps: Sequence[int] | None) -> list[Emitted]:
    times: Sequence[int | None] = [None] * len(values) if timestamps is None else timestamps
    return [Emitted(value, timestamp) for value, timestamp in zip(values, times, strict=True)]
