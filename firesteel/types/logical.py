"""Logical types: what a value is, apart from how Python, Arrow, Spark, Avro, text or PostgreSQL represent it.

Roots, names, parameters and summary strings are those of Flink's ``LogicalType``. ``TypeInformation`` is a face of
these types; each module beside this one maps them to one representation.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from firesteel.types.logical_type import LogicalType, LogicalTypeRoot

__all__ = [
    "MAX_LENGTH",
    "ArrayType",
    "BigIntType",
    "BinaryType",
    "BitmapType",
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
    "VariantType",
    "YearMonthIntervalType",
    "YearMonthResolution",
]

MAX_LENGTH = 2**31 - 1
"""The length of STRING and BYTES."""


class TimestampKind(Enum):
    """Whether a timestamp is a time attribute."""

    REGULAR = "REGULAR"
    ROWTIME = "ROWTIME"
    PROCTIME = "PROCTIME"


def _check(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"The {name} of a type must be between {low} and {high}, got {value!r}.")


# -- strings -----------------------------------------------------------------------------------------------


class _LengthType(LogicalType):
    parameters = ("length",)
    length: int
    usual_length: ClassVar[int] = 1

    def __init__(self, length: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._set(length=self.usual_length if length is None else length)
        _check("length", self.length, 0, MAX_LENGTH)

    def _summary(self) -> str:
        return f"{self.root.value}({self.length})"


class CharType(_LengthType):
    """Strings of a fixed number of characters."""

    root = LogicalTypeRoot.CHAR


class VarCharType(_LengthType):
    """Strings of at most a number of characters; of any length they are STRING."""

    root = LogicalTypeRoot.VARCHAR
    usual_length = MAX_LENGTH

    def _summary(self) -> str:
        return "STRING" if self.length == MAX_LENGTH else super()._summary()


class BinaryType(_LengthType):
    """A fixed number of bytes."""

    root = LogicalTypeRoot.BINARY


class VarBinaryType(_LengthType):
    """At most a number of bytes; of any length they are BYTES."""

    root = LogicalTypeRoot.VARBINARY
    usual_length = MAX_LENGTH

    def _summary(self) -> str:
        return "BYTES" if self.length == MAX_LENGTH else super()._summary()


# -- numbers -----------------------------------------------------------------------------------------------


class BooleanType(LogicalType):
    """True and false."""

    root = LogicalTypeRoot.BOOLEAN


class TinyIntType(LogicalType):
    """Integers of 8 bits."""

    root = LogicalTypeRoot.TINYINT


class SmallIntType(LogicalType):
    """Integers of 16 bits."""

    root = LogicalTypeRoot.SMALLINT


class IntType(LogicalType):
    """Integers of 32 bits."""

    root = LogicalTypeRoot.INTEGER

    def _summary(self) -> str:
        return "INT"


class BigIntType(LogicalType):
    """Integers of 64 bits."""

    root = LogicalTypeRoot.BIGINT


class FloatType(LogicalType):
    """Floating-point numbers of 32 bits."""

    root = LogicalTypeRoot.FLOAT


class DoubleType(LogicalType):
    """Floating-point numbers of 64 bits."""

    root = LogicalTypeRoot.DOUBLE


class DecimalType(LogicalType):
    """Decimals of a precision and a scale.

    ``precision=None`` is any number of digits: Java's ``BigDecimal``, or with ``scale=0`` its ``BigInteger``. Flink has
    these as legacy types, and prints them so. SQL has at most 38 digits, columns of Arrow and Avro up to 76.
    """

    root = LogicalTypeRoot.DECIMAL
    parameters = ("precision", "scale")
    precision: int | None
    scale: int | None

    def __init__(self, precision: int | None = 10, scale: int | None = 0, **options: Any) -> None:
        super().__init__(**options)
        self._set(precision=precision, scale=scale)
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


class DateType(LogicalType):
    """Dates."""

    root = LogicalTypeRoot.DATE


class TimeType(LogicalType):
    """Times of day, to a number of digits of a second."""

    root = LogicalTypeRoot.TIME_WITHOUT_TIME_ZONE
    parameters = ("precision",)
    precision: int

    def __init__(self, precision: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._set(precision=precision)
        _check("precision", precision, 0, 9)

    def _summary(self) -> str:
        return f"TIME({self.precision})"


class _TimestampType(LogicalType):
    parameters = ("precision", "kind")
    keyword: ClassVar[str]
    precision: int
    kind: TimestampKind

    def __init__(self, precision: int = 6, kind: TimestampKind = TimestampKind.REGULAR, **options: Any) -> None:
        super().__init__(**options)
        self._set(precision=precision, kind=kind)
        _check("precision", precision, 0, 9)

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


class TimestampType(_TimestampType):
    """Dates with times of day, without a zone."""

    root = LogicalTypeRoot.TIMESTAMP_WITHOUT_TIME_ZONE
    keyword = "TIMESTAMP"


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


class YearMonthIntervalType(LogicalType):
    """Amounts of years and months."""

    root = LogicalTypeRoot.INTERVAL_YEAR_MONTH
    parameters = ("resolution", "year_precision")
    resolution: YearMonthResolution
    year_precision: int

    def __init__(
        self,
        resolution: YearMonthResolution = YearMonthResolution.YEAR_TO_MONTH,
        year_precision: int = 2,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._set(resolution=resolution, year_precision=year_precision)
        _check("year precision", year_precision, 1, 4)

    def _summary(self) -> str:
        return f"INTERVAL {self.resolution.value.format(years=self.year_precision)}"


class DayTimeIntervalType(LogicalType):
    """Amounts of days, hours, minutes and seconds."""

    root = LogicalTypeRoot.INTERVAL_DAY_TIME
    parameters = ("resolution", "day_precision", "fractional_precision")
    resolution: DayTimeResolution
    day_precision: int
    fractional_precision: int

    def __init__(
        self,
        resolution: DayTimeResolution = DayTimeResolution.DAY_TO_SECOND,
        day_precision: int = 2,
        fractional_precision: int = 6,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._set(resolution=resolution, day_precision=day_precision, fractional_precision=fractional_precision)
        _check("day precision", day_precision, 1, 6)
        _check("fractional precision", fractional_precision, 0, 9)

    def _summary(self) -> str:
        fields = self.resolution.value.format(days=self.day_precision, fraction=self.fractional_precision)
        return f"INTERVAL {fields}"


# -- types made of types -----------------------------------------------------------------------------------


class _ElementsType(LogicalType):
    parameters = ("element_type",)
    element_type: LogicalType

    def __init__(self, element_type: LogicalType, **options: Any) -> None:
        super().__init__(**options)
        self._set(element_type=element_type)

    def children(self) -> tuple[LogicalType, ...]:
        """The type of the elements."""
        return (self.element_type,)

    def _summary(self) -> str:
        return f"{self.root.value}<{self.element_type.as_summary_string()}>"


class ArrayType(_ElementsType):
    """Lists of elements of one type."""

    root = LogicalTypeRoot.ARRAY


class MultisetType(_ElementsType):
    """Bags of elements of one type: how often each occurs."""

    root = LogicalTypeRoot.MULTISET


class MapType(LogicalType):
    """Maps with keys of one type and values of another."""

    root = LogicalTypeRoot.MAP
    parameters = ("key_type", "value_type")
    key_type: LogicalType
    value_type: LogicalType

    def __init__(self, key_type: LogicalType, value_type: LogicalType, **options: Any) -> None:
        super().__init__(**options)
        self._set(key_type=key_type, value_type=value_type)

    def children(self) -> tuple[LogicalType, ...]:
        """The type of the keys and that of the values."""
        return (self.key_type, self.value_type)

    def _summary(self) -> str:
        return f"MAP<{self.key_type.as_summary_string()}, {self.value_type.as_summary_string()}>"


class RowField(NamedTuple):
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


class FieldsType(LogicalType):
    """A type with fields."""

    parameters: ClassVar[tuple[str, ...]] = ("fields",)
    fields: tuple[RowField, ...]

    def __init__(self, fields: Iterable[RowField], **options: Any) -> None:
        super().__init__(**options)
        self._set(fields=tuple(fields))
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


class RowType(FieldsType):
    """Rows."""

    root = LogicalTypeRoot.ROW
    is_positional: bool
    """Whether the fields were declared without names, so that f0, f1, … stand for them; no part of the type."""

    def __init__(self, fields: Iterable[RowField], *, is_positional: bool = False, **options: Any) -> None:
        super().__init__(fields, **options)
        self._set(is_positional=is_positional)

    @staticmethod
    def of(names: Iterable[str], types: Iterable[LogicalType], **options: Any) -> RowType:
        """Rows with fields of these names and types."""
        return RowType(_fields(names, types), **options)

    def _summary(self) -> str:
        return f"ROW{self._fields_summary()}"


class StructuredType(FieldsType):
    """Objects of a class with fields; tuples are those of the class ``tuple``."""

    root = LogicalTypeRoot.STRUCTURED_TYPE
    parameters = ("fields", "class_name")
    class_name: str

    def __init__(self, fields: Iterable[RowField], class_name: str = "tuple", **options: Any) -> None:
        super().__init__(fields, **options)
        self._set(class_name=class_name)

    @staticmethod
    def of(types: Iterable[LogicalType], **options: Any) -> StructuredType:
        """Tuples with fields of these types: f0, f1, …"""
        parts = list(types)
        return StructuredType(_fields([f"f{index}" for index in range(len(parts))], parts), **options)

    def _summary(self) -> str:
        if self.class_name == "tuple":
            return f"*{self.class_name}*{self._fields_summary()}"
        return f"STRUCTURED<'{self.class_name}', {self._fields_summary()[1:-1]}>"


# -- the rest ----------------------------------------------------------------------------------------------


class NullType(LogicalType):
    """Null only."""

    root = LogicalTypeRoot.NULL

    def _set(self, **attributes: Any) -> None:
        if attributes.get("nullable") is False:
            raise ValueError("The type NULL has no value but null.")
        super()._set(**attributes)


class VariantType(LogicalType):
    """JSON values, each with a type of its own."""

    root = LogicalTypeRoot.VARIANT


class BitmapType(LogicalType):
    """Sets of integers of 32 bits."""

    root = LogicalTypeRoot.BITMAP


class RawType(LogicalType):
    """Values that only Python knows, kept pickled: of one class, or of ``object``, which is anything."""

    root = LogicalTypeRoot.RAW
    parameters = ("class_name",)
    class_name: str

    def __init__(self, class_name: str = "object", **options: Any) -> None:
        super().__init__(**options)
        self._set(class_name=class_name)

    def _summary(self) -> str:
        return f"RAW('{self.class_name}', '...')"
