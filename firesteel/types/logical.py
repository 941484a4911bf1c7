"""Logical types: what a value is, apart from how Python, Arrow, Spark, Avro, text or PostgreSQL represent it.

Roots, names, parameters and summary strings are those of Flink's ``LogicalType``. ``TypeInformation`` is a face of
these types; each module beside this one maps them to one representation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

__all__ = [
    "MAX_LENGTH",
    "ArrayType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DateType",
    "DayTimeIntervalType",
    "DayTimeResolution",
    "DecimalType",
    "DoubleType",
    "FieldsType",
    "FloatType",
    "IntType",
    "LocalZonedTimestampType",
    "LogicalType",
    "LogicalTypeRoot",
    "MapType",
    "MultisetType",
    "NullType",
    "RawType",
    "RowField",
    "RowType",
    "SmallIntType",
    "StructuredType",
    "TimeType",
    "TimestampKind",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
    "YearMonthResolution",
]

MAX_LENGTH = 2**31 - 1
"""The length of STRING and BYTES."""


class LogicalTypeRoot(Enum):
    """The kind of a type, without its parameters."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME_WITHOUT_TIME_ZONE = "TIME_WITHOUT_TIME_ZONE"
    TIMESTAMP_WITHOUT_TIME_ZONE = "TIMESTAMP_WITHOUT_TIME_ZONE"
    TIMESTAMP_WITH_LOCAL_TIME_ZONE = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
    INTERVAL_YEAR_MONTH = "INTERVAL_YEAR_MONTH"
    INTERVAL_DAY_TIME = "INTERVAL_DAY_TIME"
    ARRAY = "ARRAY"
    MULTISET = "MULTISET"
    MAP = "MAP"
    ROW = "ROW"
    STRUCTURED_TYPE = "STRUCTURED_TYPE"
    NULL = "NULL"
    RAW = "RAW"


class TimestampKind(Enum):
    """Whether a timestamp is a time attribute."""

    REGULAR = "REGULAR"
    ROWTIME = "ROWTIME"
    PROCTIME = "PROCTIME"


