"""CAST of columns from and to text, by kernels that do not take all values.

A kernel returns None for a column with a value whose text is rare or wrong; the row body then casts the column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.inference import families
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type
from firesteel.types.logical import MAX_LENGTH, LogicalType
from firesteel.types.python import BITS

__all__ = ["partial_cast_vector"]

PartialKernel = Callable[[Any], Any | None]
_INTEGER = r"^-?\d{1,19}$"
_DOUBLE = r"^[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIMESTAMP = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"
_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999."""
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


def partial_cast_vector(source: LogicalType, target: LogicalType) -> PartialKernel | None:
    """A kernel that may return None; None if there is not even such a one."""
    if families.is_character(source):
        return _from_text(target)
    if isinstance(target, t.VarCharType) and target.length == MAX_LENGTH:
        return _to_text(source)
    return None


def _from_text(target: LogicalType) -> PartialKernel | None:
    if target.root in BITS:
        return _parsed(_INTEGER, target)
    match target:
        case t.FloatType() | t.DoubleType():
            return _parsed(_DOUBLE, target)
        case t.DateType():
            return _parsed(_DATE, target)
        case t.TimestampType() if target.precision % 3 == 0:
            fraction = rf"(?:\.\d{{1,{target.precision}}})?" if target.precision else ""
            return _parsed(f"{_TIMESTAMP}{fraction}$", target)
        case t.BooleanType():
            return _parse_boolean
    return None


def _parsed(pattern: str, target: LogicalType) -> PartialKernel:
    type_ = arrow_type(target)

    def parse(array: Any) -> Any | None:
        if pc.all(pc.match_substring_regex(array, pattern)).as_py() is False:
            return None
        try:
            return array.cast(type_)
        except pa.ArrowInvalid:
            return None

    return parse


def _parse_boolean(array: Any) -> Any | None:
    words = pc.utf8_lower(array)
    true = pc.is_in(words, value_set=pa.array(_TRUE, words.type))
    false = pc.is_in(words, value_set=pa.array(_FALSE, words.type))
    known = pc.or_(pc.or_(true, false), pc.is_null(array))
    return pc.if_else(pc.is_valid(array), true, None) if pc.all(known).as_py() is not False else None


def _to_text(source: LogicalType) -> PartialKernel | None:
    match source:
        case t.DateType():
            return lambda array: array.cast(pa.string()) if _in_years(array, pa.int32(), 1) else None
        case t.TimestampType() if source.precision in (0, 3, 6):
            per_day = _PER_DAY[arrow_type(source).unit]
            return lambda array: array.cast(pa.string()) if _in_years(array, pa.int64(), per_day) else None
    return None


def _in_years(array: Any, integers: Any, per_day: int) -> bool:
    extremes = pc.min_max(array.cast(integers)).as_py()
    low, high = extremes["min"], extremes["max"]
    return low is None or (low >= _FIRST_DAY * per_day and high < (_LAST_DAY + 1) * per_day)
