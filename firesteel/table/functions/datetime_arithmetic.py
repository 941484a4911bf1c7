"""Arithmetic of dates, times, timestamps and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call
from firesteel.table.functions.definition import Inferred
from firesteel.table.functions.spark.temporal import moved
from firesteel.table.inference.common_type import common_type
from firesteel.table.inference.families import is_datetime, is_integer, is_interval
from firesteel.table.values.calendar import add_months
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type
from firesteel.types.logical import LogicalType

__all__ = ["infer", "row", "spark", "vector"]

DAY = 86_400_000
"""Milliseconds of a day."""
_NANOS_PER_DAY = DAY * 1_000_000


def infer(name: str, left: LogicalType, right: LogicalType) -> Inferred | None:
    """The types of an operation with a date, a time or an interval; None if it has none or is not allowed."""
    operands = (left, right)
    if name in ("PLUS", "MINUS"):
        if is_datetime(left) and is_interval(right):
            return Inferred(operands, left)
        if name == "PLUS" and is_interval(left) and is_datetime(right):
            return Inferred(operands, right)
        if is_interval(left) and is_interval(right) and left.root is right.root:
            common = common_type([left.copy(), right.copy()])
            assert common is not None
            return Inferred(operands, common)
    if name == "TIMES":
        if is_interval(left) and is_integer(right):
            return Inferred(operands, left)
        if is_integer(left) and is_interval(right):
            return Inferred(operands, right)
    return None


def row(name: str, call: Call) -> Any:
    """The row body of an operation that ``infer`` allows."""
    left, right = (argument.type for argument in call.arguments)
    if is_datetime(left):
        return _move(left, right, -1 if name == "MINUS" else 1)
    if is_datetime(right):
        move = _move(right, left, 1)
        return lambda interval, value: move(value, interval)
    symbol = {"PLUS": "+", "MINUS": "-", "TIMES": "*"}[name]
    return f"({{0}} {symbol} {{1}})"


def _move(type_: LogicalType, interval: LogicalType, sign: int) -> Callable[[int, int], int]:
    if isinstance(interval, t.YearMonthIntervalType):
        if isinstance(type_, t.DateType):
            return lambda days, months: add_months(days, sign * months)
        if isinstance(type_, t.TimeType):
            return lambda time, _: time
        return lambda nanos, months: _move_timestamp(nanos, sign * months)
    if isinstance(type_, t.DateType):
        return lambda days, millis: days + sign * int(millis / DAY)
    if isinstance(type_, t.TimeType):
        return lambda time, millis: (time + sign * millis) % DAY
    return lambda nanos, millis: nanos + sign * millis * 1_000_000


def _move_timestamp(nanos: int, months: int) -> int:
    days, rest = divmod(nanos, _NANOS_PER_DAY)
    return add_months(days, months) * _NANOS_PER_DAY + rest


def vector(name: str, call: Call) -> Callable[..., Any] | None:
    """The vector body, if there is one."""
    left, right = (argument.type for argument in call.arguments)
    if not isinstance(left, (t.TimestampType, t.LocalZonedTimestampType)) or left.precision > 6:
        return None
    if not isinstance(right, t.DayTimeIntervalType):
        return None
    target = arrow_type(call.type)
    unit = target.unit
    operation = pc.subtract if name == "MINUS" else pc.add
    if unit == "s":
        return None

    def move(value: Any, interval: Any) -> Any:
        return pc.cast(operation(value, pc.cast(interval, pa.duration(unit))), target)

    return move


def spark(name: str, call: Call, arguments: Sequence[str]) -> str | None:
    """The operation in Spark SQL, if it has the same result there."""
    first, second = call.arguments
    if is_datetime(first.type):
        return moved(first, second, arguments, -1 if name == "MINUS" else 1)
    if is_datetime(second.type):
        return moved(second, first, arguments[::-1], 1)
    return None
