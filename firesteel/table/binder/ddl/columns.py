"""Columns, watermarks and keys of DDL as parts of schemas."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from firesteel.table.binder.schemas import DeclaredExpression
from firesteel.table.bound.errors import ValidationError
from firesteel.table.parser import nodes
from firesteel.table.parser.statements import tables
from firesteel.table.parser.types import to_logical_type
from firesteel.table.schema import (
    Schema,
    UnresolvedColumn,
    UnresolvedComputedColumn,
    UnresolvedMetadataColumn,
    UnresolvedPhysicalColumn,
    UnresolvedPrimaryKey,
    UnresolvedWatermark,
)
from firesteel.types.logical import LogicalType

__all__ = ["declared_column", "declared_key", "declared_watermark", "with_not_null_key"]

_ENFORCED = (
    "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED controls if the constraint "
    "checks are performed on the incoming/outgoing data. Flink does not own the data therefore the only supported mode "
    "is the NOT ENFORCED mode"
)


def declared_column(column: tables.Column, sql: str) -> UnresolvedColumn:
    """A column as a schema declares it."""
    if len(column.path) > 1:
        raise ValidationError(f"Alter nested row type {column.name} is not supported yet.")
    match column:
        case tables.PhysicalColumn():
            return UnresolvedPhysicalColumn(column.name, to_logical_type(column.type, sql), column.comment)
        case tables.MetadataColumn():
            type_ = to_logical_type(column.type, sql)
            return UnresolvedMetadataColumn(column.name, type_, column.key, column.virtual, column.comment)
        case tables.ComputedColumn():
            return UnresolvedComputedColumn(column.name, _declared(column.expression, sql), column.comment)
    raise AssertionError(column)


def declared_watermark(watermark: tables.Watermark, sql: str) -> UnresolvedWatermark:
    """A watermark as a schema declares it."""
    if len(watermark.column) > 1:
        raise ValidationError(
            f"Watermark strategy on nested column '{'.'.join(watermark.column)}' is not supported yet."
        )
    return UnresolvedWatermark(watermark.column[0], _declared(watermark.expression, sql))


def declared_key(constraint: tables.TableConstraint) -> UnresolvedPrimaryKey:
    """A primary key as a schema declares it."""
    if constraint.kind != "PRIMARY KEY":
        raise ValidationError("UNIQUE constraint is not supported yet")
    if constraint.enforced is not False:
        raise ValidationError(_ENFORCED, hint="Write PRIMARY KEY (…) NOT ENFORCED.")
    name = constraint.name or "PK_" + "_".join(constraint.columns)
    return UnresolvedPrimaryKey(name, constraint.columns)


def _declared(node: exp.Expression, sql: str) -> DeclaredExpression:
    return DeclaredExpression.of(nodes.text_of(node, sql), node, sql)


def with_not_null_key(schema: Schema) -> Schema:
    """The schema with columns of the primary key that are NOT NULL."""
    if schema.key is None:
        return schema
    columns = tuple(
        replace(column, data_type=column.data_type.not_null())
        if isinstance(column, UnresolvedPhysicalColumn)
        and isinstance(column.data_type, LogicalType)
        and column.name in schema.key.column_names
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)
