"""The life cycle of functions that Spark calls: each task opens a copy, and closes it also after a failure."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firesteel.table.bound.nodes import Call, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.udf import FunctionContext, ScalarFunction, udf
from firesteel.table.user_functions.definition import definition_of_wrapper
from firesteel.table.user_functions.failures import UserFunctionError
from firesteel.table.user_functions.spark import reported_failure, spark_function
from firesteel.types.logical import BigIntType

EVENTS: list[str] = []


class Divided(ScalarFunction):
    """Divides by its argument, and says when it is opened and closed."""

    def open(self, function_context: FunctionContext) -> None:
        place = function_context.get_index_of_this_subtask(), function_context.get_attempt_number()
        EVENTS.append(f"open {place} {function_context.get_job_parameter('k', '-')}")

    def eval(self, number: int, by: int) -> Any:
        return number // by

    def close(self) -> None:
        EVENTS.append("close")


def test_opened_and_closed_once_per_task() -> None:
    definition = definition_of_wrapper(udf(Divided(), result_type="BIGINT"), "divided")
    arguments = (Literal(BigIntType(), 12), InputRef(BigIntType(), 0, "n"))
    call = Call(BigIntType(), "divided", arguments, (), definition)
    function = spark_function(call, Session(), "BIGINT", {"k": "v"})
    assert function.has_life_cycle
    batches = [pa.array([1, 2], pa.int64()), (pa.array([3], pa.int64()),)]
    EVENTS.clear()
    assert [found.to_pylist() for found in function.run(iter(batches), 3, 1)] == [[12, 6], [4]]
    assert EVENTS == ["open (3, 1) v", "close"]
    EVENTS.clear()
    with pytest.raises(UserFunctionError) as caught:
        list(function.run(iter([pa.array([5, 0], pa.int64())]), 0, 0))
    assert EVENTS == ["open (0, 0) v", "close"]
    error = reported_failure(f"in some words of Spark: {caught.value}\n\tat java")
    assert error is not None
    assert error.arguments == "(12, 0)"
    assert error.message.endswith(", for the arguments (12, 0).")
    assert reported_failure("another error") is None
