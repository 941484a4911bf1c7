"""Which types the columns of Arrow data have for a program: those of Parquet files and of Spark's DataFrames."""

from __future__ import annotations

from typing import Any

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.types.type_information import BasicType, BasicTypeInfo

__all__ = [
    "BIG_INT_MARK",
    "DecimalTypeInfo",
    "MissingPyArrowError",
    "is_big_int",
    "record_type",
    "require_pyarrow",
    "type_of_column",
]

BIG_INT_MARK = {b"firesteel.type": b"BIG_INT"}
"""The metadata of a column of decimals whose values are ints in a program: Arrow has no ints of any size."""


class MissingPyArrowError(FiresteelError):
    """PyArrow is not installed where it is needed."""


def require_pyarrow(what: str) -> Any:
    """The module pyarrow, which is loaded only where ``what`` is used."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingPyArrowError(
            f"{what} needs PyArrow, which cannot be imported: {error}.",
            hint="Install it where the program and its tasks run: pip install 'firesteel[dataframes]'.",
        ) from error
    return pyarrow


class DecimalTypeInfo(BasicTypeInfo):
    """Decimals of a precision and scale that are known; equal to ``Types.BIG_DEC()``."""

    def __init__(self, precision: int, scale: int):
        super().__init__(BasicType.BIG_DEC)
        self.precision = precision
        self.scale = scale


def record_type(schema: Any, as_tuples: bool = False) -> RowTypeInfo | TupleTypeInfo:
    """The type of the records that the rows of an Arrow schema become."""
    types = [_type_of_field(field) for field in schema]
    if as_tuples:
        return Types.TUPLE(types)
    return Types.ROW_NAMED(check_names(schema.names), types)


def check_names(names: list[str]) -> list[str]:
    """The names, if there are any and each is there once."""
    if not names:
        raise InvalidProgramError("Data without columns cannot become records.", hint="Select at least one column.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidProgramError(
            f"Several columns have the name {', '.join(map(repr, twice))}, so they cannot be the fields of a Row.",
            hint="Give them names of their own, for example with alias(), or use as_tuples=True.",
        )
    return names


def is_big_int(field: Any) -> bool:
    """Whether a column is marked as one of ints."""
    return bool(field.metadata) and all(field.metadata.get(key) == value for key, value in BIG_INT_MARK.items())


def _type_of_field(field: Any) -> TypeInformation:
    return Types.BIG_INT() if is_big_int(field) else type_of_column(field.type)


def type_of_column(type_: Any) -> TypeInformation:
    """The type of a column's values; pickled bytes for those that Flink has no like of."""
    pa = require_pyarrow("Arrow data")
    types = pa.types
    if types.is_dictionary(type_):
        return type_of_column(type_.value_type)
    for matches, type_info in _simple(types):
        if matches(type_):
            return type_info
    if types.is_decimal(type_):
        return DecimalTypeInfo(type_.precision, type_.scale)
    if types.is_timestamp(type_):
        # with a zone it is a point in time, which Flink calls TIMESTAMP_LTZ; without one a clock's reading
        return Types.SQL_TIMESTAMP() if type_.tz is None else Types.INSTANT()
    if types.is_map(type_):
        return Types.MAP(_type_of_field(type_.key_field), _type_of_field(type_.item_field))
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return Types.LIST(_type_of_field(type_.value_field))
    if types.is_struct(type_) and type_.num_fields:
        fields = [type_.field(index) for index in range(type_.num_fields)]
        names = check_names([field.name for field in fields])
        return Types.ROW_NAMED(names, [_type_of_field(field) for field in fields])
    return Types.PICKLED_BYTE_ARRAY()


def _simple(types: Any) -> list[tuple[Any, TypeInformation]]:
    binary = Types.PRIMITIVE_ARRAY(Types.BYTE())
    return [
        (types.is_boolean, Types.BOOLEAN()),
        (types.is_int8, Types.BYTE()),
        (lambda type_: types.is_int16(type_) or types.is_uint8(type_), Types.SHORT()),
        (lambda type_: types.is_int32(type_) or types.is_uint16(type_), Types.INT()),
        (lambda type_: types.is_int64(type_) or types.is_uint32(type_), Types.LONG()),
        (types.is_uint64, Types.BIG_INT()),
        (lambda type_: types.is_float16(type_) or types.is_float32(type_), Types.FLOAT()),
        (types.is_float64, Types.DOUBLE()),
        (lambda type_: types.is_string(type_) or types.is_large_string(type_), Types.STRING()),
        (lambda type_: types.is_binary(type_) or types.is_large_binary(type_), binary),
        (types.is_fixed_size_binary, binary),
        (types.is_date, Types.SQL_DATE()),
        (types.is_time, Types.SQL_TIME()),
    ]
