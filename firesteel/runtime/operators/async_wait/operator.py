"""Async wait operator: calls a coroutine for each record, with many calls under way at a time."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.at_work import ASYNC_FUNCTION
from firesteel.runtime.model.key_groups import key_group_of, subtask_of
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.model.state_handles import UNION
from firesteel.runtime.operators.async_wait.calls import AsyncCalls
from firesteel.runtime.operators.async_wait.in_flight import (
    IN_FLIGHT,
    PendingRecord,
    PendingResults,
    QueueSnapshot,
    own_elements,
    snapshot_of,
)
from firesteel.runtime.operators.async_wait.queue import (
    Border,
    Call,
    CallQueue,
    Idle,
    OrderedQueue,
    UnorderedQueue,
    WatermarkBorder,
)
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext
from firesteel.runtime.operators.deferring import DeferringOperator

if TYPE_CHECKING:
    from firesteel.process.event_loop import EventLoop
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.state.api.operator_state import OperatorStateBackend

__all__ = ["AsyncWaitOperator", "AsyncWaitSpec"]

_log = logging.getLogger(__name__)
_MAX_WAITING = 4096
"""How many records may wait for their calls before the one that brings them is held up."""
_MAX_EMITTED_RECORDS = 1024
_CLOSE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class AsyncWaitSpec(FunctionSpec):
    """Calls an AsyncFunction and emits the results, in the order of the records or as they come."""

    timeout_ms: int
    """0 for no timeout."""
    capacity: int
    retry_strategy: Any
    is_ordered: bool

    def create(self, runtime: OperatorRuntime) -> AsyncWaitOperator:
        """Returns a new operator for one subtask."""
        return AsyncWaitOperator(self)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the async function."""
        return {ASYNC_FUNCTION: self.function.async_invoke}

    @property
    def awaits_functions(self) -> bool:
        """Yes."""
        return True

    def declares_states(self, *, is_keyed: bool) -> bool:
        """No: an async function has no keyed state, and opening it may connect to a service."""
        return False


