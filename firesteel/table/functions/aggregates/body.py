"""The bodies of aggregate functions.

An accumulator is a list, so that it is changed in place. Arguments that are NULL do not reach ``accumulate``, unless
the function takes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.table.bound.nodes import Call
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, FunctionKind, PerCall, Signature
from firesteel.table.inference.families import is_approximate
from firesteel.types.logical import LogicalType

__all__ = ["AggregateBody", "Make", "bag_key", "define", "listed", "sort_key"]


@dataclass(frozen=True)
class AggregateBody:
    """The bodies of an aggregate function for one call."""

    create: Callable[[], list[Any]]
    accumulate: Callable[..., None]
    retract: Callable[..., None] | None
    """None if a row cannot leave the accumulator."""
    merge: Callable[[list[Any], list[Any]], None]
    result: Callable[[list[Any]], Any]
    takes_null: bool = False


Make = Callable[[Call, Session], AggregateBody]


def define(name: str, sign: Signature, body: Make | None) -> FunctionDefinition:
    """An aggregate function; without a body it is one of windows only."""
    row = None if body is None else PerCall(body)
    return FunctionDefinition(name, sign, row=row, kind=FunctionKind.AGGREGATE, family="aggregate")


def bag_key(type_: LogicalType) -> Callable[[Any], Any]:
    """What identifies a value among others of its type: NaN is NaN, -0.0 is not 0.0; arrays and maps have no hash."""
    if is_approximate(type_):
        return lambda value: value if value and value == value else f"{value}"
    if type_.children():
        return repr
    return _same


def listed(result: Callable[..., Any], takes_null: bool = False) -> AggregateBody:
    """All values in order. The accumulator has values, values to remove from one it is merged into, and constants.

    A row that leaves may have come to another accumulator: local ones begin anew with each batch.
    """

    def accumulate(accumulator: list[Any], value: Any, *constants: Any) -> None:
        accumulator[0].append(value)
        accumulator[2] = constants

    def retract(accumulator: list[Any], value: Any, *constants: Any) -> None:
        values = accumulator[0]
        for index, known in enumerate(values):
            if known == value or (known != known and value != value):
                del values[index]
                return
        accumulator[1].append(value)

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        for value in other[1]:
            retract(accumulator, value)
        accumulator[0].extend(other[0])
        accumulator[2] = other[2] or accumulator[2]

    return AggregateBody(
        lambda: [[], [], ()],
        accumulate,
        retract,
        merge,
        lambda accumulator: result(accumulator[0], *accumulator[2]),
        takes_null,
    )


def _same(value: Any) -> Any:
    return value


def sort_key(value: Any) -> Any:
    """Orders numbers as Java does: NaN is the largest."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)