@dataclass(frozen=True)
class LogicalType:
    """A type; immutable, hashable and picklable. Types are equal if root, parameters and nullability are."""

    root: ClassVar[LogicalTypeRoot]

    nullable: bool = field(default=True, kw_only=True)
    declared_as: str | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The type in the words of the API in which a program declared it, for error messages."""

    def copy(self, nullable: bool = True) -> LogicalType:
        """The same type with another nullability."""
        return replace(self, nullable=nullable)

    def not_null(self) -> LogicalType:
        """The same type without null."""
        return self.copy(nullable=False)

    def children(self) -> tuple[LogicalType, ...]:
        """The types of which this type is made."""
        return ()

    def as_summary_string(self) -> str:
        """The type as Flink prints it: ``ROW<`name` STRING, `age` INT NOT NULL>``."""
        return self._with_nullability(self._summary())

    def _summary(self) -> str:
        return self.root.value

    def _with_nullability(self, text: str) -> str:
        return text if self.nullable else f"{text} NOT NULL"

    def __str__(self) -> str:
        return self.declared_as or self.as_summary_string()


def _check(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"The {name} of a type must be between {low} and {high}, got {value!r}.")


# -- strings -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LengthType(LogicalType):
    length: int = 1

    def __post_init__(self) -> None:
        _check("length", self.length, 0, MAX_LENGTH)

    def _summary(self) -> str:
        return f"{self.root.value}({self.length})"


@dataclass(frozen=True)
class CharType(_LengthType):
    """Strings of a fixed number of characters."""

    root = LogicalTypeRoot.CHAR


@dataclass(frozen=True)
class VarCharType(_LengthType):
    """Strings of at most a number of characters; of any length they are STRING."""

    root = LogicalTypeRoot.VARCHAR
    length: int = MAX_LENGTH

    def _summary(self) -> str:
        return "STRING" if self.length == MAX_LENGTH else super()._summary()


@dataclass(frozen=True)
class BinaryType(_LengthType):
    """A fixed number of bytes."""

    root = LogicalTypeRoot.BINARY


@dataclass(frozen=True)
class VarBinaryType(_LengthType):
    """At most a number of bytes; of any length they are BYTES."""

    root = LogicalTypeRoot.VARBINARY
    length: int = MAX_LENGTH

    def _summary(self) -> str:
        return "BYTES" if self.length == MAX_LENGTH else super()._summary()


# -- numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BooleanType(LogicalType):
    """True and false."""

    root = LogicalTypeRoot.BOOLEAN


@dataclass(frozen=True)
class TinyIntType(LogicalType):
    """Integers of 8 bits."""

    root = LogicalTypeRoot.TINYINT


@dataclass(frozen=True)
class SmallIntType(LogicalType):
    """Integers of 16 bits."""

    root = LogicalTypeRoot.SMALLINT


@dataclass(frozen=True)
class IntType(LogicalType):
    """Integers of 32 bits."""

    root = LogicalTypeRoot.INTEGER

    def _summary(self) -> str:
        return "INT"


@dataclass(frozen=True)
class BigIntType(LogicalType):
    """Integers of 64 bits."""

    root = LogicalTypeRoot.BIGINT


@dataclass(frozen=True)
class FloatType(LogicalType):
    """Floating-point numbers of 32 bits."""

    root = LogicalTypeRoot.FLOAT


@dataclass(frozen=True)
class DoubleType(LogicalType):
    """Floating-point numbers of 64 bits."""

    root = LogicalTypeRoot.DOUBLE


@dataclass(frozen=True)
class DecimalType(LogicalType):
    """Decimals of a precision and a scale.

    ``precision=None`` is any number of digits: Java's ``BigDecimal``, or with ``scale=0`` its ``BigInteger``. Flink has
    these as legacy types, and prints them so. SQL has at most 38 digits, columns of Arrow and Avro up to 76.
    """

    root = LogicalTypeRoot.DECIMAL
    precision: int | None = 10
    scale: int | None = 0

    def __post_init__(self) -> None:
        if self.precision is None:
            if self.scale not in (None, 0):
                raise ValueError(f"A decimal of any precision has the scale 0 or none, got {self.scale!r}.")
            return
        _check("precision", self.precision, 1, 76)
        _check("scale", self.scale, -76, self.precision)

    @property
    def is_integer(self) -> bool:
        """Whether its values are integers of any size."""
        return self.precision is None and self.scale == 0

    def _summary(self) -> str:
        if self.precision is None:
            return f"LEGACY('DECIMAL', '{'BigInteger' if self.is_integer else 'BigDecimal'}')"
        return f"DECIMAL({self.precision}, {self.scale})"


# -- dates and times ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DateType(LogicalType):
    """Dates."""

    root = LogicalTypeRoot.DATE


@dataclass(frozen=True)
class TimeType(LogicalType):
    """Times of day, to a number of digits of a second."""

    root = LogicalTypeRoot.TIME_WITHOUT_TIME_ZONE
    precision: int = 0

    def __post_init__(self) -> None:
        _check("precision", self.precision, 0, 9)

    def _summary(self) -> str:
        return f"TIME({self.precision})"


@dataclass(frozen=True)
class _TimestampType(LogicalType):
    keyword: ClassVar[str]

    precision: int = 6
    kind: TimestampKind = TimestampKind.REGULAR

    def __post_init__(self) -> None:
        _check("precision", self.precision, 0, 9)

    @property
    def is_time_attribute(self) -> bool:
        """Whether it is the row time or the processing time of a table."""
        return self.kind is not TimestampKind.REGULAR

    def as_summary_string(self) -> str:
        """The type as Flink prints it; a time attribute with its kind: ``TIMESTAMP(3) *ROWTIME*``."""
        text = super().as_summary_string()
        return f"{text} *{self.kind.value}*" if self.is_time_attribute else text

    def _summary(self) -> str:
        return f"{self.keyword}({self.precision})"


@dataclass(frozen=True)
class TimestampType(_TimestampType):
    """Dates with times of day, without a zone."""

    root = LogicalTypeRoot.TIMESTAMP_WITHOUT_TIME_ZONE
    keyword = "TIMESTAMP"


@dataclass(frozen=True)
class LocalZonedTimestampType(_TimestampType):
    """Points in time, which a session shows in its own zone."""

    root = LogicalTypeRoot.TIMESTAMP_WITH_LOCAL_TIME_ZONE
    keyword = "TIMESTAMP_LTZ"


class YearMonthResolution(Enum):
    """The fields of an interval of years and months."""

    YEAR = "YEAR({years})"
    MONTH = "MONTH"
    YEAR_TO_MONTH = "YEAR({years}) TO MONTH"


class DayTimeResolution(Enum):
    """The fields of an interval of days and times."""

    DAY = "DAY({days})"
    DAY_TO_HOUR = "DAY({days}) TO HOUR"
    DAY_TO_MINUTE = "DAY({days}) TO MINUTE"
    DAY_TO_SECOND = "DAY({days}) TO SECOND({fraction})"
    HOUR = "HOUR"
    HOUR_TO_MINUTE = "HOUR TO MINUTE"
    HOUR_TO_SECOND = "HOUR TO SECOND({fraction})"
    MINUTE = "MINUTE"
    MINUTE_TO_SECOND = "MINUTE TO SECOND({fraction})"
    SECOND = "SECOND({fraction})"


@dataclass(frozen=True)
class YearMonthIntervalType(LogicalType):
    """Amounts of years and months."""

    root = LogicalTypeRoot.INTERVAL_YEAR_MONTH
    resolution: YearMonthResolution = YearMonthResolution.YEAR_TO_MONTH
    year_precision: int = 2

    def __post_init__(self) -> None:
        _check("year precision", self.year_precision, 1, 4)

    def _summary(self) -> str:
        return f"INTERVAL {self.resolution.value.format(years=self.year_precision)}"


@dataclass(frozen=True)
class DayTimeIntervalType(LogicalType):
    """Amounts of days, hours, minutes and seconds."""

    root = LogicalTypeRoot.INTERVAL_DAY_TIME
    resolution: DayTimeResolution = DayTimeResolution.DAY_TO_SECOND
    day_precision: int = 2
    fractional_precision: int = 6

    def __post_init__(self) -> None:
        _check("day precision", self.day_precision, 1, 6)
        _check("fractional precision", self.fractional_precision, 0, 9)

    def _summary(self) -> str:
        fields = self.resolution.value.format(days=self.day_precision, fraction=self.fractional_precision)
        return f"INTERVAL {fields}"


# -- types made of types -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ElementsType(LogicalType):
    element_type: LogicalType

    def children(self) -> tuple[LogicalType, ...]:
        """The type of the elements."""
        return (self.element_type,)

    def _summary(self) -> str:
        return f"{self.root.value}<{self.element_type.as_summary_string()}>"


@dataclass(frozen=True)
class ArrayType(_ElementsType):
    """Lists of elements of one type."""

    root = LogicalTypeRoot.ARRAY


@dataclass(frozen=True)
class MultisetType(_ElementsType):
    """Bags of elements of one type: how often each occurs."""

    root = LogicalTypeRoot.MULTISET


@dataclass(frozen=True)
class MapType(LogicalType):
    """Maps with keys of one type and values of another."""

    root = LogicalTypeRoot.MAP
    key_type: LogicalType
    value_type: LogicalType

    def children(self) -> tuple[LogicalType, ...]:
        """The type of the keys and that of the values."""
        return (self.key_type, self.value_type)

    def _summary(self) -> str:
        return f"MAP<{self.key_type.as_summary_string()}, {self.value_type.as_summary_string()}>"


@dataclass(frozen=True)
class RowField:
    """A field of a row."""

    name: str
    type: LogicalType
    description: str | None = None

    def as_summary_string(self) -> str:
        """The field as Flink prints it: ```name` STRING 'description'``."""
        name, text = self.name.replace("`", "``"), self.type.as_summary_string()
        if self.description is None:
            return f"`{name}` {text}"
        description = self.description.replace("'", "''")
        return f"`{name}` {text} '{description}'"


@dataclass(frozen=True)
class FieldsType(LogicalType):
    """A type with fields."""

    fields: tuple[RowField, ...]

    def __post_init__(self) -> None:
        names = self.field_names
        if len(set(names)) != len(names):
            raise ValueError(f"Field names are not unique: {list(names)}")

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(part.name for part in self.fields)

    def children(self) -> tuple[LogicalType, ...]:
        """The types of the fields, in order."""
        return tuple(part.type for part in self.fields)

    def _fields_summary(self) -> str:
        return f"<{', '.join(part.as_summary_string() for part in self.fields)}>"


def _fields(names: Iterable[str], types: Iterable[LogicalType]) -> tuple[RowField, ...]:
    return tuple(RowField(name, type_) for name, type_ in zip(names, types, strict=True))


@dataclass(frozen=True)
class RowType(FieldsType):
    """Rows."""

    root = LogicalTypeRoot.ROW
    is_positional: bool = field(default=False, kw_only=True, compare=False, repr=False)
    """Whether the fields were declared without names, so that f0, f1, … stand for them."""

    @staticmethod
    def of(names: Iterable[str], types: Iterable[LogicalType], **options: Any) -> RowType:
        """Rows with fields of these names and types."""
        return RowType(_fields(names, types), **options)

    def _summary(self) -> str:
        return f"ROW{self._fields_summary()}"


@dataclass(frozen=True)
class StructuredType(FieldsType):
    """Objects of a class with fields; tuples are those of the class ``tuple``."""

    root = LogicalTypeRoot.STRUCTURED_TYPE
    class_name: str = "tuple"

    @staticmethod
    def of(types: Iterable[LogicalType], **options: Any) -> StructuredType:
        """Tuples with fields of these types: f0, f1, …"""
        parts = list(types)
        return StructuredType(_fields([f"f{index}" for index in range(len(parts))], parts), **options)

    def _summary(self) -> str:
        return f"*{self.class_name}*{self._fields_summary()}"


# -- the rest ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NullType(LogicalType):
    """Null only."""

    root = LogicalTypeRoot.NULL

    def __post_init__(self) -> None:
        if not self.nullable:
            raise ValueError("The type NULL has no value but null.")


@dataclass(frozen=True)
class RawType(LogicalType):
    """Values that only Python knows, kept pickled: of one class, or of ``object``, which is anything."""

    root = LogicalTypeRoot.RAW
    class_name: str = "object"

    def _summary(self) -> str:
        return f"RAW('{self.class_name}', '...')"
