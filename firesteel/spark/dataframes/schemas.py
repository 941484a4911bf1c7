"""DataFrame schemas of streams: from the stream's type, or as the program declares them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import TypeInformation
from firesteel.types.logical import FieldsType, LogicalTypeRoot, RowType
from firesteel.types.spark import UnsupportedTypeError, to_spark

__all__ = ["schema_of", "to_struct"]

_HINT = (
    "Declare the type of the records: with output_type=Types.ROW_NAMED([...], [...]) on the operator that emits "
    "them, or with to_dataframe('name STRING, total BIGINT')."
)
_OTHERS: dict[LogicalTypeRoot, str | None] = (
    {} if hasattr(t, "TimeType") else {LogicalTypeRoot.TIME_WITHOUT_TIME_ZONE: None}  # since Spark 4.1
)


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
        raise InvalidProgramError(
            "The columns of the DataFrame cannot be determined: the stream has no type.", hint=_HINT
        )
    found = type_info.to_logical()
    row_type = found if isinstance(found, FieldsType) else RowType.of(["f0"], [found])
    try:
        return t.StructType.fromJson(to_spark(row_type, _OTHERS))
    except UnsupportedTypeError as error:
        raise InvalidProgramError(f"The columns of the DataFrame cannot be determined: {error}.", hint=_HINT) from error
