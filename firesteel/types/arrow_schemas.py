"""The Arrow schema of a program's types: what the columns of Parquet files are."""

from __future__ import annotations

from typing import Any

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
    Types,
)
from firesteel.types.arrow_types import BIG_INT_MARK, DecimalTypeInfo, require_pyarrow

__all__ = ["to_arrow_schema"]

_ARRAYS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


def to_arrow_schema(type_info: TypeInformation) -> Any:
    """The schema for records of a row or tuple type; for other types one column that is called ``f0``, as in Flink.

    >>> from firesteel.common.typeinfo import Types
    >>> to_arrow_schema(Types.ROW_NAMED(["name", "total"], [Types.STRING(), Types.LONG()]))
    name: string
    total: int64
    """
    pa = require_pyarrow("Parquet")
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return pa.schema(_fields(pa, type_info, ""))
    return pa.schema([_field(pa, "f0", type_info, "f0")])


def _fields(pa: Any, type_info: RowTypeInfo | TupleTypeInfo, within: str) -> list[Any]:
    types = type_info.get_field_types()
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else [f"f{i}" for i in range(len(types))]
    return [_field(pa, name, field_type, f"{within}{name}") for name, field_type in zip(names, types, strict=True)]


def _field(pa: Any, name: str, type_info: TypeInformation, place: str, *, nullable: bool = True) -> Any:
    mark = BIG_INT_MARK if type_info == Types.BIG_INT() else None
    return pa.field(name, _type(pa, type_info, place), nullable, metadata=mark)


def _type(pa: Any, type_info: TypeInformation, place: str) -> Any:
    if isinstance(type_info, DecimalTypeInfo):
        return pa.decimal128(type_info.precision, type_info.scale)
    simple = _simple(pa).get(str(type_info))
    if simple is not None:
        return simple
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return pa.struct(_fields(pa, type_info, f"{place}."))
    if isinstance(type_info, _ARRAYS):
        return pa.list_(_field(pa, "item", type_info.get_element_type(), f"{place}[]"))
    if isinstance(type_info, MapTypeInfo):
        key = _field(pa, "key", type_info.get_key_type(), f"{place}.key", nullable=False)
        return pa.map_(key, _field(pa, "value", type_info.get_value_type(), f"{place}.value"))
    raise InvalidProgramError(
        f"{type_info}, the type of '{place}', cannot be a column.",
        hint="Name the types of all fields, as in Types.ROW_NAMED(['a'], [Types.STRING()]), or give a pyarrow schema.",
    )


def _simple(pa: Any) -> dict[str, Any]:
    return {
        "String": pa.string(),
        "Char": pa.string(),
        "Boolean": pa.bool_(),
        "Byte": pa.int8(),
        "Short": pa.int16(),
        "Integer": pa.int32(),
        "Long": pa.int64(),
        "Float": pa.float32(),
        "Double": pa.float64(),
        "BigInteger": pa.decimal128(38, 0),
        "BigDecimal": pa.decimal128(38, 18),
        "Instant": pa.timestamp("us", "UTC"),
        "DateTypeInfo": pa.date32(),
        "TimeTypeInfo": pa.time64("us"),
        "TimestampTypeInfo": pa.timestamp("us"),
        "LocalTimeTypeInfo<LOCAL_DATE>": pa.date32(),
        "LocalTimeTypeInfo<LOCAL_TIME>": pa.time64("us"),
        "LocalTimeTypeInfo<LOCAL_DATE_TIME>": pa.timestamp("us"),
        "PrimitiveArrayTypeInfo<Byte>": pa.binary(),
    }
