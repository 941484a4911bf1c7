"""MIN, MAX, and the functions that keep values: COLLECT, ARRAY_AGG, LISTAGG, FIRST_VALUE, LAST_VALUE, SINGLE_VALUE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, Make, bag_key, define, listed, sort_key
from firesteel.table.functions.definition import Inferred, Signature
from firesteel.table.functions.signatures import ANY, CHARACTER, check_count, illegal_null, mismatch, signature
from firesteel.table.inference.families import is_binary, is_bitmap, is_constructed, is_null
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["COLLECTING"]


# -- how often each value is there -------------------------------------------------------------------------


def _bag(type_: LogicalType, result: Callable[[dict[Any, list[Any]]], Any]) -> AggregateBody:
    """A value and its number by what identifies the value."""
    key_of = bag_key(type_)

    def change(accumulator: list[Any], value: Any, number: int) -> None:
        entries, key = accumulator[0], key_of(value)
        entry = entries.setdefault(key, [value, 0])
        entry[1] += number
        if not entry[1]:
            del entries[key]

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        for value, number in other[0].values():
            change(accumulator, value, number)

    return AggregateBody(
        lambda: [{}],
        lambda accumulator, value: change(accumulator, value, 1),
        lambda accumulator, value: change(accumulator, value, -1),
        merge,
        lambda accumulator: result(accumulator[0]),
    )


def _extreme(choose: Callable[..., Any]) -> Make:
    def make(call: Call, session: Session) -> AggregateBody:
        def result(entries: dict[Any, list[Any]]) -> Any:
            # a number that is negative stands for a row that left before it came
            values = [value for value, number in entries.values() if number > 0]
            return choose(values, key=sort_key, default=None)

        return _bag(call.arguments[0].type, result)

    return make


def _collect(call: Call, session: Session) -> AggregateBody:
    def result(entries: dict[Any, list[Any]]) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for value, number in entries.values():
            found[value] = found.get(value, 0) + number  # 0.0 and -0.0 are one key of a dict
        return found

    return _bag(call.arguments[0].type, result)


# -- all values in order -----------------------------------------------------------------------------------


def _array_agg(call: Call, session: Session) -> AggregateBody:
    return listed(lambda values: list(values) or None, "IGNORE NULLS" not in call.symbols)


def _edge(index: int) -> Make:
    return lambda call, session: listed(lambda values: values[index] if values else None)


def _single(values: list[Any]) -> Any:
    if len(values) > 1:
        raise EvaluationError("SINGLE_VALUE received more than one element.")
    return values[0] if values else None


def _joined(values: list[str], separator: str = ",") -> str | None:
    return separator.join(values) if values else None


# -- types -------------------------------------------------------------------------------------------------


def _comparable(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 1, 1)
        type_ = arguments[0].type
        if is_null(type_):
            raise illegal_null()
        if is_constructed(type_) or is_binary(type_) or is_bitmap(type_):
            raise mismatch(name, arguments, f"'{name}(<COMPARABLE_TYPE>)'")
        return Inferred((type_,), type_.copy())

    return infer


def _any(name: str, result: Callable[[LogicalType], LogicalType], nullable: bool = True) -> Signature:
    return signature(name, ANY, returns=lambda arguments: result(arguments[0].type), nullable=nullable)


def _infer_collect(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    found = _any("COLLECT", t.MultisetType, nullable=False)(arguments, symbols)
    if not _is_hashable(arguments[0].type):
        raise ValidationError(
            f"COLLECT of {arguments[0].type.as_summary_string()} is not supported.",
            hint="ARRAY_AGG takes arrays and maps.",
        )
    return found


def _is_hashable(type_: LogicalType) -> bool:
    """Whether values can be the keys of the dict that a multiset is."""
    if isinstance(type_, (t.ArrayType, t.MapType, t.MultisetType)):
        return False
    return all(map(_is_hashable, type_.children()))


def _infer_listagg(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    if len(arguments) > 1 and not isinstance(arguments[1], Literal):
        raise ValidationError("Argument to function 'LISTAGG' must be a literal.")
    sign = signature("LISTAGG", CHARACTER, CHARACTER, returns=t.VarCharType(), optional=1, nullable=True)
    return sign(arguments, symbols)


COLLECTING = (
    define("MAX", _comparable("MAX"), _extreme(max)),
    define("MIN", _comparable("MIN"), _extreme(min)),
    define("COLLECT", _infer_collect, _collect),
    define("ARRAY_AGG", _any("ARRAY_AGG", t.ArrayType), _array_agg),
    define("FIRST_VALUE", _any("FIRST_VALUE", lambda type_: type_), _edge(0)),
    define("LAST_VALUE", _any("LAST_VALUE", lambda type_: type_), _edge(-1)),
    define("SINGLE_VALUE", _any("SINGLE_VALUE", lambda type_: type_), lambda call, session: listed(_single)),
    define("LISTAGG", _infer_listagg, lambda call, session: listed(_joined)),
)
