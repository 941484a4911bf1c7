"""CAST of a column, by kernels of Arrow and numpy that cannot fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.inference import families
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type
from firesteel.types.logical import MAX_LENGTH, LogicalType
from firesteel.types.python import BITS

__all__ = ["cast_vector"]

Kernel = Callable[[Any], Any]
_UNITS = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
_LONG_DIGITS = 18
_EXACT_DOUBLE_DIGITS = 15
_PLAIN_SCALE = 6
"""The largest scale with which Arrow prints decimals without an exponent."""


def cast_vector(source: LogicalType, target: LogicalType) -> Kernel | None:
    """What casts an array; None if there is no kernel with the same results as the row body."""
    if source.copy() == target.copy():
        return lambda array: array
    if families.is_null(source):
        type_ = arrow_type(target)
        return lambda array: pa.nulls(len(array), type_)
    if source.root in BITS:
        return _from_integer(source, target)
    match source:
        case t.CharType() | t.VarCharType() if isinstance(target, t.VarCharType):
            return _to_varchar(source, target)
        case t.FloatType() | t.DoubleType():
            return _from_float(target)
        case t.DecimalType():
            return _from_decimal(source, target)
        case t.BooleanType():
            return _from_boolean(target)
        case t.DateType() if isinstance(target, t.TimestampType):
            return _within_range(target)
        case t.TimestampType() if isinstance(target, t.DateType):
            return _to_date
    if type(source) is type(target) and families.is_timestamp(source):
        return _timestamp(source, target)
    return None


# -- numbers -----------------------------------------------------------------------------------------------


def _from_integer(source: LogicalType, target: LogicalType) -> Kernel | None:
    type_ = arrow_type(target)
    if target.root in BITS or families.is_approximate(target):
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


def _from_float(target: LogicalType) -> Kernel | None:
    if families.is_approximate(target):
        type_ = arrow_type(target)
        return lambda array: pc.cast(array, type_, safe=False)
    if isinstance(target, t.BooleanType):
        return lambda array: pc.not_equal(array, 0)
    if target.root in BITS:
        bits = BITS[target.root]
        return lambda array: _truncate(array, bits)
    return None


def _truncate(array: Any, bits: int) -> Any:
    """Java's cast: the nearest integer that fits; a byte or a short keeps the lowest bits of an int."""
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    wide = np.int64 if bits == 64 else np.int32
    info = np.iinfo(wide)
    with np.errstate(invalid="ignore"):
        whole = values.astype(wide)
    whole[np.isnan(values)] = 0
    whole[values >= float(info.max)] = info.max
    whole[values <= float(info.min)] = info.min
    return pa.array(whole.astype(f"int{bits}"), mask=_nulls(array))


def _nulls(array: Any) -> Any:
    return None if not array.null_count else array.is_null().to_numpy(zero_copy_only=False)


def _from_decimal(source: t.DecimalType, target: LogicalType) -> Kernel | None:
    assert source.precision is not None
    assert source.scale is not None
    precision, scale = source.precision, source.scale
    type_ = arrow_type(target)
    if isinstance(target, t.DecimalType):
        return _rescale(precision, scale, target)
    if isinstance(target, t.BooleanType):
        return lambda array: pc.not_equal(array, 0)
    if target.root in BITS and precision - scale <= _LONG_DIGITS:
        return lambda array: array.cast(pa.int64(), safe=False).cast(type_, safe=False)
    if isinstance(target, t.DoubleType) and precision <= _EXACT_DOUBLE_DIGITS:
        return lambda array: _to_double(array, scale)
    if isinstance(target, t.VarCharType) and target.length == MAX_LENGTH and scale <= _PLAIN_SCALE:
        return lambda array: array.cast(type_)
    return None


def _rescale(precision: int, scale: int, target: t.DecimalType) -> Kernel | None:
    assert target.precision is not None
    assert target.scale is not None
    type_, digits = arrow_type(target), target.scale
    before, room = precision - scale, target.precision - digits
    if digits >= scale:
        return (lambda array: array.cast(type_)) if before <= room else None
    if before >= room or precision >= pa.decimal128(38, 0).precision:
        return None  # the rounded number may have another digit
    wider = pa.decimal128(precision + 1, scale)
    return lambda array: pc.round(array.cast(wider), digits, round_mode="half_towards_infinity").cast(type_)


def _to_double(array: Any, scale: int) -> Any:
    """A quotient of two numbers that doubles hold exactly is the double next to the decimal."""
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    digits = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return pa.array(digits / 10.0**scale, mask=_nulls(array))


def _from_boolean(target: LogicalType) -> Kernel | None:
    type_ = arrow_type(target)
    if target.root in BITS or families.is_approximate(target):
        return lambda array: array.cast(pa.int8()).cast(type_)
    if isinstance(target, t.VarCharType) and target.length == MAX_LENGTH:
        return lambda array: pc.if_else(array, "TRUE", "FALSE")
    return None


def _to_varchar(source: LogicalType, target: t.VarCharType) -> Kernel:
    length = target.length
    if source.length <= length:  # type: ignore[attr-defined]
        return lambda array: array
    return lambda array: pc.utf8_slice_codeunits(array, 0, length)


# -- times -------------------------------------------------------------------------------------------------


def _within_range(target: LogicalType) -> Kernel:
    """A cast to a finer unit; a column of nanoseconds holds the years 1677 to 2262."""
    type_ = arrow_type(target)

    def cast(array: Any) -> Any:
        try:
            return array.cast(type_)
        except pa.ArrowInvalid as error:
            raise EvaluationError.of_column(target, error) from error

    return cast


def _timestamp(source: LogicalType, target: LogicalType) -> Kernel | None:
    before: int = source.precision  # type: ignore[attr-defined]
    after: int = target.precision  # type: ignore[attr-defined]
    type_ = arrow_type(target)
    if after % 3:
        return None
    if after >= before:
        return _within_range(target)
    if after > 3:
        return None

    def cut(array: Any) -> Any:
        """Digits of no more than milliseconds are cut towards 1970."""
        millis = _floor(array, _UNITS[array.type.unit] // _UNITS["ms"] if _UNITS[array.type.unit] > 1000 else 1)
        whole = _toward_zero(millis, 10 ** (3 - after))
        return pa.array(whole, mask=_nulls(array)).cast(type_)

    return cut


def _to_date(array: Any) -> Any:
    """Days before 1970 are counted towards 1970, as in Flink."""
    unit = _UNITS[array.type.unit]
    millis = _floor(array, unit // 1000) if unit > 1000 else _floor(array, 1) * (1000 // unit)
    days = _toward_zero(millis, _DAY * 1000).astype(np.int32)
    return pa.array(days, mask=_nulls(array)).cast(pa.date32())


def _floor(array: Any, divisor: int) -> Any:
    values = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return values if divisor == 1 else values // divisor


def _toward_zero(values: Any, divisor: int) -> Any:
    whole = values // divisor
    return whole + ((values < 0) & (whole * divisor != values)) if divisor > 1 else values
