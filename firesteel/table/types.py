"""DataTypes: logical types by the names of the Table API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from firesteel.common.types import Row, RowKind
from firesteel.types.logical import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DayTimeResolution,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
    YearMonthResolution,
)

__all__ = [
    "ArrayType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "IntType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "NullType",
    "Resolution",
    "Row",
    "RowField",
    "RowKind",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]

DataType = LogicalType
"""PyFlink's name for the type of a column."""


@dataclass(frozen=True)
class Resolution:
    """A field of an interval, and the number of its digits."""

    class IntervalUnit(Enum):
        """The fields of intervals."""

        SECOND = 0
        MINUTE = 1
        HOUR = 2
        DAY = 3
        MONTH = 4
        YEAR = 5

    unit: IntervalUnit
    precision: int = -1


class ListViewType(ArrayType):
    """The type of a ListView in an accumulator."""


class MapViewType(MapType):
    """The type of a MapView in an accumulator."""


class DataTypes:
    """Types of columns: ``DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])``.

    >>> print(DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(False))]))
    ROW<`id` BIGINT NOT NULL>
    """

    @staticmethod
    def NULL() -> NullType:  # noqa: N802 - Flink's names, here and below
        """The type of null alone."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:  # noqa: N802
        """Strings of so many characters."""
        return CharType(length, nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:  # noqa: N802
        """Strings of at most so many characters."""
        return VarCharType(length, nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:  # noqa: N802
        """Strings of any length."""
        return VarCharType(nullable=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:  # noqa: N802
        """True and false."""
        return BooleanType(nullable=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:  # noqa: N802
        """So many bytes."""
        return BinaryType(length, nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:  # noqa: N802
        """At most so many bytes."""
        return VarBinaryType(length, nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:  # noqa: N802
        """Any number of bytes."""
        return VarBinaryType(nullable=nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:  # noqa: N802
        """Decimals with so many digits, and so many of them after the point."""
        return DecimalType(precision, scale, nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:  # noqa: N802
        """Integers of 8 bits."""
        return TinyIntType(nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:  # noqa: N802
        """Integers of 16 bits."""
        return SmallIntType(nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:  # noqa: N802
        """Integers of 32 bits."""
        return IntType(nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:  # noqa: N802
        """Integers of 64 bits."""
        return BigIntType(nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:  # noqa: N802
        """Floating-point numbers of 32 bits."""
        return FloatType(nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:  # noqa: N802
        """Floating-point numbers of 64 bits."""
        return DoubleType(nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:  # noqa: N802
        """Dates."""
        return DateType(nullable=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:  # noqa: N802
        """Times of day with so many digits of a second's fraction."""
        return TimeType(precision, nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:  # noqa: N802
        """Dates with times, without a zone."""
        return TimestampType(precision, nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(  # noqa: N802
        precision: int = 6, nullable: bool = True
    ) -> LocalZonedTimestampType:
        """Points in time."""
        return LocalZonedTimestampType(precision, nullable=nullable)

    TIMESTAMP_LTZ = TIMESTAMP_WITH_LOCAL_TIME_ZONE

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:  # noqa: N802
        """Arrays of a type."""
        return ArrayType(element_type, nullable=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:  # noqa: N802
        """The type of a ListView in an accumulator."""
        return ListViewType(element_type)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:  # noqa: N802
        """The type of a MapView in an accumulator."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:  # noqa: N802
        """Maps from one type to another."""
        return MapType(key_type, value_type, nullable=nullable)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:  # noqa: N802
        """Sets in which a value may occur several times."""
        return MultisetType(element_type, nullable=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:  # noqa: N802
        """Rows of fields, which ``FIELD`` makes."""
        return RowType(row_fields, nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:  # noqa: N802
        """A field of a row."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:  # noqa: N802
        """Seconds of an interval, with so many digits of their fraction."""
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:  # noqa: N802
        """Minutes of an interval."""
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:  # noqa: N802
        """Hours of an interval."""
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:  # noqa: N802
        """Days of an interval, with so many digits."""
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:  # noqa: N802
        """Months of an interval."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:  # noqa: N802
        """Years of an interval, with so many digits."""
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(  # noqa: N802
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """Amounts of time, from one field to another.

        >>> print(DataTypes.INTERVAL(DataTypes.DAY(3), DataTypes.SECOND(3)))
        INTERVAL DAY(3) TO SECOND(3)
        """
        fields = [each for each in (upper_resolution, lower_resolution) if each is not None]
        name = "_TO_".join(each.unit.name for each in fields)
        digits = {each.unit.name: each.precision for each in fields}
        if name in YearMonthResolution.__members__:
            return YearMonthIntervalType(YearMonthResolution[name], digits.get("YEAR", 2))
        if name not in DayTimeResolution.__members__:
            raise ValueError(f"Unsupported interval definition '{name.replace('_', ' ')}'.")
        return DayTimeIntervalType(DayTimeResolution[name], digits.get("DAY", 2), digits.get("SECOND", 6))
