"""Process table functions: their class, what declares them, and the context of their calls."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from firesteel.table.user_functions.base import UserDefinedFunction
from firesteel.table.user_functions.wrappers import UserDefinedFunctionWrapper

__all__ = [
    "ArgumentTrait",
    "ProcessContext",
    "ProcessTableFunction",
    "TimeContext",
    "UserDefinedProcessTableFunctionWrapper",
    "udptf",
]


class ArgumentTrait(Enum):
    """What a table argument is: rows one by one, or the rows of each partition."""

    ROW_SEMANTIC_TABLE = "row"
    SET_SEMANTIC_TABLE = "set"


class TimeContext(ABC):
    """Time and timers of a call. Times are epoch milliseconds, or datetimes as the ``on_time`` column has them."""

    @abstractmethod
    def time(self) -> dt.datetime:
        """The time of the row, or of the timer that fires."""

    @abstractmethod
    def current_watermark(self) -> int | None:
        """The watermark in epoch milliseconds; None before the first one."""

    @abstractmethod
    def register_on_time(self, time: dt.datetime | int, name: str | None = None) -> None:
        """Has ``on_timer`` called when the watermark passes a time. A timer of a name replaces the one that it has."""

    @abstractmethod
    def clear_timer(self, time_or_name: dt.datetime | int | str) -> None:
        """Removes a timer."""

    @abstractmethod
    def clear_all_timers(self) -> None:
        """Removes all timers of the partition."""


class ProcessContext(ABC):
    """What a call may know and do besides its arguments."""

    @abstractmethod
    def time_context(self) -> TimeContext:
        """Time and timers; only if the call has ``on_time``."""

    @abstractmethod
    def current_timer(self) -> str | None:
        """The name of the timer that fires; None if it has none."""

    @abstractmethod
    def clear_state(self, state_name: str) -> None:
        """Sets a state of the partition to its initial value for the next call."""

    @abstractmethod
    def clear_all_state(self) -> None:
        """Does so with all states."""

    @abstractmethod
    def clear_all(self) -> None:
        """Removes state and timers."""


class ProcessTableFunction(UserDefinedFunction):
    """Makes any number of rows of the rows of a table, with state and timers for each partition of it."""

    @abstractmethod
    def eval(self, ctx: ProcessContext, *args: Any) -> Any:
        """Yields or returns the rows for a row. Arguments are the states, then those of the call; a table is a Row."""

    def on_timer(self, ctx: ProcessContext, *states: Any) -> Any:
        """Yields or returns the rows for a timer that fires."""
        raise RuntimeError("Method on_timer is not implemented")


class UserDefinedProcessTableFunctionWrapper(UserDefinedFunctionWrapper):
    """A process table function."""

    def __init__(
        self,
        func: Any,
        arguments: Mapping[str, Any],
        result_type: Any,
        state: Mapping[str, Callable[[], Any]] | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(func, None, "general", deterministic, name)
        if not isinstance(func, ProcessTableFunction):
            raise TypeError(f"Invalid function: a ProcessTableFunction is needed, not {type(func)}")
        tables = [key for key, kind in arguments.items() if isinstance(kind, ArgumentTrait)]
        if len(tables) != 1:
            raise ValueError("A process table function takes exactly one table argument.")
        self._arguments = dict(arguments)
        self._table = tables[0]
        self._states = dict(state or {})
        self._result_types = result_type
        if self._states and self._arguments[self._table] is not ArgumentTrait.SET_SEMANTIC_TABLE:
            raise ValueError("State needs a table argument with set semantics.")


def udptf(
    f: Any,
    arguments: Mapping[str, Any],
    result_type: Any,
    state: Mapping[str, Callable[[], Any]] | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> UserDefinedProcessTableFunctionWrapper:
    """Declares a process table function. PyFlink has none; names and rules are those of Flink's Java API.

    ``arguments`` are a table, by its ArgumentTrait, and scalars, by their types; ``state`` makes the initial values of
    the states of a partition.
    """
    return UserDefinedProcessTableFunctionWrapper(f, arguments, result_type, state, deterministic, name)
