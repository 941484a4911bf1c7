"""The root of all type information, and the types that have no parts."""

from __future__ import annotations

import calendar
import datetime as dt
import time
from enum import Enum
from typing import Any, ClassVar

import firesteel.types.logical as logical
from firesteel.common.time import Instant
from firesteel.types.python import expected, fits

__all__ = [
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "DecimalTypeInfo",
    "InstantTypeInfo",
    "LocalTimeTypeInfo",
    "PickledBytesTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TypeInformation",
    "mismatch",
]


def mismatch(type_info: TypeInformation, expected: str, value: Any) -> str:
    """The sentence that says what a type expects and what came instead."""
    text = repr(value)
    if len(text) > 80:
        text = f"{text[:80]}…"
    return f"{type_info} expects {expected}, got {type(value).__name__} {text}."


class TypeInformation:
    """Says of what type the records of a stream, or the values of a state, are.

    Types document a program and give clear errors; records of a stream without one may be anything.
    """

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the values; RAW for types that only the program knows."""
        return logical.RawType(str(self), declared_as=str(self))

    def need_conversion(self) -> bool:
        """Whether the internal form differs from the Python object."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """The internal form of a Python object."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The Python object of an internal form."""
        return obj

    def validate(self, value: Any) -> str | None:
        """A sentence if the value obviously does not fit this type, else None."""
        if value is None:
            return None if self._takes_none() else mismatch(self, self._expected(), value)
        return self._validate(value)

    def _takes_none(self) -> bool:
        return True

    def _expected(self) -> str:
        return "a value"

    def _validate(self, value: Any) -> str | None:
        return None


