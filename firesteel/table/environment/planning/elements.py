"""Tables of rows that a program has: lists and pandas DataFrames."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.types import Row
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connectors.in_memory import InMemorySource
from firesteel.table.inference.common_type import common_type
from firesteel.types import logical as t
from firesteel.types.arrow import from_arrow_schema, require_pyarrow, to_arrow_schema
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.internal import columns_schema
from firesteel.types.logical import FieldsType, LogicalType, RowField, RowType

__all__ = ["batch_of_elements", "batch_of_frame"]

_tokens = itertools.count(1)


def batch_of_elements(elements: Sequence[Any], schema: Any, verify: bool) -> InMemorySource:
    """A source of elements: rows, tuples, lists, dicts, objects, or single values."""
    if isinstance(schema, FieldsType):
        row_type = schema
    elif isinstance(schema, LogicalType):
        row_type = RowType([RowField("value", schema)])
        elements = [(element,) for element in elements]
    else:
        if schema is not None and not all(isinstance(name, str) for name in schema):
            raise TypeError(f"schema should be a row type or a list of names, but got: {schema!r}")
        elements, row_type = _inferred(elements, schema)
    names = row_type.field_names
    rows = [_values(element, names) for element in elements]
    if verify:
        for row in rows:
            if len(row) != len(names):
                raise ValueError(f"Length of object ({len(row)}) does not match with length of fields ({len(names)})")
    plain = RowType([RowField(part.name, part.type.copy()) for part in row_type.fields], nullable=False)
    encoder = ArrowBatchEncoder(to_arrow_schema(plain), str(plain))
    data = encoder.to_batch(rows) if rows else columns_schema(plain).empty_table().to_batches()[0]
    data = require_pyarrow("SQL").RecordBatch.from_arrays(data.columns, schema=columns_schema(plain))
    type_ = RowType(row_type.fields, nullable=False)
    return InMemorySource(type_, ColumnBatch(data), "Collection", token=next(_tokens))


def _values(element: Any, names: Sequence[str]) -> Sequence[Any]:
    if isinstance(element, Row):
        return element.get_fields_by_names(names) if element.get_field_names() else list(element)
    if isinstance(element, dict):
        return [element.get(name) for name in names]
    if isinstance(element, (tuple, list)):
        return element
    if hasattr(element, "__dict__"):
        return [getattr(element, name, None) for name in names]
    return (element,)


def _inferred(elements: Sequence[Any], names: Sequence[str] | None) -> tuple[Sequence[Any], RowType]:
    """The elements as rows, with the types of their values."""
    if not elements:
        raise ValueError("can not infer schema from empty dataset")
    first = elements[0]
    if isinstance(first, dict) and names is None:
        names = sorted({name for element in elements for name in element})
    elif isinstance(first, Row) and first.get_field_names() and names is None:
        names = first.get_field_names()
    elif not isinstance(first, (tuple, list, Row, dict)):
        elements = [(element,) for element in elements]
    width = len(names) if isinstance(first, dict) and names else max(len(element) for element in elements)
    names = [*(names or ()), *(f"_{index + 1}" for index in range(len(names or ()), width))]
    columns = zip(*(_values(element, names) for element in elements), strict=True)
    types = [_type_of_all(column, name) for column, name in zip(columns, names, strict=True)]
    return elements, RowType.of(names, types)


_SIMPLE: list[tuple[type, LogicalType]] = [
    (bool, t.BooleanType()),
    (int, t.BigIntType()),
    (float, t.DoubleType()),
    (str, t.VarCharType()),
    (Decimal, t.DecimalType(38, 18)),
    (dt.datetime, t.TimestampType(6)),
    (dt.date, t.DateType()),
    (dt.time, t.TimeType(0)),
    (dt.timedelta, t.DayTimeIntervalType()),
    (Instant, t.LocalZonedTimestampType(6)),
    (bytes, t.VarBinaryType()),
    (bytearray, t.VarBinaryType()),
]


def _type_of_all(values: Sequence[Any], name: str) -> LogicalType:
    types = list(dict.fromkeys(_type_of(value, name) for value in values if value not in (None, [], {})))
    if not types:
        raise ValueError(f"Some of the types cannot be determined by all elements: column '{name}' has only None.")
    found = types[0] if len(types) == 1 else common_type(types)
    if found is None:
        raise TypeError(f"The values of column '{name}' have no common type: {', '.join(map(str, types))}.")
    return found


def _type_of(value: Any, name: str) -> LogicalType:
    for kind, type_ in _SIMPLE:
        if isinstance(value, kind):
            return type_
    if isinstance(value, dict) and value:
        return t.MapType(_type_of_all(list(value), name), _type_of_all(list(value.values()), name))
    if isinstance(value, Row):
        names = value.get_field_names() or [f"_{index + 1}" for index in range(len(value))]
        return RowType.of(names, [_type_of(part, name) for part in value])
    if isinstance(value, (list, set)) and value:
        return t.ArrayType(_type_of_all(list(value), name))
    if isinstance(value, tuple):
        return RowType.of(
            [f"_{index + 1}" for index in range(len(value))], [_type_of_all([part], name) for part in value]
        )
    raise TypeError(f"The type of {value!r} in column '{name}' cannot be inferred: give a schema.")


def batch_of_frame(frame: Any, schema: Any) -> InMemorySource:
    """A source of the rows of a pandas DataFrame."""
    pa = require_pyarrow("from_pandas")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if isinstance(schema, FieldsType):
        row_type = RowType(schema.fields, nullable=False)
    else:
        derived = from_arrow_schema(table.schema)
        names = list(schema) if schema is not None else [str(name) for name in frame.columns]
        types = [part.type for part in derived.fields]
        if schema is not None and all(isinstance(item, LogicalType) for item in schema):
            names, types = [str(name) for name in frame.columns], list(schema)
        if len(names) != len(types):
            raise ValidationError(f"The DataFrame has {len(types)} columns, but the schema has {len(names)}.")
        row_type = RowType.of(names, types, nullable=False)
    target = columns_schema(row_type)
    data = table.rename_columns(list(row_type.field_names)).cast(target).combine_chunks()
    batches = data.to_batches() or [target.empty_table().to_batches()[0]]
    return InMemorySource(row_type, ColumnBatch(batches[0]), "Pandas", token=next(_tokens))
