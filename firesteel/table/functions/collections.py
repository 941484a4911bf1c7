"""Arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import (
    ARRAY,
    BOOLEAN,
    CHARACTER,
    INTEGER,
    MAP,
    Parameter,
    any_nullable,
    check_count,
    common_arguments,
    mismatch,
    signature,
)
from firesteel.table.inference.common_type import common_type
from firesteel.table.inference.families import is_bitmap, is_character, is_integer, is_null
from firesteel.table.values.java_units import java_units
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["FUNCTIONS"]

_INT = t.IntType()


def _define(name: str, sign: Signature, row: Any, **options: Any) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, family="collection", **options)


def _element(type_: LogicalType) -> LogicalType:
    assert isinstance(type_, t.ArrayType)
    return type_.element_type


# -- construction and access -------------------------------------------------------------------------------


def _infer_row(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    types = tuple(argument.type for argument in arguments)
    names = [f"EXPR${index}" for index in range(len(types))]
    return Inferred(types, t.RowType.of(names, types, nullable=False))


def _infer_array(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("ARRAY", arguments, 1, None)
    common = common_arguments("ARRAY", arguments)
    if is_null(common):
        raise ValidationError("Illegal use of 'NULL'.")
    return Inferred((common,) * len(arguments), t.ArrayType(common, nullable=False))


def _infer_map(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    if not arguments or len(arguments) % 2:
        raise ValidationError("MAP requires an even number of arguments.")
    key, value = (common_arguments("MAP", arguments[::2]), common_arguments("MAP", arguments[1::2]))
    types = tuple(value if index % 2 else key for index in range(len(arguments)))
    return Inferred(types, t.MapType(key, value, nullable=False))


def _make_map(*values: Any) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _infer_at(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("[]", arguments, 2, 2)
    container, index = (argument.type for argument in arguments)
    if isinstance(container, t.ArrayType) and is_integer(index):
        if isinstance(arguments[1], Literal) and arguments[1].value < 1:
            raise ValidationError(f"Array element access needs an index starting at 1 but was {arguments[1].value}.")
        return Inferred((container, index), container.element_type.copy())
    if isinstance(container, t.MapType):
        return Inferred((container, container.key_type.copy(index.nullable)), container.value_type.copy())
    raise mismatch("ITEM", arguments, "'<ARRAY>[<INTEGER>]' or '<MAP>[<ANY>]'")


def _at(call: Call, session: Session) -> Callable[[Any, Any], Any]:
    if isinstance(call.arguments[0].type, t.MapType):
        return lambda entries, key: entries.get(key)
    return lambda values, index: values[index - 1] if 1 <= index <= len(values) else None


def _infer_element(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("ELEMENT", arguments, 1, 1)
    type_ = arguments[0].type
    if not isinstance(type_, t.ArrayType):
        raise mismatch("ELEMENT", arguments, "'ELEMENT(<ARRAY>)'")
    return Inferred((type_,), type_.element_type.copy(type_.nullable or type_.element_type.nullable))


def _sole(values: list[Any]) -> Any:
    if len(values) > 1:
        raise EvaluationError("Array has more than one element.")
    return values[0] if values else None


_SIZED = Parameter(
    "<ARRAY> or <MAP>", lambda type_: isinstance(type_, (t.ArrayType, t.MapType, t.MultisetType)), t.ArrayType(_INT)
)


# -- arrays and elements -----------------------------------------------------------------------------------


def _with_element(name: str, returns: str) -> Signature:
    """``ARRAY`` with an element that joins it; ``INT`` or ``BOOLEAN`` for one that is looked for."""

    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 2, 2)
        array, element = (argument.type for argument in arguments)
        if not isinstance(array, t.ArrayType):
            raise mismatch(name, arguments, f"'{name}(<ARRAY>, <ELEMENT>)'")
        known = array.element_type
        common = known.copy() if is_null(element) else common_type([known, element])
        if common is None:
            raise mismatch(name, arguments, f"'{name}(<ARRAY>, <ELEMENT>)'")
        if common.copy() != known.copy():
            raise mismatch(name, arguments, f"'{name}(<ARRAY>, <ELEMENT>)'")
        target = known.copy(element.nullable)
        if returns == "ARRAY":
            made = t.ArrayType(known.copy(known.nullable or element.nullable), nullable=array.nullable)
            return Inferred((made, target), made)
        if returns == "SAME":
            return Inferred((array, target), array)
        result: LogicalType = t.BooleanType() if returns == "BOOLEAN" else _INT
        nullable = array.nullable or (returns == "INT" and element.nullable)
        return Inferred((array, target), result.copy(nullable))

    return infer


def _array_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL for an array that is NULL; other arguments may be NULL."""
    return lambda values, *others: None if values is None else function(values, *others)


