"""The type to which values of several types are cast when they meet: in CASE, IN, comparisons and arrays."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.inference import decimals
from firesteel.table.inference.families import (
    is_approximate,
    is_binary,
    is_character,
    is_exact,
    is_integer,
    is_null,
    is_numeric,
    is_timestamp,
    rank,
)
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["common_numeric", "common_type"]


def common_type(types: Sequence[LogicalType]) -> LogicalType | None:
    """The least type that holds the values of all types; None if there is none.

    >>> common_type([t.IntType(nullable=False), t.DecimalType(3, 2)])
    <DECIMAL(12, 2)>
    >>> common_type([t.CharType(1), t.CharType(3)])
    <VARCHAR(3)>
    """
    nullable = any(type_.nullable for type_ in types)
    known = [type_.copy() for type_ in types if not is_null(type_)]
    if not known:
        return types[0] if types else None
    found = known[0] if all(type_ == known[0] for type_ in known) else _common(known)
    return None if found is None else found.copy(nullable)


def _common(types: list[LogicalType]) -> LogicalType | None:
    if all(map(is_numeric, types)):
        return common_numeric(types)
    if all(map(is_character, types)):
        return _common_string(types, t.CharType, t.VarCharType)
    if all(map(is_binary, types)):
        return _common_string(types, t.BinaryType, t.VarBinaryType)
    roots = {type_.root for type_ in types}
    if len(roots) == 1:
        return _same_root(types)
    return _common_timestamp(types)


def common_numeric(types: Sequence[LogicalType]) -> LogicalType:
    """The least numeric type that holds the values of numeric types."""
    if all(map(is_integer, types)):
        return max(types, key=rank).copy()
    if all(map(is_exact, types)):
        return decimals.common_decimal([decimals.as_decimal(type_) for type_ in types])  # type: ignore[misc]
    if any(isinstance(type_, t.DecimalType) for type_ in types):
        return t.DoubleType()
    # FLOAT with DOUBLE is FLOAT: the first approximate type decides, as in Calcite
    return next(type_ for type_ in types if is_approximate(type_)).copy()


def _common_string(types: list[LogicalType], fixed: type, varying: type) -> LogicalType:
    lengths = {type_.length for type_ in types}  # type: ignore[attr-defined]
    if len(lengths) == 1 and all(isinstance(type_, fixed) for type_ in types):
        return types[0]
    made: LogicalType = varying(max(lengths))
    return made


def _same_root(types: list[LogicalType]) -> LogicalType | None:
    first = types[0]
    if isinstance(first, (t.TimestampType, t.LocalZonedTimestampType, t.TimeType)):
        return type(first)(max(type_.precision for type_ in types))  # type: ignore[attr-defined]
    if isinstance(first, t.DayTimeIntervalType):
        return t.DayTimeIntervalType(
            t.DayTimeResolution.DAY_TO_SECOND,
            max(type_.day_precision for type_ in types),  # type: ignore[attr-defined]
            max(type_.fractional_precision for type_ in types),  # type: ignore[attr-defined]
        )
    if isinstance(first, t.YearMonthIntervalType):
        return t.YearMonthIntervalType(
            t.YearMonthResolution.YEAR_TO_MONTH,
            max(type_.year_precision for type_ in types),  # type: ignore[attr-defined]
        )
    children = [type_.children() for type_ in types]
    if not first.children() or len({len(parts) for parts in children}) > 1:
        return None
    parts = [common_type(same) for same in zip(*children, strict=True)]
    if any(part is None for part in parts):
        return None
    if isinstance(first, t.RowType):
        return t.RowType.of(first.field_names, parts)  # type: ignore[arg-type]
    made: LogicalType = type(first)(*parts)
    return made


def _common_timestamp(types: list[LogicalType]) -> LogicalType | None:
    """A timestamp without a zone and one with it meet as one with it; a date meets neither."""
    if not all(map(is_timestamp, types)):
        return None
    precision = max((type_.precision for type_ in types if is_timestamp(type_)), default=0)  # type: ignore[attr-defined]
    if any(isinstance(type_, t.LocalZonedTimestampType) for type_ in types):
        return t.LocalZonedTimestampType(precision)
    return t.TimestampType(precision)
