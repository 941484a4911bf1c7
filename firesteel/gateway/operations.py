"""Operations: statements that run in the background, one after the other within a session."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from enum import Enum
from typing import TypeAlias

from firesteel.gateway.errors import SqlExecutionError, SqlGatewayError
from firesteel.gateway.results import Page, ResultPages

__all__ = ["Operation", "OperationManager", "OperationStatus", "Work"]

Work: TypeAlias = Callable[["Operation"], ResultPages]


class OperationStatus(Enum):
    """The states of an operation, with Flink's names."""

    INITIALIZED = "INITIALIZED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    """The statement was executed. The job of a query may still give rows."""
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"


_BEFORE_END = (OperationStatus.INITIALIZED, OperationStatus.PENDING, OperationStatus.RUNNING)


class Operation:
    """One statement, from its submission until it is closed. All methods may be called from any thread."""

    def __init__(self, work: Work) -> None:
        self.handle = str(uuid.uuid4())
        self._work = work
        self._changed = threading.Condition()
        self._status = OperationStatus.INITIALIZED
        self._error: SqlGatewayError | None = None
        self._pages: ResultPages | None = None
        self._on_cancel: list[Callable[[], object]] = []

    @property
    def status(self) -> OperationStatus:
        """Its state."""
        return self._status

    @property
    def is_wanted(self) -> bool:
        """Whether it is neither cancelled nor closed."""
        return self._status in (*_BEFORE_END, OperationStatus.FINISHED)

    def on_cancel(self, act: Callable[[], object]) -> None:
        """Calls a function when the operation is cancelled or closed while it runs; at once if it has been."""
        with self._changed:
            if self.is_wanted:
                self._on_cancel.append(act)
                return
        act()

    def pends(self) -> None:
        """It waits for its turn."""
        self._move(OperationStatus.PENDING, OperationStatus.INITIALIZED)

    def run(self) -> None:
        """Executes the statement; what it is told meanwhile counts more than its outcome."""
        if not self._move(OperationStatus.RUNNING, OperationStatus.INITIALIZED, OperationStatus.PENDING):
            return
        try:
            pages = self._work(self)
        except BaseException as error:  # noqa: BLE001 - the client gets it
            failure = SqlExecutionError(f"Failed to execute the operation {self.handle}.", error)
            self._end(OperationStatus.ERROR, None, failure)
            return
        if not self._end(OperationStatus.FINISHED, pages, None):
            pages.close()

    def fetch(self, token: int, timeout_s: float) -> tuple[ResultPages, Page] | None:
        """A page of the result; None if the statement is still being executed when the timeout is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._status not in _BEFORE_END, timeout_s)
            status, pages, error = self._status, self._pages, self._error
        if status in _BEFORE_END:
            return None
        if status is OperationStatus.FINISHED:
            assert pages is not None
            return pages, pages.fetch(token, timeout_s)
        if error is not None:
            raise error
        raise SqlGatewayError(f"Can not fetch results from the {self.handle} in {status.name} status.")

    def await_end(self) -> None:
        """Waits until the statement was executed; raises its error."""
        with self._changed:
            self._changed.wait_for(lambda: self._status not in _BEFORE_END)
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Ends a statement that is being executed, and its job."""
        if not self._move(OperationStatus.CANCELED, *_BEFORE_END):
            raise SqlGatewayError(
                f"Failed to convert the Operation Status from {self._status.name} to CANCELED for {self.handle}."
            )
        self._release()

    def close(self) -> None:
        """Forgets the result; the job of a query that has not ended is cancelled, that of an INSERT continues."""
        with self._changed:
            was_running = self._status in _BEFORE_END
            self._status = OperationStatus.CLOSED
            self._changed.notify_all()
        if was_running:
            self._release()
        if self._pages is not None:
            self._pages.close()

    def _release(self) -> None:
        with self._changed:
            acts, self._on_cancel = self._on_cancel, []
        for act in acts:
            with suppress(Exception):  # the job may have ended by itself
                act()

    def _end(self, status: OperationStatus, pages: ResultPages | None, error: SqlGatewayError | None) -> bool:
        with self._changed:
            if not self._move(status, OperationStatus.RUNNING):
                return False
            self._pages, self._error = pages, error
            return True

    def _move(self, to: OperationStatus, *origins: OperationStatus) -> bool:
        with self._changed:
            if self._status not in origins:
                return False
            self._status = to
            self._changed.notify_all()
            return True


class OperationManager:
    """The operations of one session, of which one is executed at a time: they share catalogs and options."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = threading.Lock()
        self._operations: dict[str, Operation] = {}
        self._waiting: deque[Operation] = deque()
        self._is_busy = False
        self._is_closed = False

    def submit(self, work: Work) -> Operation:
        """Starts an operation when those before it have been executed."""
        operation = Operation(work)
        with self._lock:
            if self._is_closed:
                raise SqlGatewayError("The OperationManager is closed.")
            self._operations[operation.handle] = operation
            operation.pends()
            self._waiting.append(operation)
            if self._is_busy:
                return operation
            self._is_busy = True
        self._run_next()
        return operation

    def get(self, handle: str) -> Operation:
        """An operation that has not been closed."""
        operation = self._operations.get(handle)
        if operation is None:
            raise SqlGatewayError(f"Can not find the submitted operation in the OperationManager with the {handle}.")
        return operation

    def close_operation(self, handle: str) -> None:
        """Closes an operation, if there is one."""
        with self._lock:
            operation = self._operations.pop(handle, None)
        if operation is not None:
            operation.close()

    def close(self) -> None:
        """Closes all operations."""
        with self._lock:
            self._is_closed = True
            operations = list(self._operations.values())
            self._operations.clear()
            self._waiting.clear()
        for operation in operations:
            operation.close()

    def _run_next(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_busy = False
                return
            operation = self._waiting.popleft()

        def run() -> None:
            try:
                operation.run()
            finally:
                self._run_next()

        try:
            self._executor.submit(run)
        except RuntimeError:  # the gateway is being closed
            self.close_operation(operation.handle)
