"""JSON: queries of JSON text, and JSON text of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.functions.json_text import json_serializer
from firesteel.table.functions.signatures import CHARACTER, check_count, mismatch, signature
from firesteel.table.inference.families import is_character
from firesteel.table.values.json_path import (
    JsonError,
    PathError,
    parse_json,
    parse_path,
    scalar_text,
    to_json,
)
from firesteel.table.values.variant import variant_text
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["FUNCTIONS", "is_json"]

_STRING = t.VarCharType()
_RETURNS: dict[str, LogicalType] = {
    "STRING": _STRING,
    "BOOLEAN": t.BooleanType(),
    "INT": t.IntType(),
    "DOUBLE": t.DoubleType(),
    "ARRAY<STRING>": t.ArrayType(_STRING),
}


def _define(name: str, sign: Any, row: Any, **options: Any) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, family="json", **options)


class _NothingFound(Exception):
    """A path that leads nowhere in the lax mode."""


def _symbol(symbols: tuple[str, ...], prefix: str, default: str) -> str:
    return next((symbol.removeprefix(prefix).strip() for symbol in symbols if symbol.startswith(prefix)), default)


# -- queries -----------------------------------------------------------------------------------------------


def _is_json(call: Call, session: Session) -> Callable[[str | None], bool | None]:
    kind = call.symbols[0] if call.symbols else "VALUE"

    def test(text: str | None) -> bool:
        if text is None:
            return False
        try:
            value = parse_json(text)
        except JsonError:
            return False
        if kind == "OBJECT":
            return isinstance(value, dict)
        if kind == "ARRAY":
            return isinstance(value, list)
        return kind != "SCALAR" or not isinstance(value, (dict, list))

    return test


def _find(text: str, path: str) -> Any:
    """The value at a path, None for nothing in the lax mode; in the strict mode that is a PathError."""
    parsed = parse_path(path)
    document = parse_json(text)
    try:
        return parsed.find(document)
    except PathError:
        if parsed.is_strict:
            raise
        return None


def _json_exists(call: Call, session: Session) -> Callable[[str, str], bool | None]:
    on_error = _symbol(call.symbols, "ON ERROR", "FALSE")
    answers = {"TRUE": True, "FALSE": False, "UNKNOWN": None}

    def exists(text: str, path: str) -> bool | None:
        try:
            return _find(text, path) is not None
        except (JsonError, PathError) as error:
            if on_error == "ERROR":
                raise EvaluationError(str(error)) from error
            return answers[on_error]

    return exists


def _is_document(type_: LogicalType) -> bool:
    return is_character(type_) or isinstance(type_, t.VariantType)


def _document(call: Call) -> Callable[[str], str]:
    return variant_text if isinstance(call.arguments[0].type, t.VariantType) else str


def _infer_value(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    if len(arguments) < 2 or not _is_document(arguments[0].type) or not is_character(arguments[1].type):
        raise mismatch("JSON_VALUE", arguments, "'JSON_VALUE(<CHARACTER>, <CHARACTER>)'")
    result = _RETURNS.get(_symbol(symbols, "RETURNING", "STRING"))
    if result is None or isinstance(result, t.ArrayType):
        raise ValidationError("JSON_VALUE can return STRING, BOOLEAN, INT and DOUBLE.")
    types = (*(argument.type for argument in arguments[:2]), *(result for _ in arguments[2:]))
    return Inferred(types, result.copy())


def _json_value(call: Call, session: Session) -> Callable[..., Any]:
    """Arguments after the path are the defaults: first on empty, then on error."""
    on_empty = _symbol(call.symbols, "ON EMPTY", "NULL")
    on_error = _symbol(call.symbols, "ON ERROR", "NULL")
    convert = _scalar_conversion(call.type)
    document = _document(call)

    def value(text: str | None, path: str | None, *defaults: Any) -> Any:
        if text is None or path is None:
            return None
        try:
            found = _find(document(text), path)
            if found is None:
                raise _NothingFound
            if isinstance(found, (dict, list)):
                raise PathError("not a scalar")
            return convert(found)
        except _NothingFound as error:
            if on_empty == "ERROR":
                raise EvaluationError("Empty result of JSON_VALUE function is not allowed") from error
            return defaults[0] if on_empty == "DEFAULT" else None
        except (JsonError, PathError) as error:
            if on_error == "ERROR":
                raise EvaluationError(str(error)) from error
            return defaults[-1] if on_error == "DEFAULT" else None

    return value


def _scalar_conversion(type_: LogicalType) -> Callable[[Any], Any]:
    match type_:
        case t.BooleanType():
            expected: type = bool
        case t.IntType():
            expected = int
        case t.DoubleType():
            expected = Decimal
        case _:
            return scalar_text

    def convert(value: Any) -> Any:
        if type(value) is not expected:
            raise EvaluationError(f"JSON_VALUE found {to_json(value)}, which is no {type_.as_summary_string()}.")
        return float(value) if isinstance(value, Decimal) else value

    return convert


def _infer_query(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("JSON_QUERY", arguments, 2, 2)
    if not _is_document(arguments[0].type) or not is_character(arguments[1].type):
        raise mismatch("JSON_QUERY", arguments, "'JSON_QUERY(<CHARACTER>, <CHARACTER>)'")
    result = _RETURNS.get(_symbol(symbols, "RETURNING", "STRING"))
    if not isinstance(result, (t.VarCharType, t.ArrayType)):
        raise ValidationError("JSON_QUERY can return STRING and ARRAY<STRING>.")
    return Inferred(tuple(argument.type for argument in arguments), result.copy())


_EMPTY: dict[str, Any] = {"NULL": None, "EMPTY ARRAY": [], "EMPTY OBJECT": {}}


def _json_query(call: Call, session: Session) -> Callable[[str, str], Any]:
    wrapper = _symbol(call.symbols, "WRAPPER", "WITHOUT")
    on_empty = _symbol(call.symbols, "ON EMPTY", "NULL")
    on_error = _symbol(call.symbols, "ON ERROR", "NULL")
    as_array = isinstance(call.type, t.ArrayType)
    document = _document(call)

    def result(value: Any) -> Any:
        if value is None:
            return None
        if as_array:
            return [item if isinstance(item, str) or item is None else to_json(item) for item in value]
        return to_json(value, sorts_keys=True)

    def query(text: str, path: str) -> Any:
        try:
            found = _find(document(text), path)
            if found is None:
                raise _NothingFound
            if wrapper == "WITH UNCONDITIONAL" or (wrapper == "WITH CONDITIONAL" and not isinstance(found, list)):
                found = [found]
            if not isinstance(found, (dict, list)):
                raise PathError("a scalar needs a wrapper")
            return result(found)
        except _NothingFound as error:
            if on_empty == "ERROR":
                raise EvaluationError("Empty result of JSON_QUERY function is not allowed") from error
            return result(_EMPTY[on_empty])
        except (JsonError, PathError) as error:
            if on_error == "ERROR":
                raise EvaluationError(str(error)) from error
            return result(_EMPTY[on_error])

    return query


# -- construction ------------------------------------------------------------------------------------------


def _infer_object(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    for key in arguments[::2]:
        if not isinstance(key, Literal) or not is_character(key.type):
            raise mismatch("JSON_OBJECT", arguments, "keys that are non-null string literals")
    return _any_types(arguments)


def _infer_json_array(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    return _any_types(arguments)


def _check_serializable(type_: LogicalType) -> None:
    if isinstance(type_, (t.DateType, t.TimeType, t.DayTimeIntervalType, t.YearMonthIntervalType, t.BitmapType)):
        raise ValidationError(f"Type '{type_.as_summary_string()}' cannot be converted into JSON.")
    for child in type_.children():
        _check_serializable(child)


def _any_types(arguments: Sequence[Expression]) -> Inferred:
    for argument in arguments:
        _check_serializable(argument.type)
    return Inferred(tuple(argument.type for argument in arguments), _STRING.not_null())


def is_json(expression: Expression) -> bool:
    """Whether a value is JSON, not a string, within another."""
    return isinstance(expression, Call) and expression.function in ("JSON_OBJECT", "JSON_ARRAY", "JSON")


def _serializers(call: Call, session: Session) -> list[Callable[[Any], str]]:
    nested = _symbol(call.symbols, "JSON ", "").split()
    return [
        str if str(index) in nested else json_serializer(argument.type, session)
        for index, argument in enumerate(call.arguments)
    ]


def _json_object(call: Call, session: Session) -> Callable[..., str]:
    absent = "ABSENT" in call.symbols
    keys = [key.value for key in call.arguments[::2] if isinstance(key, Literal)]
    serializers = _serializers(call, session)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    entries = [(to_json(keys[index]), serializers[2 * index + 1], 2 * index + 1) for index in order]

    def make(*values: Any) -> str:
        parts = {
            key: "null" if values[index] is None else serialize(values[index])
            for key, serialize, index in entries
            if values[index] is not None or not absent
        }
        return f"{{{','.join([f'{key}:{value}' for key, value in parts.items()])}}}"

    return make


def _json_array(call: Call, session: Session) -> Callable[..., str]:
    keeps_null = "NULL" in call.symbols
    serializers = _serializers(call, session)

    def make(*values: Any) -> str:
        parts = [
            "null" if value is None else serialize(value)
            for serialize, value in zip(serializers, values, strict=True)
            if value is not None or keeps_null
        ]
        return f"[{','.join(parts)}]"

    return make


def _infer_string(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("JSON_STRING", arguments, 1, 1)
    _check_serializable(arguments[0].type)
    return Inferred((arguments[0].type,), _STRING.copy(arguments[0].type.nullable))


def _json_string(call: Call, session: Session) -> Callable[[Any], str]:
    return json_serializer(call.arguments[0].type, session)


def _json(text: str) -> str | None:
    try:
        return to_json(parse_json(text), sorts_keys=True)
    except JsonError as error:
        raise EvaluationError(f"Invalid JSON string in JSON(value) function: {error}") from error


_TWO = (CHARACTER, CHARACTER)

FUNCTIONS = (
    _define(
        "IS_JSON",
        signature("IS JSON", CHARACTER, returns=t.BooleanType(), nullable=False),
        PerCall(_is_json),
        strict=False,
        returns_null=False,
    ),
    _define(
        "JSON_EXISTS",
        signature("JSON_EXISTS", *_TWO, returns=t.BooleanType(), nullable=True),
        PerCall(_json_exists),
        can_fail=True,
    ),
    _define("JSON_VALUE", _infer_value, PerCall(_json_value), strict=False, can_fail=True),
    _define("JSON_QUERY", _infer_query, PerCall(_json_query), can_fail=True),
    _define("JSON_OBJECT", _infer_object, PerCall(_json_object), strict=False, returns_null=False),
    _define("JSON_ARRAY", _infer_json_array, PerCall(_json_array), strict=False, returns_null=False),
    _define("JSON_STRING", _infer_string, PerCall(_json_string)),
    _define("JSON", signature("JSON", CHARACTER, returns=_STRING), _json, can_fail=True),
)
