"""Columns and rows of results as Flink's gateway writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from firesteel.common.types import RowKind
from firesteel.gateway.errors import SqlGatewayError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.casts.text import text_function
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.formats.json.encoder import JsonWriting, value_writer
from firesteel.types import logical as t
from firesteel.types.internal import from_column

__all__ = ["JSON", "PLAIN_TEXT", "columns_of", "logical_type_of", "rows_writer"]

JSON, PLAIN_TEXT = "JSON", "PLAIN_TEXT"

_KINDS = [kind.name for kind in RowKind]
_WRITING = JsonWriting(is_iso=True)


def columns_of(schema: ResolvedSchema) -> list[dict[str, Any]]:
    """The columns of a result."""
    return [
        {"name": column.name, "logicalType": logical_type_of(column.data_type), "comment": None}
        for column in schema.get_columns()
    ]


def logical_type_of(type_: t.LogicalType) -> dict[str, Any]:
    """A type as an object.

    >>> logical_type_of(t.VarCharType(5))
    {'type': 'VARCHAR', 'nullable': True, 'length': 5}
    """
    found: dict[str, Any] = {"type": type_.root.name, "nullable": type_.nullable}
    match type_:
        case t.CharType() | t.VarCharType() | t.BinaryType() | t.VarBinaryType():
            found["length"] = type_.length
        case t.DecimalType():
            found |= {"precision": type_.precision, "scale": type_.scale}
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            found["precision"] = type_.precision
        case t.YearMonthIntervalType():
            found |= {"precision": type_.year_precision, "resolution": type_.resolution.name}
        case t.DayTimeIntervalType():
            found |= {
                "precision": type_.day_precision,
                "fractionalPrecision": type_.fractional_precision,
                "resolution": type_.resolution.name,
            }
        case t.ArrayType() | t.MultisetType():
            found["elementType"] = logical_type_of(type_.element_type)
        case t.MapType():
            found |= {"keyType": logical_type_of(type_.key_type), "valueType": logical_type_of(type_.value_type)}
        case t.FieldsType():
            found["fields"] = [_field(part) for part in type_.fields]
        case t.RawType():
            found["class"] = type_.class_name
    return found


def _field(part: t.RowField) -> dict[str, Any]:
    found = {"name": part.name, "fieldType": logical_type_of(part.type)}
    return found if part.description is None else {**found, "description": part.description}


RowsWriter = Callable[[ColumnBatch], list[str]]


def rows_writer(row_type: t.RowType, row_format: str, session: Session) -> RowsWriter:
    """What writes the rows of a batch, each as the text of an object with its kind and its fields."""
    types = [part.type for part in row_type.fields]
    if row_format == PLAIN_TEXT:
        writers = [_quoted(text_function(type_, session, is_printing=True)) for type_ in types]
    else:
        writers = [_json_writer(type_) for type_ in types]

    def write(batch: ColumnBatch) -> list[str]:
        columns = [
            ["null" if value is None else writer(value) for value in from_column(array, type_)]
            for array, type_, writer in zip(batch.data.columns, types, writers, strict=True)
        ]
        rows: Iterator[Sequence[str]] = zip(*columns, strict=True) if columns else iter([()] * len(batch))
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        return [
            f'{{"kind":"{_KINDS[kind]}","fields":[{",".join(row)}]}}' for kind, row in zip(kinds, rows, strict=True)
        ]

    return write


def _quoted(to_text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: json.dumps(to_text(value), ensure_ascii=False)


def _json_writer(type_: t.LogicalType) -> Callable[[Any], str]:
    if isinstance(type_, (t.YearMonthIntervalType, t.DayTimeIntervalType)):
        return lambda value: str(int(value))
    try:
        return value_writer(type_, _WRITING)
    except ValidationError as error:
        raise SqlGatewayError(
            f"Internal server error. Could not map response to JSON. {error.reason}. "
            "Fetch the results with rowFormat=PLAIN_TEXT."
        ) from None
