"""Which columns the records of a stream become: from the stream's type, or from a schema that the program gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.types.arrow_types import DecimalTypeInfo

__all__ = ["schema_of", "to_struct"]

_HINT = (
    "Say what the records are: with output_type=Types.ROW_NAMED([...], [...]) where they are made, or with "
    "to_dataframe('name STRING, total BIGINT')."
)
_SIMPLE: dict[str, t.DataType] = {
    "String": t.StringType(),
    "Char": t.StringType(),
    "Boolean": t.BooleanType(),
    "Byte": t.ByteType(),
    "Short": t.ShortType(),
    "Integer": t.IntegerType(),
    "Long": t.LongType(),
    "Float": t.FloatType(),
    "Double": t.DoubleType(),
    "BigInteger": t.DecimalType(38, 0),
    "BigDecimal": t.DecimalType(38, 18),
    "Instant": t.TimestampType(),
    "DateTypeInfo": t.DateType(),
    "TimestampTypeInfo": t.TimestampNTZType(),
    "LocalTimeTypeInfo<LOCAL_DATE>": t.DateType(),
    "LocalTimeTypeInfo<LOCAL_DATE_TIME>": t.TimestampNTZType(),
    "PrimitiveArrayTypeInfo<Byte>": t.BinaryType(),
}
if hasattr(t, "TimeType"):  # since Spark 4.1
    _SIMPLE["TimeTypeInfo"] = _SIMPLE["LocalTimeTypeInfo<LOCAL_TIME>"] = t.TimeType()

_ARRAYS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


def to_struct(schema: Any) -> t.StructType:
    """A schema as the program gives it: a StructType, or a DDL string, which the active SparkContext parses."""
    if isinstance(schema, str):
        try:
            schema = t.DataType.fromDDL(schema)
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise InvalidProgramError(f"to_dataframe: {schema!r} is not a schema: {first}") from error
    if not isinstance(schema, t.StructType):
        raise InvalidProgramError(f"to_dataframe: the schema must be a StructType or a DDL string, got {schema!r}.")
    if not schema.fields:
        raise InvalidProgramError("to_dataframe: a DataFrame needs at least one column.")
    return schema


def schema_of(type_info: TypeInformation | None) -> t.StructType:
    """The columns of a type: the fields of a row or a tuple, else one that is called ``f0``, as in Flink.

    >>> from firesteel.common.typeinfo import Types
    >>> schema_of(Types.TUPLE([Types.STRING(), Types.LONG()])).simpleString()
    'struct<f0:string,f1:bigint>'
    """
    if type_info is None:
        raise InvalidProgramError("The columns of the DataFrame are not known: the stream has no type.", hint=_HINT)
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return _struct(type_info, "")
    return _fields([("f0", type_info)], "")


def _struct(type_info: RowTypeInfo | TupleTypeInfo, within: str) -> t.StructType:
    types = type_info.get_field_types()
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else [f"f{i}" for i in range(len(types))]
    return _fields(zip(names, types, strict=True), within)


def _fields(fields: Iterable[tuple[str, TypeInformation]], within: str) -> t.StructType:
    return t.StructType([t.StructField(name, _type(type_info, f"{within}{name}")) for name, type_info in fields])


def _type(type_info: TypeInformation, place: str) -> t.DataType:
    if isinstance(type_info, DecimalTypeInfo):
        return t.DecimalType(type_info.precision, type_info.scale)
    simple = _SIMPLE.get(str(type_info))
    if simple is not None:
        return simple
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return _struct(type_info, f"{place}.")
    if isinstance(type_info, _ARRAYS):
        return t.ArrayType(_type(type_info.get_element_type(), f"{place}[]"))
    if isinstance(type_info, MapTypeInfo):
        key, value = type_info.get_key_type(), type_info.get_value_type()
        return t.MapType(_type(key, f"{place}.key"), _type(value, f"{place}.value"))
    raise InvalidProgramError(
        f"The columns of the DataFrame are not known: {type_info}, the type of '{place}', is none that Spark has.",
        hint=_HINT,
    )