class AsyncWaitOperator(DeferringOperator):
    """Calls an AsyncFunction for each record.

    Records are in a queue until their results have been emitted; up to ``capacity`` of them are on the event loop, the
    others wait. A checkpoint keeps the queue.
    """

    emits_own_records = True

    def __init__(self, spec: AsyncWaitSpec):
        self.function = self.user_function = spec.function
        self._spec = spec
        self._queue: CallQueue = OrderedQueue() if spec.is_ordered else UnorderedQueue()
        self._waiting: deque[Call] = deque()
        """The calls of the queue that have not been started, in their order."""
        self._restored: list[QueueSnapshot] = []
        self._event_loop: EventLoop | None = None
        self._calls: AsyncCalls | None = None
        self._is_emitting = False
        self._max_waiting = _MAX_WAITING

    # -- life ---------------------------------------------------------------------------------------

    def initialize_state(self, context: StateInitializationContext) -> None:
        """Restores the records in flight."""
        super().initialize_state(context)
        self._restored = context.operator_state.restored(IN_FLIGHT)

    def open(self, context: OperatorContext) -> None:
        """Opens the function and calls it for restored records."""
        super().open(context)
        if not context.execution.is_long_lived:
            self._max_waiting = 0
        loop = context.event_loop.acquire()
        self._event_loop = context.event_loop
        opened = self.function.open(context.runtime_context)
        if inspect.iscoroutine(opened):
            self._event_loop.run(opened)
        calls = self._calls = AsyncCalls(
            self.function,
            self._spec.timeout_ms,
            self._spec.retry_strategy,
            loop,
            context.wakeup,
            copies_records=not context.reuses_objects,
            copies_results=context.copies_results,
        )
        context.gauge("asyncCallsInFlight", lambda: len(self._queue) - len(self._waiting))
        context.gauge("numAsyncTimeouts", lambda: calls.timeouts)
        context.gauge("numAsyncRetries", lambda: calls.retries)
        self._take_up_restored()

    def _take_up_restored(self) -> None:
        snapshots, self._restored = self._restored, []
        subtask, parallelism = self._place()
        for element in own_elements(snapshots, subtask, parallelism, self._owner_of_key()):
            if isinstance(element, PendingRecord):
                call = Call(element.value, element.timestamp)
                self._queue.add([call])
                self._waiting.append(call)
            elif isinstance(element, PendingResults):
                call = Call(element.value, element.timestamp)
                call.results, call.emitted, call.is_done = [None, *element.results], 1, True
                self._queue.add([call])
                self._queue.complete(call)
            else:
                self._queue.add_border(element)
        self._start_calls()

    def _place(self) -> tuple[int, int]:
        runtime = self.context.runtime_context
        return runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()

    def _owner_of_key(self) -> Callable[[Any], int] | None:
        if not self.context.key_selectors:
            return None
        select = self.context.key_selectors[0]
        runtime = self.context.runtime_context
        groups, parallelism = runtime.get_max_number_of_parallel_subtasks(), self._place()[1]
        return lambda value: subtask_of(key_group_of(select(value), groups), groups, parallelism)

    def close(self) -> None:
        """Cancels the calls under way and closes the function."""
        event_loop, self._event_loop = self._event_loop, None
        if event_loop is None:
            return
        try:
            if self._calls is not None:
                self._cancel_calls(event_loop, self._calls)
            closed = self.function.close()
            if inspect.iscoroutine(closed):
                event_loop.run(closed)
        finally:
            event_loop.release()

    def _cancel_calls(self, event_loop: EventLoop, calls: AsyncCalls) -> None:
        try:
            event_loop.run(calls.close(), timeout=_CLOSE_TIMEOUT_S)
        except TimeoutError:
            name = type(self.function).__name__
            _log.warning("Calls of %s could not be cancelled within %g s.", name, _CLOSE_TIMEOUT_S)

    # -- input --------------------------------------------------------------------------------------

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Starts calls, as many as there is capacity for; the other records wait."""
        if timestamps is None:
            calls = [Call(value, None) for value in values]
        else:
            calls = [Call(value, timestamp) for value, timestamp in zip(values, timestamps, strict=False)]
        self._queue.add(calls)
        self._waiting.extend(calls)
        self._start_calls()
        if self.is_overfull:
            self._await_room()

    def process_watermark(self, timestamp: int) -> None:
        """Passes a watermark on after the results of all records before it."""
        self._add_border(WatermarkBorder(timestamp))

    def process_idle(self, idle: bool) -> None:
        """Passes the idle status on after the results of all records before it."""
        self._add_border(Idle(idle))

    def _add_border(self, border: Border) -> None:
        if self._queue.is_empty:
            self._emit_border(border)
        else:
            self._queue.add_border(border)

    def _start_calls(self) -> None:
        waiting = self._waiting
        free = self._spec.capacity - len(self._queue) + len(waiting)
        if waiting and free > 0:
            assert self._calls is not None
            self._calls.start([waiting.popleft() for _ in range(min(free, len(waiting)))])

    def _await_room(self) -> None:
        if self.context.execution.is_long_lived:
            self.awaits_room = True
            try:
                self.context.wait_for_results()
            finally:
                self.awaits_room = False
            return
        while self._waiting:
            self._wait_and_emit()

    # -- results ------------------------------------------------------------------------------------

    @property
    def has_results(self) -> bool:
        return bool(self._calls is not None and self._calls.completed) or self._queue.first is not None

    @property
    def is_drained(self) -> bool:
        return self._queue.is_empty

    @property
    def room(self) -> int:
        return 0 if self._waiting else max(self._spec.capacity - len(self._queue), 0)

    @property
    def is_overfull(self) -> bool:
        return len(self._waiting) > self._max_waiting

    def emit_results(self) -> None:
        """Emits what can be emitted, until the turn is over, and starts calls in the place of those that are done."""
        if self._is_emitting:
            return  # it waits for room in an output
        assert self._calls is not None
        self._is_emitting = True
        try:
            completed = self._calls.completed
            while completed:
                call = completed.popleft()
                if call.error is not None:
                    raise call.error
                self._queue.complete(call)
            self._emit_ready()
        finally:
            self._is_emitting = False

    def drain(self) -> None:
        """Waits for all results and emits them."""
        while not self._queue.is_empty:
            self._wait_and_emit()

    def _wait_and_emit(self) -> None:
        if not self.has_results:
            self.context.wait_for_results()
        self.emit_results()

    def _emit_ready(self) -> None:
        queue, turn = self._queue, self.context.turn
        values: list[Any] = []
        timestamps: list[int] | None = None
        while (first := queue.first) is not None:
            if isinstance(first, Call):
                if (timestamps is None) is not (first.timestamp is None):
                    self._emit(values, timestamps)
                    values, timestamps = [], None if first.timestamp is None else []
                # a record may have very many results
                added = first.results[first.emitted : first.emitted + _MAX_EMITTED_RECORDS]
                values += added
                if timestamps is not None and first.timestamp is not None:
                    timestamps += [first.timestamp] * len(added)
                first.emitted += len(added)
                if first.emitted == len(first.results):
                    queue.remove_first()
                if len(values) < _MAX_EMITTED_RECORDS:
                    continue
                self._emit(values, timestamps)
                values, timestamps = [], None
            else:
                self._emit(values, timestamps)
                values, timestamps = [], None
                queue.remove_first()
                self._emit_border(first)
            # calls run while results are emitted
            self._start_calls()
            if turn.is_over:
                return
        self._start_calls()
        self._emit(values, timestamps)

    def _emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        if values:
            self.context.emit(values, timestamps)

    def _emit_border(self, border: Border) -> None:
        if isinstance(border, WatermarkBorder):
            self.context.emit_watermark(border.timestamp)
        else:
            self.context.emit_idle(border.idle)

    # -- checkpoints --------------------------------------------------------------------------------

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Keeps the records in flight."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        operator_state.put(IN_FLIGHT, UNION, snapshot_of(self._queue, *self._place()))