class BasicType(Enum):
    """The types of single values, with the names Flink prints."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_NULLABLE = frozenset({BasicType.STRING, BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.INSTANT})
_LOGICAL: dict[BasicType, logical.LogicalType] = {
    BasicType.STRING: logical.VarCharType(),
    BasicType.BYTE: logical.TinyIntType(),
    BasicType.BOOLEAN: logical.BooleanType(),
    BasicType.SHORT: logical.SmallIntType(),
    BasicType.INT: logical.IntType(),
    BasicType.LONG: logical.BigIntType(),
    BasicType.FLOAT: logical.FloatType(),
    BasicType.DOUBLE: logical.DoubleType(),
    BasicType.CHAR: logical.CharType(1),
    BasicType.BIG_INT: logical.DecimalType(None, 0),
    BasicType.BIG_DEC: logical.DecimalType(None, None),
    BasicType.INSTANT: logical.LocalZonedTimestampType(6),
}


class BasicTypeInfo(TypeInformation):
    """A number, a string, a boolean or an instant."""

    def __init__(self, basic_type: BasicType):
        self._basic_type = basic_type

    def _takes_none(self) -> bool:
        return self._basic_type in _NULLABLE

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the values."""
        return _LOGICAL[self._basic_type].named(str(self))

    def _expected(self) -> str:
        return expected(_LOGICAL[self._basic_type])

    def _validate(self, value: Any) -> str | None:
        return None if fits(_LOGICAL[self._basic_type], value) else mismatch(self, self._expected(), value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BasicTypeInfo) and self._basic_type is other._basic_type

    def __hash__(self) -> int:
        return hash(self._basic_type)

    def __repr__(self) -> str:
        return self._basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Strings."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Booleans."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Whole numbers of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Whole numbers of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Whole numbers of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Whole numbers of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Numbers with fractions, single precision."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Numbers with fractions, double precision."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Single characters."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Whole numbers of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Decimals of any precision."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo:  # noqa: N802 - Flink's name
        """Points in time."""
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo):
    """A point in time; internally microseconds since 1970."""

    def need_conversion(self) -> bool:
        """Always."""
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """Microseconds since 1970, to the millisecond."""
        return None if obj is None else obj.to_epoch_milli() * 1000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """The instant that many microseconds after 1970."""
        return None if obj is None else Instant.of_epoch_milli(obj // 1000)


class DecimalTypeInfo(BasicTypeInfo):
    """Decimals of a precision and scale that are known; equal to ``Types.BIG_DEC()``."""

    def __init__(self, precision: int, scale: int):
        super().__init__(BasicType.BIG_DEC)
        self.precision = precision
        self.scale = scale

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the values."""
        return logical.DecimalType(self.precision, self.scale, declared_as=str(self))


class _SingleTypeInfo(TypeInformation):
    """A type without parameters: equal to all others of its class."""

    _logical: ClassVar[logical.LogicalType]

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the values."""
        return self._logical.named(str(self))

    def _validate(self, value: Any) -> str | None:
        return None if fits(self._logical, value) else mismatch(self, expected(self._logical), value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return type(self).__name__


class PickledBytesTypeInfo(_SingleTypeInfo):
    """Anything that can be pickled."""

    _logical = logical.RawType()

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class SqlTimeTypeInfo(TypeInformation):
    """Dates, times and timestamps."""

    @staticmethod
    def DATE() -> DateTypeInfo:  # noqa: N802 - Flink's name
        """Dates."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:  # noqa: N802 - Flink's name
        """Times of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:  # noqa: N802 - Flink's name
        """Dates with times of day."""
        return TimestampTypeInfo()


class DateTypeInfo(_SingleTypeInfo):
    """A ``datetime.date``; internally days since 1970."""

    _logical = logical.DateType()

    EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()

    def need_conversion(self) -> bool:
        """Always."""
        return True

    def to_internal_type(self, obj: dt.date | None) -> int | None:
        """Days since 1970."""
        return None if obj is None else obj.toordinal() - self.EPOCH_ORDINAL

    def from_internal_type(self, obj: int | None) -> dt.date | None:
        """The date that many days after 1970-01-01."""
        return None if obj is None else dt.date.fromordinal(obj + self.EPOCH_ORDINAL)


class TimeTypeInfo(_SingleTypeInfo):
    """A ``datetime.time``; internally microseconds of the day in UTC."""

    _logical = logical.TimeType(6)

    EPOCH_ORDINAL = calendar.timegm(time.localtime(0)) * 10**6
    """The local time zone's offset in 1970, in microseconds: what a time without a zone is ahead of UTC."""

    def need_conversion(self) -> bool:
        """Always."""
        return True

    def to_internal_type(self, obj: dt.time | None) -> int | None:
        """Microseconds since midnight."""
        if obj is None:
            return None
        if obj.tzinfo is None:
            offset = self.EPOCH_ORDINAL
        else:
            offset = (obj.utcoffset() or dt.timedelta()) // dt.timedelta(microseconds=1)
        seconds = (obj.hour * 60 + obj.minute) * 60 + obj.second
        return seconds * 10**6 + obj.microsecond - offset

    def from_internal_type(self, obj: int | None) -> dt.time | None:
        """The local time that many microseconds after midnight."""
        if obj is None:
            return None
        seconds, microseconds = divmod(obj + self.EPOCH_ORDINAL, 10**6)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return dt.time(hours, minutes, seconds, microseconds)


class TimestampTypeInfo(_SingleTypeInfo):
    """A ``datetime.datetime``; internally microseconds since 1970 in UTC, without a zone taken as local."""

    _logical = logical.TimestampType(6)

    def need_conversion(self) -> bool:
        """Always."""
        return True

    def to_internal_type(self, obj: dt.datetime | None) -> int | None:
        """Microseconds since 1970."""
        if obj is None:
            return None
        seconds = calendar.timegm(obj.utctimetuple()) if obj.tzinfo else time.mktime(obj.timetuple())
        return int(seconds) * 10**6 + obj.microsecond

    def from_internal_type(self, obj: int | None) -> dt.datetime | None:
        """The local date and time that many microseconds after 1970."""
        if obj is None:
            return None
        seconds, microseconds = divmod(obj, 10**6)
        local = dt.datetime.fromtimestamp(seconds)  # noqa: DTZ006 - local time is meant
        return local.replace(microsecond=microseconds)


class LocalTimeTypeInfo(TypeInformation):
    """A date, a time or both, without a zone."""

    class TimeType(Enum):
        """Which of the three."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType):
        self._time_type = time_type

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the values."""
        return _LOCAL_TIMES[self._time_type.name].named(str(self))

    def _validate(self, value: Any) -> str | None:
        found = _LOCAL_TIMES[self._time_type.name]
        return None if fits(found, value) else mismatch(self, expected(found), value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalTimeTypeInfo) and self._time_type is other._time_type

    def __hash__(self) -> int:
        return hash(self._time_type)

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"


_LOCAL_TIMES: dict[str, logical.LogicalType] = {
    "LOCAL_DATE": logical.DateType(),
    "LOCAL_TIME": logical.TimeType(6),
    "LOCAL_DATE_TIME": logical.TimestampType(6),
}
