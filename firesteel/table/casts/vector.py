"""CAST of a column."""

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

__all__ = ["cast_vector"]

Kernel = Callable[[Any], Any]


def cast_vector(source: LogicalType, target: LogicalType) -> Kernel | None:
    """What casts an array and cannot fail; None if only the row body does."""
    if source.copy() == target.copy():
        return lambda array: array
    if families.is_null(source):
        type_ = arrow_type(target)
        return lambda array: pa.nulls(len(array), type_)
    if source.root in BITS:
        return _from_integer(source, target)
    if families.is_character(source) and isinstance(target, t.VarCharType):
        return _to_varchar(source, target)
    if isinstance(source, t.FloatType) and isinstance(target, t.DoubleType):
        return lambda array: array.cast(pa.float64())
    if isinstance(source, t.DoubleType) and isinstance(target, t.FloatType):
        return lambda array: pc.cast(array, pa.float32(), safe=False)
    if isinstance(source, t.DateType) and isinstance(target, t.TimestampType):
        type_ = arrow_type(target)
        return lambda array: array.cast(type_)
    if type(source) is type(target) and families.is_timestamp(source):
        return _timestamp(source, target)
    return None


def _from_integer(source: LogicalType, target: LogicalType) -> Kernel | None:
    type_ = arrow_type(target)
    if target.root in BITS:
        return lambda array: array.cast(type_, safe=False)
    if isinstance(target, t.DoubleType):
        return lambda array: array.cast(type_, safe=False)
    if isinstance(target, t.BooleanType):
        return lambda array: pc.not_equal(array, 0)
    if isinstance(target, t.VarCharType) and target.length == MAX_LENGTH:
        return lambda array: array.cast(type_)
    if isinstance(target, t.DecimalType):
        digits = len(str(1 << (BITS[source.root] - 1)))
        assert target.precision is not None
        assert target.scale is not None
        if target.precision - target.scale >= digits:
            return lambda array: array.cast(type_)
    return None


def _to_varchar(source: LogicalType, target: t.VarCharType) -> Kernel:
    length = target.length
    if source.length <= length:  # type: ignore[attr-defined]
        return lambda array: array
    return lambda array: pc.utf8_slice_codeunits(array, 0, length)


def _timestamp(source: LogicalType, target: LogicalType) -> Kernel | None:
    before: int = source.precision  # type: ignore[attr-defined]
    after: int = target.precision  # type: ignore[attr-defined]
    if after % 3 or after < before:
        return None
    type_ = arrow_type(target)
    return lambda array: array.cast(type_)
