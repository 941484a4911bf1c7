"""The classes that users derive functions from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
]

T = TypeVar("T")
ACC = TypeVar("ACC")


class FunctionContext:
    """What a function may know of the subtask that calls it: metrics, job parameters, and its place in the job."""

    def __init__(
        self,
        base_metric_group: Any,
        job_parameters: Mapping[str, str],
        task_name: str | None = None,
        task_name_with_subtasks: str | None = None,
        number_of_parallel_subtasks: int | None = None,
        max_number_of_parallel_subtasks: int | None = None,
        index_of_this_subtask: int | None = None,
        attempt_number: int | None = None,
    ) -> None:
        self._base_metric_group = base_metric_group
        self._job_parameters = job_parameters
        self._task_name = task_name
        self._task_name_with_subtasks = task_name_with_subtasks
        self._number_of_parallel_subtasks = number_of_parallel_subtasks
        self._max_number_of_parallel_subtasks = max_number_of_parallel_subtasks
        self._index_of_this_subtask = index_of_this_subtask
        self._attempt_number = attempt_number

    def get_metric_group(self) -> Any:
        """The group in which the function registers counters and gauges."""
        if self._base_metric_group is None:
            raise RuntimeError("There are no metrics where this function is called.")
        return self._base_metric_group

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""
        return self._job_parameters.get(key, default_value)

    def get_task_name(self) -> str | None:
        """The name of the task."""
        return self._task_name

    def get_task_name_with_subtasks(self) -> str | None:
        """The name of the task with the subtask: ``Calc (3/6)``."""
        return self._task_name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int | None:
        """The parallelism of the task."""
        return self._number_of_parallel_subtasks

    def get_max_number_of_parallel_subtasks(self) -> int | None:
        """The max parallelism of the task."""
        return self._max_number_of_parallel_subtasks

    def get_index_of_this_subtask(self) -> int | None:
        """The index of the subtask, from 0."""
        return self._index_of_this_subtask

    def get_attempt_number(self) -> int | None:
        """The attempt number of the subtask, from 0."""
        return self._attempt_number


class UserDefinedFunction(ABC):  # noqa: B024 - the root of all functions has no method to insist on
    """Root of the functions of users. There is one instance for each call in each subtask."""

    def open(self, function_context: FunctionContext) -> None:  # noqa: B027 - optional
        """Called once before the first row."""

    def close(self) -> None:  # noqa: B027 - optional
        """Called once after the last row, also after a failure."""

    def is_deterministic(self) -> bool:
        """Whether the results for the same arguments are always the same."""
        return True


class ScalarFunction(UserDefinedFunction):
    """Makes a value of the arguments of each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value for some arguments."""


class AsyncScalarFunction(UserDefinedFunction):
    """Makes a value of the arguments of each row; calls for several rows run at the same time."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value for some arguments."""


class TableFunction(UserDefinedFunction):
    """Makes any number of rows of the arguments of each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yields or returns rows: values, tuples or Rows. None is no row."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """What aggregate and table aggregate functions have in common."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A new accumulator."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: Any) -> None:
        """Changes the accumulator for a row that comes."""

    def retract(self, accumulator: ACC, *args: Any) -> None:
        """Changes the accumulator for a row that leaves."""
        raise RuntimeError("Method retract is not implemented")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Adds other accumulators to an accumulator; needed for session windows."""
        raise RuntimeError("Method merge is not implemented")

    def get_result_type(self) -> Any:
        """The type of results, unless it is given to ``udaf``."""
        raise RuntimeError("Method get_result_type is not implemented")

    def get_accumulator_type(self) -> Any:
        """The type of accumulators, unless it is given to ``udaf``."""
        raise RuntimeError("Method get_accumulator_type is not implemented")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Makes a value of the rows of a group."""

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T:
        """The value of an accumulator."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Makes any number of rows of the rows of a group."""

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """The rows of an accumulator."""
