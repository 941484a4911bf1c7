"""Aggregate functions of bitmaps: BITMAP_BUILD_AGG, BITMAP_AND_AGG, BITMAP_OR_AGG, BITMAP_XOR_AGG, and cardinalities.

An accumulator has the number of values, how often each integer came, and how often it left without having come: a row
that leaves may have come to the accumulator into which this one is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.table.bound.nodes import Call
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, Make, define
from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.signatures import BITMAP, Parameter, signature
from firesteel.table.values.bitmap import dump_bitmap, load_bitmap, new_bitmap
from firesteel.table.values.bitmap_counter import add, cancel, present, shared
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["BITMAP_AGGREGATES"]

_INT = Parameter(
    "<INT>", lambda type_: isinstance(type_, (t.TinyIntType, t.SmallIntType, t.IntType)), t.IntType(), t.IntType()
)
_NUMBER, _PLUS, _MINUS = range(3)
Choose = Callable[[list[Any]], Any]
"""The bitmap of the result of an accumulator."""


def _body(load: Callable[[Any], Any], choose: Choose, finish: Callable[[Any], Any]) -> Make:
    def accumulate(accumulator: list[Any], value: Any) -> None:
        accumulator[_NUMBER] += 1
        add(accumulator[_PLUS], load(value))
        _settle(accumulator)

    def retract(accumulator: list[Any], value: Any) -> None:
        accumulator[_NUMBER] -= 1
        add(accumulator[_MINUS], load(value))
        _settle(accumulator)

    def result(accumulator: list[Any]) -> Any:
        return finish(choose(accumulator)) if accumulator[_NUMBER] > 0 else None

    body = AggregateBody(lambda: [0, [], []], accumulate, retract, _merge, result)

    def make(call: Call, session: Session) -> AggregateBody:
        return body

    return make


def _settle(accumulator: list[Any]) -> None:
    if accumulator[_PLUS] and accumulator[_MINUS]:
        accumulator[_PLUS], accumulator[_MINUS] = cancel(accumulator[_PLUS], accumulator[_MINUS])


def _merge(accumulator: list[Any], other: list[Any]) -> None:
    accumulator[_NUMBER] += other[_NUMBER]
    for side in (_PLUS, _MINUS):
        for place, layer in enumerate(other[side]):
            add(accumulator[side], layer, place)
    _settle(accumulator)


def _or(accumulator: list[Any]) -> Any:
    return present(accumulator[_PLUS])


def _and(accumulator: list[Any]) -> Any:
    return shared(accumulator[_PLUS], accumulator[_NUMBER])


def _xor(accumulator: list[Any]) -> Any:
    """The integers with an odd count."""
    found = new_bitmap()
    for side in (_PLUS, _MINUS):
        if accumulator[side]:
            found ^= accumulator[side][0]
    return found


def _define(
    operation: str, parameter: Parameter, load: Callable[[Any], Any], choose: Choose
) -> Iterator[FunctionDefinition]:
    ends: dict[str, tuple[LogicalType, Callable[[Any], Any]]] = {
        "AGG": (t.BitmapType(), dump_bitmap),
        "CARDINALITY_AGG": (t.BigIntType(), len),
    }
    for end, (returns, finish) in ends.items():
        name = f"BITMAP_{operation}_{end}"
        sign = signature(name, parameter, returns=returns, nullable=True, takes_null=parameter is _INT)
        yield define(name, sign, _body(load, choose, finish))


BITMAP_AGGREGATES = (
    *_define("BUILD", _INT, lambda number: new_bitmap((number,)), _or),
    *_define("AND", BITMAP, load_bitmap, _and),
    *_define("OR", BITMAP, load_bitmap, _or),
    *_define("XOR", BITMAP, load_bitmap, _xor),
)
