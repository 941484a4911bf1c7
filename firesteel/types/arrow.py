"""Logical types as Arrow's, in both directions: the columns of Parquet files and of Spark's DataFrames.

Not one to one: strings and bytes lose their lengths, multisets become maps, tuples structs. Arrow has integers without
a sign, which become the next wider ones, and dictionaries, which become what they hold.
"""

from __future__ import annotations

from typing import Any

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.types import logical as t
from firesteel.types.logical import FieldsType, LogicalType, LogicalTypeRoot

__all__ = [
    "MissingPyArrowError",
    "check_names",
    "from_arrow_schema",
    "is_big_int",
    "require_pyarrow",
    "to_arrow_schema",
]

_BIG_INT_MARK = {b"firesteel.type": b"BIG_INT"}
"""The metadata of a column of decimals whose values are ints in a program: Arrow has no ints of any size."""

_Root = LogicalTypeRoot
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""The digits of a second that each of Arrow's units keeps."""


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


def check_names(names: list[str]) -> list[str]:
    """The names, if there are any and each is there once."""
    if not names:
        raise InvalidProgramError("Data without columns cannot become records.", hint="Select at least one column.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidProgramError(
            f"Several columns have the name {', '.join(map(repr, twice))}, so they cannot be the fields of a Row.",
            hint="Give them unique names, for example with alias(), or use as_tuples=True.",
        )
    return names


def is_big_int(field: Any) -> bool:
    """Whether a column is marked as one of ints."""
    return bool(field.metadata) and all(field.metadata.get(key) == value for key, value in _BIG_INT_MARK.items())


# -- from Arrow --------------------------------------------------------------------------------------------

_FROM_ARROW: dict[str, LogicalType] = {
    "null": t.NullType(),
    "bool": t.BooleanType(),
    "int8": t.TinyIntType(),
    "uint8": t.SmallIntType(),
    "int16": t.SmallIntType(),
    "uint16": t.IntType(),
    "int32": t.IntType(),
    "uint32": t.BigIntType(),
    "int64": t.BigIntType(),
    "uint64": t.DecimalType(None, 0),
    "halffloat": t.FloatType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "string": t.VarCharType(),
    "large_string": t.VarCharType(),
    "binary": t.VarBinaryType(),
    "large_binary": t.VarBinaryType(),
    "date32[day]": t.DateType(),
    "date64[ms]": t.DateType(),
}


def from_arrow_schema(schema: Any, as_tuples: bool = False) -> FieldsType:
    """The type of the records that the rows of a schema become: rows, or tuples."""
    if as_tuples:
        return t.StructuredType.of(map(_from_field, schema))
    return t.RowType.of(check_names(schema.names), map(_from_field, schema))


def _from_field(field: Any) -> LogicalType:
    type_ = t.DecimalType(None, 0) if is_big_int(field) else _from_arrow(field.type)
    return type_.copy(field.nullable)


def _from_arrow(type_: Any) -> LogicalType:
    """The type of a column's values; RAW for those that Flink has no like of."""
    types = require_pyarrow("Arrow data").types
    simple = _FROM_ARROW.get(str(type_))
    if simple is not None:
        return simple
    if types.is_dictionary(type_):
        return _from_arrow(type_.value_type)
    if types.is_decimal(type_):
        return t.DecimalType(type_.precision, type_.scale)
    if types.is_timestamp(type_):
        # with a zone it is a point in time; without one a clock's reading
        make = t.TimestampType if type_.tz is None else t.LocalZonedTimestampType
        return make(_UNITS[type_.unit])
    if types.is_time(type_):
        return t.TimeType(_UNITS[type_.unit])
    if types.is_duration(type_):
        return t.DayTimeIntervalType(day_precision=6, fractional_precision=_UNITS[type_.unit])
    if types.is_fixed_size_binary(type_):
        return t.BinaryType(type_.byte_width)
    if types.is_map(type_):
        return t.MapType(_from_field(type_.key_field), _from_field(type_.item_field))
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return t.ArrayType(_from_field(type_.value_field))
    if types.is_struct(type_) and type_.num_fields:
        fields = [type_.field(index) for index in range(type_.num_fields)]
        return t.RowType.of(check_names([field.name for field in fields]), map(_from_field, fields))
    return t.RawType()