def _position(values: list[Any], element: Any) -> int:
    return values.index(element) + 1 if element in values else 0


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _slice(values: list[Any], start: int, end: int | None = None) -> list[Any]:
    size = len(values)
    last = size if end is None else end
    first = start + size + 1 if start < 0 else max(start, 1)
    last = last + size + 1 if last < 0 else last if end is None or last else 1
    if not values or first > last or first > size:
        return []
    return values[max(first, 1) - 1 : max(last, 0)]


def _sort(values: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
    first = ascending if nulls_first is None else nulls_first
    known = sorted((value for value in values if value is not None), reverse=not ascending)
    nulls: list[Any] = [None] * (len(values) - len(known))
    return nulls + known if first else known + nulls


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda values: choose((value for value in values if value is not None), default=None)


def _join(values: list[Any], delimiter: str, replacement: str | None = None) -> str:
    return delimiter.join(
        [
            value if value is not None else replacement or ""
            for value in values
            if value is not None or replacement is not None
        ]
    )


_SORTABLE = Parameter(
    "<ARRAY<COMPARABLE>>",
    lambda type_: isinstance(type_, t.ArrayType) and not is_bitmap(type_.element_type),
    t.ArrayType(t.IntType()),
)


def _sortable(name: str) -> Signature:
    return signature(name, _SORTABLE, returns=lambda found: _element(found[0].type), nullable=True)


def _of_arrays(name: str, low: int = 2, high: int | None = 2) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, low, high)
        common = common_type([argument.type for argument in arguments])
        if not isinstance(common, (t.ArrayType, t.MapType)):
            raise mismatch(name, arguments, f"'{name}(<COMMON>, <COMMON>)'")
        return Inferred((common,) * len(arguments), common.copy(any_nullable(arguments)))

    return infer


