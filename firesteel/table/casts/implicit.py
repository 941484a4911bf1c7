"""Which types are cast to those of a table without being asked for."""

from __future__ import annotations

from firesteel.types.logical import LogicalType, LogicalTypeRoot

__all__ = ["supports_implicit_cast"]

_R = LogicalTypeRoot
_INTEGERS = (_R.TINYINT, _R.SMALLINT, _R.INTEGER, _R.BIGINT)
_NUMBERS = (*_INTEGERS, _R.DECIMAL, _R.FLOAT, _R.DOUBLE)
_INTERVALS = (_R.INTERVAL_YEAR_MONTH, _R.INTERVAL_DAY_TIME)
_FROM: dict[LogicalTypeRoot, tuple[LogicalTypeRoot, ...]] = {
    _R.VARCHAR: (_R.CHAR, _R.VARCHAR),
    _R.VARBINARY: (_R.BINARY, _R.VARBINARY),
    _R.DECIMAL: (*_NUMBERS, *_INTERVALS),
    _R.TINYINT: (_R.TINYINT, *_INTERVALS),
    _R.SMALLINT: (*_INTEGERS[:2], *_INTERVALS),
    _R.INTEGER: (*_INTEGERS[:3], *_INTERVALS),
    _R.BIGINT: (*_INTEGERS, *_INTERVALS),
    _R.FLOAT: (*_INTEGERS, _R.DECIMAL, _R.FLOAT),
    _R.DOUBLE: _NUMBERS,
    _R.DATE: (_R.DATE, _R.TIMESTAMP_WITHOUT_TIME_ZONE),
    _R.TIME_WITHOUT_TIME_ZONE: (_R.TIME_WITHOUT_TIME_ZONE, _R.TIMESTAMP_WITHOUT_TIME_ZONE),
    _R.TIMESTAMP_WITHOUT_TIME_ZONE: (_R.TIMESTAMP_WITHOUT_TIME_ZONE, _R.TIMESTAMP_WITH_LOCAL_TIME_ZONE),
    _R.TIMESTAMP_WITH_LOCAL_TIME_ZONE: (_R.TIMESTAMP_WITH_LOCAL_TIME_ZONE, _R.TIMESTAMP_WITHOUT_TIME_ZONE),
}


def supports_implicit_cast(source: LogicalType, target: LogicalType) -> bool:
    """Whether a query with one type can be written to a column of the other; nullability aside.

    >>> from firesteel.types.logical import BigIntType, IntType, VarCharType
    >>> supports_implicit_cast(IntType(), BigIntType()), supports_implicit_cast(IntType(), VarCharType())
    (True, False)
    """
    if source.root is _R.NULL or source.copy() == target.copy():
        return True
    parts = source.children(), target.children()
    if parts[0] or parts[1]:
        return (
            source.root is target.root
            and len(parts[0]) == len(parts[1])
            and all(supports_implicit_cast(one, other) for one, other in zip(*parts, strict=True))
        )
    return source.root in _FROM.get(target.root, (target.root,))
