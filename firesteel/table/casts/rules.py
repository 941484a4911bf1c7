"""Which types can be cast to which."""

from __future__ import annotations

from firesteel.table.inference import families
from firesteel.types import logical as t
from firesteel.types.logical import FieldsType, LogicalType, LogicalTypeRoot

__all__ = ["supports_cast"]

_Root = LogicalTypeRoot
_SINGLE_FIELDS = {
    t.YearMonthResolution.YEAR,
    t.YearMonthResolution.MONTH,
    t.DayTimeResolution.DAY,
    t.DayTimeResolution.HOUR,
    t.DayTimeResolution.MINUTE,
    t.DayTimeResolution.SECOND,
}


def supports_cast(source: LogicalType, target: LogicalType, is_nested: bool = False) -> bool:
    """Whether CAST takes values of one type to the other; nullability aside.

    A VARIANT is cast only within other types, to text. A BITMAP is cast to text and to BYTES.
    """
    if families.is_null(source):
        return True
    if families.is_variant(source) or families.is_variant(target):
        return is_nested and (source.root is target.root or families.is_character(target))
    if source.copy() == target.copy():
        return True
    if families.is_bitmap(target):
        return False
    if families.is_character(target):
        return True
    if families.is_bitmap(source):
        return isinstance(target, t.VarBinaryType) and target.length == t.MAX_LENGTH
    if families.is_constructed(source) or families.is_constructed(target):
        return _supports_constructed(source, target)
    if families.is_interval(source) or families.is_interval(target):
        return _supports_interval(source, target)
    if families.is_character(source):
        return target.root not in (_Root.RAW, _Root.STRUCTURED_TYPE, _Root.NULL)
    if families.is_binary(source):
        return families.is_binary(target)
    if families.is_boolean(source):
        return families.is_numeric(target)
    if families.is_numeric(source):
        return _supports_number(target)
    return _supports_datetime(source, target)


def _supports_constructed(source: LogicalType, target: LogicalType) -> bool:
    parts = source.children(), target.children()
    have_fields = isinstance(source, FieldsType) and isinstance(target, FieldsType)
    if (source.root is not target.root and not have_fields) or len(parts[0]) != len(parts[1]):
        return False
    return all(supports_cast(one, other, is_nested=True) for one, other in zip(*parts, strict=True))


def _supports_interval(source: LogicalType, target: LogicalType) -> bool:
    if source.root is target.root:
        return True
    return families.is_integer(source) and target.resolution in _SINGLE_FIELDS  # type: ignore[attr-defined]


def _supports_number(target: LogicalType) -> bool:
    return families.is_numeric(target) or families.is_boolean(target)


_DATETIMES: dict[LogicalTypeRoot, tuple[LogicalTypeRoot, ...]] = {
    _Root.DATE: (_Root.DATE, _Root.TIMESTAMP_WITHOUT_TIME_ZONE, _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE),
    _Root.TIME_WITHOUT_TIME_ZONE: (
        _Root.TIME_WITHOUT_TIME_ZONE,
        _Root.TIMESTAMP_WITHOUT_TIME_ZONE,
        _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE,
    ),
}
_ALL_DATETIMES = (
    _Root.DATE,
    _Root.TIME_WITHOUT_TIME_ZONE,
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE,
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE,
)


def _supports_datetime(source: LogicalType, target: LogicalType) -> bool:
    return families.is_datetime(source) and target.root in _DATETIMES.get(source.root, _ALL_DATETIMES)
