"""Functions of Python in Spark SQL, called with Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from pyspark import TaskContext
from pyspark.sql.functions import ArrowUDFType
from pyspark.sql.udf import UserDefinedFunction

__all__ = ["ArrowFunction", "arrow_function"]


class ArrowFunction(Protocol):
    """A function that travels to Spark's Python workers."""

    @property
    def result_type(self) -> str:
        """The type of results, in Spark SQL."""

    @property
    def is_deterministic(self) -> bool:
        """Whether Spark may call it again for the same row, or not at all."""

    @property
    def has_life_cycle(self) -> bool:
        """Whether each task opens and closes it; others are made once and called."""

    def opened(self, index: int, attempt: int) -> tuple[Callable[..., Any], Callable[[], None]]:
        """What computes a batch, and what closes the function."""

    def run(self, batches: Iterable[Any], index: int, attempt: int) -> Iterator[Any]:
        """The results of the batches of a task."""


def arrow_function(function: ArrowFunction) -> Any:
    """What can be registered in a session of Spark."""

    def evaluate_task(batches: Iterator[Any]) -> Iterator[Any]:
        yield from function.run(batches, *_place())

    opened: list[Callable[..., Any]] = []  # Spark unpickles a function once for each task

    def evaluate(*arrays: Any) -> Any:
        if not opened:
            opened.append(function.opened(*_place())[0])
        return opened[0](*arrays)

    # several plain functions run in one pass over the rows, those with a life cycle in a pass of their own
    kind = ArrowUDFType.SCALAR_ITER if function.has_life_cycle else ArrowUDFType.SCALAR
    body = evaluate_task if function.has_life_cycle else evaluate
    # arrow_udf would want the kind as annotations
    return UserDefinedFunction(body, function.result_type, evalType=kind, deterministic=function.is_deterministic)


def _place() -> tuple[int, int]:
    context = TaskContext.get()
    return (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
