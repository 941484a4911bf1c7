"""Runs a SinkFunction as a sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from firesteel.common.errors import FiresteelError
from firesteel.datastream.functions import RuntimeContext, SinkFunction
from firesteel.spi.sink import Sink, SinkWriter, WriterContext

__all__ = ["SinkFunctionSink"]


class SinkFunctionSink(Sink):
    """Calls a SinkFunction record by record, at least once."""

    def __init__(self, function: SinkFunction):
        self.function = function

    @property
    def name(self) -> str:
        """The function's class."""
        return type(self.function).__name__

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer that opens the function."""
        return _SinkFunctionWriter(self.function, context)


class _SinkFunctionWriter(SinkWriter[Any]):
    def __init__(self, function: SinkFunction, context: WriterContext):
        self._function = function
        self.write_record = function.invoke
        function.open(_SinkRuntimeContext(type(function).__name__, context))

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Calls the function with each record."""
        invoke = self._function.invoke
        for value in values:
            invoke(value)

    def close(self) -> None:
        """Closes the function."""
        self._function.close()


class _SinkRuntimeContext(RuntimeContext):
    """What a sink function can learn: where it runs. A sink has no keyed state."""

    def __init__(self, name: str, context: WriterContext):
        self._name = name
        self._context = context

    def get_task_name(self) -> str:
        return self._name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._context.subtask_index

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._name} ({self._context.subtask_index + 1}/{self._context.parallelism})"

    def get_max_number_of_parallel_subtasks(self) -> int:
        self._no("max parallelism")

    def get_attempt_number(self) -> int:
        self._no("attempt number")

    def get_job_parameter(self, key: str, default_value: str) -> str:
        self._no("job parameters")

    def get_metrics_group(self) -> Any:
        self._no("metrics")

    def get_state(self, state_descriptor: Any) -> Any:
        self._no("keyed state")

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state

    def _no(self, what: str) -> NoReturn:
        raise FiresteelError(
            f"The sink function {self._name} cannot ask for {what}.",
            hint="Use it in a KeyedProcessFunction before the sink.",
        )
