"""What opens the functions of one operator, and closes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cloudpickle

from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.session import Session
from firesteel.table.user_functions.base import FunctionContext, UserDefinedFunction

__all__ = ["FunctionScope", "opened", "scoped"]


class FunctionScope:
    """The functions that an operator calls."""

    def __init__(self) -> None:
        self._context: Callable[[], FunctionContext] | None = None
        self._waiting: list[UserDefinedFunction] = []
        self._functions: list[UserDefinedFunction] = []

    def attach(self, runtime_context: Any) -> None:
        """Opens functions with the context of their subtask, also those that come later."""
        self._attach(lambda: _context(runtime_context))

    def attach_context(self, context: FunctionContext) -> None:
        """Opens functions with a context."""
        self._attach(lambda: context)

    def _attach(self, context: Callable[[], FunctionContext]) -> None:
        # most operators have no functions, and need none
        self._context = context
        while self._waiting:
            self.open(self._waiting.pop(0))

    def open(self, function: UserDefinedFunction) -> None:
        """Opens a function as soon as there is a context; ``close`` closes it."""
        if self._context is None:
            self._waiting.append(function)
            return
        function.open(self._context())
        self._functions.append(function)

    def close(self) -> None:
        """Closes all functions, also if one fails, whose error is raised then."""
        failure: Exception | None = None
        while self._functions:
            try:
                self._functions.pop().close()
            except Exception as error:  # noqa: BLE001 - of the user's function
                failure = failure or error
        if failure is not None:
            raise failure


class _JobParameters(dict[str, str]):
    """Those of a runtime context, which are asked for one by one."""

    def __init__(self, runtime_context: Any) -> None:
        super().__init__()
        self._context = runtime_context

    def get(self, key: str, default: Any = None) -> Any:
        return self._context.get_job_parameter(key, default)


def _context(runtime: Any) -> FunctionContext:
    return FunctionContext(
        runtime.get_metrics_group(),
        _JobParameters(runtime),
        runtime.get_task_name(),
        runtime.get_task_name_with_subtasks(),
        runtime.get_number_of_parallel_subtasks(),
        runtime.get_max_number_of_parallel_subtasks(),
        runtime.get_index_of_this_subtask(),
        runtime.get_attempt_number(),
    )


def opened(function: Any, scope: FunctionScope | None) -> Any:
    """A function ready to be called; an object is copied, so that no other call shares it."""
    if not isinstance(function, UserDefinedFunction):
        return function
    own: UserDefinedFunction = cloudpickle.loads(cloudpickle.dumps(function))
    if scope is None:
        own.open(FunctionContext(None, {}))
    else:
        scope.open(own)
    return own


def scoped(operator: ColumnOperator, session: Session) -> Session:
    """The session whose functions are opened and closed with an operator."""
    if operator.functions is None:
        operator.functions = FunctionScope()
        if hasattr(operator, "context"):
            operator.functions.attach(operator.context.runtime_context)
    return replace(session, scope=operator.functions)
