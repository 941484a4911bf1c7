"""JSON_OBJECTAGG and JSON_ARRAYAGG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, define, listed
from firesteel.table.functions.definition import Inferred
from firesteel.table.functions.json_text import json_serializer
from firesteel.table.functions.signatures import check_count, mismatch
from firesteel.table.inference.families import is_character
from firesteel.table.values.json_path import to_json
from firesteel.types import logical as t

__all__ = ["JSON_AGGREGATES"]

_TEXT = t.VarCharType(2000, nullable=False)
_WITHOUT_JSON = (t.DateType, t.TimeType, t.YearMonthIntervalType, t.DayTimeIntervalType, t.BitmapType)


def _serializer(call: Call, index: int, session: Session) -> Callable[[Any], str]:
    """Text that JSON functions made is not quoted again."""
    if any(symbol.startswith("JSON") and str(index) in symbol.split() for symbol in call.symbols):
        return str
    return json_serializer(call.arguments[index].type, session)


def _check(name: str, value: Expression) -> None:
    if isinstance(value.type, _WITHOUT_JSON):
        raise ValidationError(
            f"{name}: type '{value.type.as_summary_string()}' is not scalar or cannot be converted into JSON."
        )


def _infer_object(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("JSON_OBJECTAGG", arguments, 2, 2)
    key, value = arguments
    if not is_character(key.type):
        raise mismatch("JSON_OBJECTAGG", arguments, "'JSON_OBJECTAGG(<CHARACTER>, <ANY>)'")
    _check("JSON_OBJECTAGG", value)
    return Inferred((key.type, value.type), _TEXT)


def _object(call: Call, session: Session) -> AggregateBody:
    absent = "ABSENT" in call.symbols
    serialize = _serializer(call, 1, session)

    def accumulate(accumulator: list[Any], key: Any, value: Any) -> None:
        if key is None:
            raise EvaluationError("The key of JSON_OBJECTAGG is NULL.")
        if key in accumulator[0]:
            raise EvaluationError(
                f"Key '{key}' is already present. Duplicate keys are not allowed in JSON_OBJECTAGG.",
                hint="Ensure that keys are unique.",
            )
        accumulator[0][key] = value

    def retract(accumulator: list[Any], key: Any, _: Any = None) -> None:
        if key in accumulator[0]:
            del accumulator[0][key]
        else:
            accumulator[1].append(key)  # it came to the accumulator into which this one is merged

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        for key in other[1]:
            retract(accumulator, key)
        for key, value in other[0].items():
            accumulate(accumulator, key, value)

    def result(accumulator: list[Any]) -> str:
        parts = [
            f"{to_json(key)}:{'null' if value is None else serialize(value)}"
            for key, value in sorted(accumulator[0].items())
            if value is not None or not absent
        ]
        return f"{{{','.join(parts)}}}"

    return AggregateBody(lambda: [{}, []], accumulate, retract, merge, result, takes_null=True)


def _infer_array(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("JSON_ARRAYAGG", arguments, 1, 1)
    _check("JSON_ARRAYAGG", arguments[0])
    return Inferred((arguments[0].type,), _TEXT)


def _array(call: Call, session: Session) -> AggregateBody:
    serialize = _serializer(call, 0, session)

    def result(values: list[Any]) -> str:
        return f"[{','.join(['null' if value is None else serialize(value) for value in values])}]"

    return listed(result, takes_null="NULL" in call.symbols)


JSON_AGGREGATES = (
    define("JSON_OBJECTAGG", _infer_object, _object),
    define("JSON_ARRAYAGG", _infer_array, _array),
)
