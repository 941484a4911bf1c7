"""Scalar functions as functions of Spark SQL: the same kernels, called in Spark's Python workers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from firesteel.runtime.model.metrics import MetricGroup, MetricRegistry
from firesteel.table.bound.errors import Position
from firesteel.table.bound.nodes import Call, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.user_functions.base import FunctionContext, UserDefinedFunction
from firesteel.table.user_functions.failures import UserFunctionError
from firesteel.table.user_functions.scalar import field_name
from firesteel.table.user_functions.scope import FunctionScope
from firesteel.types.internal import arrow_type, to_scalar

__all__ = ["SparkFunction", "reported_failure", "sent_arguments", "spark_function"]

_REPORT = re.compile(r"\[firesteel-function-error ([A-Za-z0-9+/=]+)\]")


@dataclass(frozen=True)
class SparkFunction:
    """A call of a scalar function for batches of Arrow arrays. It travels to Spark's Python workers."""

    name: str
    payload: bytes
    """The call, the session and the job parameters; pickled here, so that functions travel as those of jobs do."""
    result_type: str
    """In Spark SQL."""
    is_deterministic: bool
    has_life_cycle: bool
    """Whether the function has to be opened and closed."""

    def opened(self, index: int, attempt: int) -> tuple[Callable[..., Any], Callable[[], None]]:
        """What computes the results of a batch in a task of Spark, and what closes the function."""
        call, session, parameters = cloudpickle.loads(self.payload)
        scope = FunctionScope()
        scope.attach_context(_context(self.name, parameters, index, attempt))
        run = _reporting(call.definition.batch.make)(call, replace(session, scope=scope))
        constants = [to_scalar(part.value, part.type) if isinstance(part, Literal) else None for part in call.arguments]
        types = [arrow_type(part.type) for part in call.arguments if not isinstance(part, Literal)]

        def evaluate(*arrays: Any) -> Any:
            columns = iter([array.cast(type_) for array, type_ in zip(arrays, types, strict=False)])
            given = [next(columns) if constant is None else constant for constant in constants]
            return run(len(arrays[0]), *given)

        return _reporting(evaluate), scope.close

    def run(self, batches: Iterable[Any], index: int, attempt: int) -> Iterator[Any]:
        """The results of all batches of a task: the function is opened before, and closed afterwards."""
        evaluate, close = self.opened(index, attempt)
        try:
            for batch in batches:
                yield evaluate(*(batch if isinstance(batch, tuple) else (batch,)))
        finally:
            close()


def spark_function(call: Call, session: Session, result_type: str, parameters: Mapping[str, str]) -> SparkFunction:
    """A call as a function of the arguments that are not constants. Raises what pickling raises."""
    arguments = tuple(
        part if isinstance(part, Literal) else InputRef(part.type, index, field_name(part, index))
        for index, part in enumerate(call.arguments)
    )
    wrapper = call.definition.wrapper
    return SparkFunction(
        call.function,
        cloudpickle.dumps((replace(call, arguments=arguments), session, dict(parameters))),
        result_type,
        call.definition.is_deterministic,
        isinstance(wrapper._func, UserDefinedFunction),
    )


def sent_arguments(call: Call, texts: Sequence[str]) -> list[str]:
    """The texts of the arguments that Spark gives to the function; it needs one for the number of rows."""
    sent = [text for part, text in zip(call.arguments, texts, strict=True) if not isinstance(part, Literal)]
    return sent or ["true"]


def _context(name: str, parameters: Mapping[str, str], index: int, attempt: int) -> FunctionContext:
    """Metrics can be registered and are not reported: Spark has none of Python functions."""
    return FunctionContext(
        MetricGroup(MetricRegistry()), parameters, name, name, index_of_this_subtask=index, attempt_number=attempt
    )


# -- errors ------------------------------------------------------------------------------------------------------


def _reporting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Has errors of a function found again in the text that Spark makes of them."""

    def run(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except UserFunctionError as error:
            place = None if error.position is None else [error.position.line, error.position.column]
            report = json.dumps([error.message, error.function, error.arguments, place])
            code = base64.b64encode(report.encode("utf-8")).decode("ascii")
            raise UserFunctionError(f"{error.message}\n[firesteel-function-error {code}]") from error

    return run


def reported_failure(text: str) -> UserFunctionError | None:
    """The error of a function that Spark reports with some text."""
    found = _REPORT.search(text)
    if found is None:
        return None
    message, function, arguments, place = json.loads(base64.b64decode(found[1]))
    error = UserFunctionError(message)
    error.function, error.arguments = function, arguments
    error.position = None if place is None else Position(*place)
    return error