# -- to Arrow ----------------------------------------------------------------------------------------------


def to_arrow_schema(type_: LogicalType, *, element_name: str = "item", keeps_not_null: bool = False) -> Any:
    """The schema for records of a type with fields; for other types one column that is called ``f0``, as in Flink.

    All columns take null, unless ``keeps_not_null``: type information says little about null.

    >>> to_arrow_schema(t.RowType.of(["name", "total"], [t.VarCharType(), t.BigIntType()]))
    name: string
    total: int64
    """
    pa = require_pyarrow("Parquet")
    columns = _Columns(pa, element_name, keeps_not_null)
    if isinstance(type_, FieldsType):
        return pa.schema(columns.fields(type_, ""))
    return pa.schema([columns.field("f0", type_, "f0")])


class _Columns:
    """Makes fields of Arrow of fields of types; ``place`` is where they are, for errors."""

    def __init__(self, pa: Any, element_name: str, keeps_not_null: bool) -> None:
        self._pa = pa
        self._element_name = element_name
        self._keeps_not_null = keeps_not_null
        self._simple = {
            _Root.CHAR: pa.string(),
            _Root.VARCHAR: pa.string(),
            _Root.BOOLEAN: pa.bool_(),
            _Root.VARBINARY: pa.binary(),
            _Root.TINYINT: pa.int8(),
            _Root.SMALLINT: pa.int16(),
            _Root.INTEGER: pa.int32(),
            _Root.BIGINT: pa.int64(),
            _Root.FLOAT: pa.float32(),
            _Root.DOUBLE: pa.float64(),
            _Root.DATE: pa.date32(),
            _Root.NULL: pa.null(),
            _Root.VARIANT: pa.string(),
            _Root.BITMAP: pa.binary(),
        }

    def fields(self, type_: FieldsType, within: str) -> list[Any]:
        return [self.field(part.name, part.type, f"{within}{part.name}") for part in type_.fields]

    def field(self, name: str, type_: LogicalType, place: str) -> Any:
        mark = _BIG_INT_MARK if isinstance(type_, t.DecimalType) and type_.is_integer else None
        nullable = type_.nullable or not self._keeps_not_null
        return self._pa.field(name, self._type(type_, place), nullable, metadata=mark)

    def _type(self, type_: LogicalType, place: str) -> Any:
        pa = self._pa
        match type_:
            case t.DecimalType():
                return self._decimal(type_)
            case t.BinaryType():
                return pa.binary(type_.length)
            case t.TimeType():
                return (pa.time32 if type_.precision <= 3 else pa.time64)(_unit(type_.precision))
            case t.TimestampType():
                return pa.timestamp(_unit(type_.precision))
            case t.LocalZonedTimestampType():
                return pa.timestamp(_unit(type_.precision), "UTC")
            case t.DayTimeIntervalType():
                return pa.duration(_unit(type_.fractional_precision))
            case t.ArrayType():
                return pa.list_(self.field(self._element_name, type_.element_type, f"{place}[]"))
            case t.MultisetType():
                return self._map(type_.element_type, t.IntType(nullable=False), place)
            case t.MapType():
                return self._map(type_.key_type, type_.value_type, place)
            case FieldsType():
                return pa.struct(self.fields(type_, f"{place}."))
        if (simple := self._simple.get(type_.root)) is not None:
            return simple
        raise InvalidProgramError(
            f"{type_}, the type of '{place}', cannot be a column.",
            hint="Name the types of all fields, as in Types.ROW_NAMED(['a'], [Types.STRING()]), or give a pyarrow "
            "schema.",
        )

    def _decimal(self, type_: t.DecimalType) -> Any:
        if type_.precision is None:
            return self._pa.decimal128(38, 0 if type_.is_integer else 18)
        make = self._pa.decimal128 if type_.precision <= 38 else self._pa.decimal256
        return make(type_.precision, type_.scale)

    def _map(self, key: LogicalType, value: LogicalType, place: str) -> Any:
        key_field = self.field("key", key, f"{place}.key").with_nullable(False)
        return self._pa.map_(key_field, self.field("value", value, f"{place}.value"))


def _unit(precision: int) -> str:
    return next(unit for unit, digits in _UNITS.items() if precision <= digits)
