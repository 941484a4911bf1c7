"""What opens the functions of one operator, and closes them."""

from __future__ import annotations

from typing import Any

import cloudpickle

from firesteel.table.user_functions.base import FunctionContext, UserDefinedFunction

__all__ = ["FunctionScope", "opened"]


class FunctionScope:
    """The functions that an operator calls."""

    def __init__(self, runtime_context: Any = None) -> None:
        self._runtime_context = runtime_context
        self._functions: list[UserDefinedFunction] = []

    def open(self, function: UserDefinedFunction) -> None:
        """Opens a function, which ``close`` closes."""
        function.open(_context(self._runtime_context))
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
    if runtime is None:
        return FunctionContext(None, {})
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
    (scope or FunctionScope()).open(own)
    return own
