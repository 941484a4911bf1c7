"""Precision and scale of the results of arithmetic with decimals, as in Flink."""

from __future__ import annotations

from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, LogicalTypeRoot

__all__ = [
    "MAX_PRECISION",
    "addition",
    "as_decimal",
    "average",
    "common_decimal",
    "division",
    "modulo",
    "multiplication",
    "rounding",
    "total",
]

MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6
_INTEGER_DIGITS = {
    LogicalTypeRoot.TINYINT: 3,
    LogicalTypeRoot.SMALLINT: 5,
    LogicalTypeRoot.INTEGER: 10,
    LogicalTypeRoot.BIGINT: 19,
}


def as_decimal(type_: LogicalType) -> t.DecimalType | None:
    """An exact numeric type as a decimal; None for other types."""
    if isinstance(type_, t.DecimalType):
        return type_
    digits = _INTEGER_DIGITS.get(type_.root)
    return None if digits is None else t.DecimalType(digits, 0, nullable=type_.nullable)


def _parts(type_: t.DecimalType) -> tuple[int, int]:
    assert type_.precision is not None
    assert type_.scale is not None
    return type_.precision, type_.scale


def _adjusted(precision: int, scale: int) -> t.DecimalType:
    """Sacrifices digits after the point, though not the first six, if there are more than 38 in all."""
    if precision <= MAX_PRECISION:
        return t.DecimalType(precision, scale)
    before = precision - scale
    return t.DecimalType(MAX_PRECISION, max(MAX_PRECISION - before, min(scale, _MIN_ADJUSTED_SCALE)))


def addition(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    """The type of a sum or a difference.

    >>> addition(t.DecimalType(5, 2), t.DecimalType(10, 0))
    <DECIMAL(13, 2)>
    """
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(s1, s2)
    return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def multiplication(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    """The type of a product.

    >>> multiplication(t.DecimalType(3, 3), t.DecimalType(19, 0))
    <DECIMAL(23, 3)>
    """
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    return _adjusted(p1 + p2 + 1, s1 + s2)


def division(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    """The type of a quotient."""
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(6, s1 + p2 + 1)
    return _adjusted(p1 - s1 + s2 + scale, scale)


def modulo(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    """The type of a remainder."""
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(s1, s2)
    return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def rounding(type_: t.DecimalType, digits: int) -> t.DecimalType:
    """The type of a number rounded to so many digits after the point."""
    precision, scale = _parts(type_)
    if digits >= scale:
        return t.DecimalType(precision, scale)
    if digits < 0:
        return t.DecimalType(min(MAX_PRECISION, 1 + precision - scale), 0)
    return t.DecimalType(1 + precision - scale + digits, digits)


def common_decimal(types: list[t.DecimalType]) -> t.DecimalType:
    """The type that holds the values of all types, as far as 38 digits suffice."""
    scale = max(_parts(type_)[1] for type_ in types)
    before = max(precision - scale_ for precision, scale_ in map(_parts, types))
    return t.DecimalType(min(MAX_PRECISION, before + scale), min(scale, MAX_PRECISION))


def average(type_: LogicalType) -> LogicalType:
    """The type of AVG."""
    if not isinstance(type_, t.DecimalType):
        return type_
    scale = _parts(type_)[1]
    return division(t.DecimalType(MAX_PRECISION, scale), t.DecimalType(20, 0)).copy(type_.nullable)


def total(type_: LogicalType) -> LogicalType:
    """The type of SUM."""
    if not isinstance(type_, t.DecimalType):
        return type_
    return t.DecimalType(MAX_PRECISION, _parts(type_)[1], nullable=type_.nullable)