def _infer_join(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    found = signature("ARRAY_JOIN", ARRAY, CHARACTER, CHARACTER, returns=t.VarCharType(), optional=1)(
        arguments, symbols
    )
    if not is_character(_element(arguments[0].type)):
        raise mismatch("ARRAY_JOIN", arguments, "'ARRAY_JOIN(<ARRAY<STRING>>, <CHARACTER>)'")
    return found


# -- maps --------------------------------------------------------------------------------------------------


def _map_part(name: str, returns: Callable[[t.MapType], LogicalType]) -> Signature:
    def result(arguments: Sequence[Expression]) -> LogicalType:
        type_ = arguments[0].type
        assert isinstance(type_, t.MapType)
        return returns(type_)

    return signature(name, MAP, returns=result)


def _entries_type(type_: t.MapType) -> LogicalType:
    return t.ArrayType(t.RowType.of(["key", "value"], [type_.key_type, type_.value_type]))


def _infer_map_from_arrays(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    return signature(
        "MAP_FROM_ARRAYS",
        ARRAY,
        ARRAY,
        returns=lambda found: t.MapType(_element(found[0].type), _element(found[1].type)),
    )(arguments, symbols)


def _map_from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        raise EvaluationError(
            f"Invalid function MAP_FROM_ARRAYS call: The length of the keys array {len(keys)} is not equal to the "
            f"length of the values array {len(values)}"
        )
    return dict(zip(keys, values, strict=True))


def _split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter and text else java_units(text)


FUNCTIONS = (
    _define("ROW", _infer_row, lambda *values: values, strict=False, returns_null=False),
    _define("ARRAY", _infer_array, lambda *values: list(values), strict=False, returns_null=False),
    _define("MAP", _infer_map, _make_map, strict=False, returns_null=False),
    _define("AT", _infer_at, PerCall(_at)),
    _define("CARDINALITY", signature("CARDINALITY", _SIZED, returns=_INT), "len({0})", returns_null=False),
    _define("ELEMENT", _infer_element, _sole, can_fail=True),
    _define("ARRAY_APPEND", _with_element("ARRAY_APPEND", "ARRAY"), _array_first(lambda v, e: [*v, e]), strict=False),
    _define("ARRAY_PREPEND", _with_element("ARRAY_PREPEND", "ARRAY"), _array_first(lambda v, e: [e, *v]), strict=False),
    _define(
        "ARRAY_CONTAINS", _with_element("ARRAY_CONTAINS", "BOOLEAN"), _array_first(lambda v, e: e in v), strict=False
    ),
    _define("ARRAY_POSITION", _with_element("ARRAY_POSITION", "INT"), _position),
    _define(
        "ARRAY_REMOVE",
        _with_element("ARRAY_REMOVE", "SAME"),
        _array_first(lambda v, e: [value for value in v if value != e]),
        strict=False,
    ),
    _define("ARRAY_DISTINCT", signature("ARRAY_DISTINCT", ARRAY, returns=lambda found: found[0].type), _distinct),
    _define("ARRAY_REVERSE", signature("ARRAY_REVERSE", ARRAY, returns=lambda found: found[0].type), "{0}[::-1]"),
    _define(
        "ARRAY_SLICE",
        signature(
            "ARRAY_SLICE", ARRAY, INTEGER, INTEGER, returns=lambda found: found[0].type, optional=1, takes_null=True
        ),
        _slice,
    ),
    _define(
        "ARRAY_SORT",
        signature("ARRAY_SORT", _SORTABLE, BOOLEAN, BOOLEAN, returns=lambda found: found[0].type, optional=2),
        _sort,
    ),
    _define("ARRAY_MAX", _sortable("ARRAY_MAX"), _extreme(max)),
    _define("ARRAY_MIN", _sortable("ARRAY_MIN"), _extreme(min)),
    _define("ARRAY_UNION", _of_arrays("ARRAY_UNION"), lambda one, other: _distinct([*one, *other])),
    _define(
        "ARRAY_CONCAT",
        _of_arrays("ARRAY_CONCAT", 1, None),
        lambda *arrays: [value for array in arrays for value in array],
    ),
    _define(
        "ARRAY_EXCEPT",
        _of_arrays("ARRAY_EXCEPT"),
        lambda one, other: _distinct([value for value in one if value not in other]),
    ),
    _define(
        "ARRAY_INTERSECT",
        _of_arrays("ARRAY_INTERSECT"),
        lambda one, other: _distinct([value for value in one if value in other]),
    ),
    _define("ARRAY_JOIN", _infer_join, _join),
    _define("MAP_KEYS", _map_part("MAP_KEYS", lambda type_: t.ArrayType(type_.key_type)), "list({0})"),
    _define("MAP_VALUES", _map_part("MAP_VALUES", lambda type_: t.ArrayType(type_.value_type)), "list({0}.values())"),
    _define("MAP_ENTRIES", _map_part("MAP_ENTRIES", _entries_type), "list({0}.items())"),
    _define(
        "MAP_UNION",
        _of_arrays("MAP_UNION", 1, None),
        lambda *maps: {key: value for entries in maps for key, value in entries.items()},
    ),
    _define("MAP_FROM_ARRAYS", _infer_map_from_arrays, _map_from_arrays, can_fail=True),
    _define(
        "SPLIT", signature("SPLIT", CHARACTER, CHARACTER, returns=t.ArrayType(t.VarCharType()), takes_null=True), _split
    ),
)
