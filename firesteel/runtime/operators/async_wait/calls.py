"""Calls of an async function on the event loop: attempts, timeouts and results.

What runs on the loop reads the records that it is given and writes their results. The operator takes these from
``completed`` in the mailbox thread.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.codegen.at_work import ASYNC_FUNCTION, handles_results_of
from firesteel.types.copying import IMMUTABLE, copy_value

if TYPE_CHECKING:
    from firesteel.runtime.operators.async_wait.queue import Call

__all__ = ["AsyncCalls"]

_CANCELLATION_TIMEOUT_S = 3.0
"""How long to wait for coroutines that were cancelled, and may catch that."""


class AsyncCalls:
    """The calls of one operator that are under way."""

    def __init__(
        self,
        function: Any,
        timeout_ms: int,
        retry_strategy: Any,
        loop: asyncio.AbstractEventLoop,
        signal: Callable[[], None],
        *,
        copies_records: bool,
        copies_results: bool,
    ):
        """``signal`` is called on the loop when there are new results."""
        self.completed: deque[Call] = deque()
        """Calls that are done, for the mailbox thread to take."""
        self.timeouts = 0
        self.retries = 0
        self._function = function
        self._invoke = function.async_invoke
        self._timeout_s = timeout_ms / 1000
        self._loop = loop
        self._signal = signal
        self._copies_records = copies_records
        self._copies_results = copies_results
        self._strategy = retry_strategy
        predicate = retry_strategy.get_retry_predicate()
        self._retries_result = predicate.result_predicate()
        self._retries_error = predicate.exception_predicate()
        self._can_retry = self._retries_result is not None or self._retries_error is not None
        self._pending: dict[Call, float] = {}
        """Calls under way by their deadline, the earliest first."""
        self._handlers: set[asyncio.Task[None]] = set()
        """Calls of ``timeout`` that are awaited."""
        self._timer: asyncio.TimerHandle | None = None
        self._signals = False
        self._closed = False

    # -- called in the mailbox thread ---------------------------------------------------------------

    def start(self, calls: Sequence[Call]) -> None:
        """Has the loop make calls."""
        self._loop.call_soon_threadsafe(self._start, calls)

    async def close(self) -> None:
        """Cancels all calls and waits until they have ended; to be run on the loop."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*(call.task for call in self._pending), *self._handlers]
        self._pending.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCELLATION_TIMEOUT_S)

    # -- on the loop --------------------------------------------------------------------------------

    def _start(self, calls: Iterable[Call]) -> None:
        if self._closed:
            return
        loop, pending = self._loop, self._pending
        deadline = loop.time() + self._timeout_s
        call_once = self._call_with_retries if self._can_retry else self._call
        for call in calls:
            pending[call] = deadline
            call.task = loop.create_task(call_once(call))
        if self._timeout_s > 0 and self._timer is None:
            self._timer = loop.call_at(deadline, self._check_deadlines)

    def _record_of(self, call: Call) -> Any:
        """Returns the record for the function, which may keep and change it: a checkpoint needs it as it came."""
        value = call.value
        return copy_value(value) if self._copies_records and value.__class__ not in IMMUTABLE else value

    async def _call(self, call: Call) -> None:
        value = self._record_of(call)
        try:
            self._complete(call, await self._invoke(value))
        except BaseException as error:  # noqa: BLE001 - user code may raise anything; the task fails with it
            self._fail(call, error)

    async def _call_with_retries(self, call: Call) -> None:
        attempts = 1
        while True:
            value = self._record_of(call)
            try:
                results = await self._invoke(value)
                if not self._is_retried(self._retries_result, results, attempts):
                    self._complete(call, results)
                    return
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                try:
                    if call.has_timed_out or not self._is_retried(self._retries_error, error, attempts):
                        self._fail(call, error)
                        return
                except Exception as problem:  # noqa: BLE001 - a predicate may raise anything
                    self._fail(call, problem)
                    return
            except BaseException as error:  # noqa: BLE001
                self._fail(call, error)
                return
            try:
                self.retries += 1
                await asyncio.sleep(self._strategy.get_backoff_time_millis(attempts) / 1000)
            except BaseException as error:  # noqa: BLE001 - a strategy may raise anything
                self._fail(call, error)
                return
            attempts += 1

    def _is_retried(self, predicate: Callable[[Any], bool] | None, outcome: Any, attempts: int) -> bool:
        return (
            predicate is not None
            and outcome is not None
            and bool(predicate(outcome))
            and bool(self._strategy.can_retry(attempts))
        )

    def _complete(self, call: Call, results: Any) -> None:
        if not call.has_timed_out:
            self._accept(call, results)

    def _accept(self, call: Call, results: Any) -> None:
        if results.__class__ is not list:
            results = _listed(results, type(self._function).__name__)
        if self._copies_results:
            # the function may change them at its next step
            results = [value if value.__class__ in IMMUTABLE else copy_value(value) for value in results]
        call.results = results
        self._finish(call)

    def _fail(self, call: Call, error: BaseException) -> None:
        if not call.has_timed_out:
            self._accept_error(call, error)

    def _accept_error(self, call: Call, error: BaseException) -> None:
        if self._closed:
            return
        if isinstance(error, asyncio.CancelledError):
            error = RuntimeError("The async function cancelled its own call.").with_traceback(error.__traceback__)
        call.error = error
        self._finish(call)

    def _finish(self, call: Call) -> None:
        call.is_done = True
        call.task = None
        self._pending.pop(call, None)
        self.completed.append(call)
        if not self._signals:
            # once for all calls that end in this step of the loop
            self._signals = True
            self._loop.call_soon(self._send_signal)

    def _send_signal(self) -> None:
        self._signals = False
        self._signal()

    # -- timeouts -----------------------------------------------------------------------------------

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = []
        for call, deadline in self._pending.items():
            if deadline > now:
                self._timer = self._loop.call_at(deadline, self._check_deadlines)
                break
            due.append(call)
        for call in due:
            self._time_out(call)

    def _time_out(self, call: Call) -> None:
        """Gives up a call, in whatever attempt it is, and calls ``timeout`` of the function instead."""
        self.timeouts += 1
        call.has_timed_out = True
        del self._pending[call]
        call.task.cancel()
        value = self._record_of(call)
        try:
            results = self._function.timeout(value)
            if inspect.isawaitable(results):
                handler = self._loop.create_task(self._await_handler(call, value, results))
                self._handlers.add(handler)
                handler.add_done_callback(self._handlers.discard)
            else:
                self._accept(call, results)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything; the task fails with it
            self._accept_error(call, error)

    async def _await_handler(self, call: Call, value: Any, results: Awaitable[Any]) -> None:
        # value: for failure reports, which find the record by this name
        try:
            self._accept(call, await results)
        except BaseException as error:  # noqa: BLE001
            self._accept_error(call, error)


@handles_results_of(ASYNC_FUNCTION)
def _listed(results: Any, name: str) -> list[Any]:
    if isinstance(results, Iterable):
        return list(results)
    what = "cannot be None" if results is None else f"should be a list, but it is a {type(results).__name__}"
    raise InvalidProgramError(
        f"The result of an AsyncFunction {what}: check the methods 'async_invoke' and 'timeout' of {name}.",
        hint="Return a list of the results; an empty one if there are none.",
    )
