"""DataTypes: logical types by the names of the Table API."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.types.logical import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
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
    "DecimalType",
    "DoubleType",
    "FloatType",
    "IntType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "NullType",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
]

DataType = LogicalType
"""PyFlink's name for the type of a column."""


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
