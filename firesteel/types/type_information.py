"""The root of all type information, and the types that have no parts."""

from __future__ import annotations

import calendar
import datetime as dt
import time
from decimal import Decimal
from enum import Enum
from typing import Any

from firesteel.common.time import Instant

__all__ = [
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
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


_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_NULLABLE = frozenset({BasicType.STRING, BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.INSTANT})
_EXPECTED = {
    BasicType.STRING: "a str",
    BasicType.BOOLEAN: "a bool",
    BasicType.FLOAT: "a number",
    BasicType.DOUBLE: "a number",
    BasicType.CHAR: "a str of one character",
    BasicType.BIG_INT: "an int",
    BasicType.BIG_DEC: "a Decimal",
    BasicType.INSTANT: "an Instant",
}


class BasicTypeInfo(TypeInformation):
    """A number, a string, a boolean or an instant."""

    def __init__(self, basic_type: BasicType):
        self._basic_type = basic_type

    def _takes_none(self) -> bool:
        return self._basic_type in _NULLABLE

    def _expected(self) -> str:
        bits = _BITS.get(self._basic_type)
        if bits is None:
            return _EXPECTED[self._basic_type]
        return f"an int from {-(1 << (bits - 1))} to {(1 << (bits - 1)) - 1}"

    def _validate(self, value: Any) -> str | None:
        return None if self._fits(value) else mismatch(self, self._expected(), value)

    def _fits(self, value: Any) -> bool:
        basic_type = self._basic_type
        if basic_type in _BITS:
            # __index__: numpy's integers are no int
            return hasattr(value, "__index__") and -1 <= value.__index__() >> (_BITS[basic_type] - 1) <= 0
        if basic_type is BasicType.STRING:
            return isinstance(value, str)
        if basic_type is BasicType.CHAR:
            return isinstance(value, str) and len(value) == 1
        if basic_type is BasicType.BOOLEAN:
            return type(value).__name__ in ("bool", "bool_")
        if basic_type is BasicType.BIG_INT:
            return hasattr(value, "__index__")
        if basic_type is BasicType.BIG_DEC:
            return isinstance(value, (Decimal, int))
        if basic_type is BasicType.INSTANT:
            return isinstance(value, Instant)
        return hasattr(value, "__float__") or hasattr(value, "__index__")

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


class PickledBytesTypeInfo(TypeInformation):
    """Anything that can be pickled."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PickledBytesTypeInfo)

    def __hash__(self) -> int:
        return hash(PickledBytesTypeInfo)

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


class DateTypeInfo(TypeInformation):
    """A ``datetime.date``; internally days since 1970."""

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

    def _validate(self, value: Any) -> str | None:
        return None if isinstance(value, dt.date) else mismatch(self, "a datetime.date", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DateTypeInfo)

    def __hash__(self) -> int:
        return hash(DateTypeInfo)

    def __repr__(self) -> str:
        return "DateTypeInfo"


class TimeTypeInfo(TypeInformation):
    """A ``datetime.time``; internally microseconds of the day in UTC."""

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

    def _validate(self, value: Any) -> str | None:
        return None if isinstance(value, dt.time) else mismatch(self, "a datetime.time", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeTypeInfo)

    def __hash__(self) -> int:
        return hash(TimeTypeInfo)

    def __repr__(self) -> str:
        return "TimeTypeInfo"


class TimestampTypeInfo(TypeInformation):
    """A ``datetime.datetime``; internally microseconds since 1970 in UTC, without a zone taken as local."""

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

    def _validate(self, value: Any) -> str | None:
        fits = isinstance(value, dt.datetime)
        return None if fits else mismatch(self, "a datetime.datetime", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimestampTypeInfo)

    def __hash__(self) -> int:
        return hash(TimestampTypeInfo)

    def __repr__(self) -> str:
        return "TimestampTypeInfo"


class LocalTimeTypeInfo(TypeInformation):
    """A date, a time or both, without a zone."""

    class TimeType(Enum):
        """Which of the three."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType):
        self._time_type = time_type

    def _validate(self, value: Any) -> str | None:
        expected = {
            LocalTimeTypeInfo.TimeType.LOCAL_DATE: dt.date,
            LocalTimeTypeInfo.TimeType.LOCAL_TIME: dt.time,
            LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: dt.datetime,
        }[self._time_type]
        fits = isinstance(value, expected)
        return None if fits else mismatch(self, f"a datetime.{expected.__name__}", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalTimeTypeInfo) and self._time_type is other._time_type

    def __hash__(self) -> int:
        return hash(self._time_type)

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"
