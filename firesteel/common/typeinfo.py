"""Type information: the types of records and state, created with :class:`Types`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.types.composite_type_information import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from firesteel.types.logical import (
    ArrayType,
    DecimalType,
    FieldsType,
    LogicalType,
    LogicalTypeRoot,
    MapType,
    MultisetType,
    StructuredType,
)
from firesteel.types.type_information import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    DecimalTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "DecimalTypeInfo",
    "ExternalTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "from_logical",
]


class Types:
    """Creates type information.

    >>> Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    RowTypeInfo(name: String, age: Integer)
    """

    @staticmethod
    def STRING() -> TypeInformation:  # noqa: N802 - Flink's name
        """Strings; None too."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation:  # noqa: N802 - Flink's name
        """Integers of 8 bits, not None."""
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation:  # noqa: N802 - Flink's name
        """True and False, not None."""
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation:  # noqa: N802 - Flink's name
        """Integers of 16 bits, not None."""
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation:  # noqa: N802 - Flink's name
        """Integers of 32 bits, not None."""
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation:  # noqa: N802 - Flink's name
        """Integers of 64 bits, not None."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation:  # noqa: N802 - Flink's name
        """Numbers with fractions, not None."""
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation:  # noqa: N802 - Flink's name
        """Numbers with fractions, not None."""
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation:  # noqa: N802 - Flink's name
        """Strings of one character, not None."""
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation:  # noqa: N802 - Flink's name
        """Integers of any size; None too."""
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation:  # noqa: N802 - Flink's name
        """``decimal.Decimal``; None too."""
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation:  # noqa: N802 - Flink's name
        """:class:`Instant`; None too."""
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation:  # noqa: N802 - Flink's name
        """``datetime.date``; None too."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation:  # noqa: N802 - Flink's name
        """``datetime.time``; None too."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:  # noqa: N802 - Flink's name
        """``datetime.datetime``; None too."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:  # noqa: N802 - Flink's name
        """Anything that can be pickled."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:  # noqa: N802 - Flink's name
        """Rows with fields of these types."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:  # noqa: N802 - Flink's name
        """Rows with fields of these names and types."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:  # noqa: N802 - Flink's name
        """Tuples with fields of these types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:  # noqa: N802 - Flink's name
        """Lists of numbers, booleans or characters without None; ``bytes`` for BYTE."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802 - Flink's name
        """Lists of numbers, booleans, characters or strings, in which None may occur."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802 - Flink's name
        """Lists of any other type, in which None may occur."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:  # noqa: N802 - Flink's name
        """Dicts with keys and values of these types."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:  # noqa: N802 - Flink's name
        """Lists with elements of this type."""
        return ListTypeInfo(element_type_info)


_SIMPLE: dict[LogicalTypeRoot, Callable[[], TypeInformation]] = {
    LogicalTypeRoot.CHAR: Types.STRING,
    LogicalTypeRoot.VARCHAR: Types.STRING,
    LogicalTypeRoot.BOOLEAN: Types.BOOLEAN,
    LogicalTypeRoot.BINARY: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    LogicalTypeRoot.VARBINARY: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    LogicalTypeRoot.TINYINT: Types.BYTE,
    LogicalTypeRoot.SMALLINT: Types.SHORT,
    LogicalTypeRoot.INTEGER: Types.INT,
    LogicalTypeRoot.BIGINT: Types.LONG,
    LogicalTypeRoot.FLOAT: Types.FLOAT,
    LogicalTypeRoot.DOUBLE: Types.DOUBLE,
    LogicalTypeRoot.DATE: Types.SQL_DATE,
    LogicalTypeRoot.TIME_WITHOUT_TIME_ZONE: Types.SQL_TIME,
    LogicalTypeRoot.TIMESTAMP_WITHOUT_TIME_ZONE: Types.SQL_TIMESTAMP,
    LogicalTypeRoot.TIMESTAMP_WITH_LOCAL_TIME_ZONE: Types.INSTANT,
}


def from_logical(
    type_: LogicalType, array: Callable[[TypeInformation], TypeInformation] = Types.OBJECT_ARRAY
) -> TypeInformation:
    """The type information of a logical type; that of pickled bytes if there is none. ``array`` is what arrays become.

    Lengths, nullability and the precision of times are lost.
    """
    parts = [from_logical(part, array) for part in type_.children()]
    match type_:
        case DecimalType(precision=int(precision), scale=int(scale)):
            return DecimalTypeInfo(precision, scale)
        case DecimalType():
            return Types.BIG_INT() if type_.is_integer else Types.BIG_DEC()
        case ArrayType():
            return array(*parts)
        case MultisetType():
            return Types.MAP(parts[0], Types.INT())
        case MapType():
            return Types.MAP(*parts)
        case StructuredType():
            return Types.TUPLE(parts)
        case FieldsType():
            return Types.ROW_NAMED(type_.field_names, parts)
        case _:
            return _SIMPLE.get(type_.root, Types.PICKLED_BYTE_ARRAY)()
