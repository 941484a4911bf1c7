"""Resolves schemas: the types of columns, and the expressions of computed columns and watermarks."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.scope import Scope, ScopeColumn
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.resolved import ResolvedExpression
from firesteel.table.bound.session import Session
from firesteel.table.catalog.columns import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from firesteel.table.catalog.resolved_schema import ResolvedSchema, UniqueConstraint, WatermarkSpec
from firesteel.table.parser import parse_expression, parse_type
from firesteel.table.parser.sql_text import sql_text
from firesteel.table.parser.types import to_logical_type
from firesteel.table.plan.time_attributes import as_rowtime
from firesteel.table.schema import (
    Schema,
    UnresolvedColumn,
    UnresolvedComputedColumn,
    UnresolvedMetadataColumn,
    UnresolvedPhysicalColumn,
    UnresolvedPrimaryKey,
    UnresolvedWatermark,
)
from firesteel.types.logical import LocalZonedTimestampType, LogicalType, TimestampType

__all__ = ["DeclaredExpression", "resolve_schema"]

_MAX_ROWTIME_PRECISION = 3


class DeclaredExpression(str):
    """The SQL text of an expression within a statement, for places in errors."""

    __slots__ = ("node", "sql")

    node: exp.Expression
    sql: str

    @staticmethod
    def of(text: str, node: exp.Expression, sql: str) -> DeclaredExpression:
        """A part of a statement."""
        declared = DeclaredExpression(text)
        declared.node, declared.sql = node, sql
        return declared


def resolve_schema(schema: Schema, session: Session | None = None) -> ResolvedSchema:
    """The schema with types and bound expressions. Raises ValidationError with Flink's messages."""
    return _Resolver(session or Session()).resolve(schema)


class _Resolver:
    def __init__(self, session: Session) -> None:
        self._session = session

    def resolve(self, schema: Schema) -> ResolvedSchema:
        _check_names(schema.columns)
        stored = {column.name: _type_of(column) for column in schema.columns if _is_stored(column)}
        columns = [self._column(column, stored) for column in schema.columns]
        if len(schema.watermarks) > 1:
            raise ValidationError("Multiple watermark definitions are not supported yet.")
        watermarks = []
        for declared in schema.watermarks:
            spec, index = self._watermark(declared, columns)
            watermarks.append(spec)
            columns[index] = columns[index].copy(as_rowtime(columns[index].data_type))
        key = None
        if schema.key is not None:
            _check_key(columns, schema.key)
            key = UniqueConstraint.primary_key(schema.key.constraint_name, schema.key.column_names)
        return ResolvedSchema(columns, watermarks, key)

    def _column(self, column: UnresolvedColumn, stored: Mapping[str, LogicalType]) -> Column:
        match column:
            case UnresolvedPhysicalColumn():
                return PhysicalColumn(column.name, stored[column.name], column.comment)
            case UnresolvedMetadataColumn():
                key, is_virtual = column.metadata_key, column.is_virtual
                return MetadataColumn(column.name, stored[column.name], key, is_virtual, column.comment)
            case UnresolvedComputedColumn():
                expression = self._bound(column.expression, stored)
                return ComputedColumn(column.name, expression.bound.type, expression, column.comment)
        raise AssertionError(column)

    def _bound(self, declared: object, columns: Mapping[str, LogicalType]) -> ResolvedExpression:
        if isinstance(declared, ResolvedExpression):
            declared = declared.sql
        if isinstance(declared, DeclaredExpression):
            node, sql = declared.node, declared.sql
        elif isinstance(declared, str):
            node, sql = parse_expression(declared), declared
        else:
            raise ValidationError(f"The expression of a column must be SQL text, got {declared!r}.")
        scope = Scope(ScopeColumn(name, type_) for name, type_ in columns.items())
        bound: Expression = ExpressionBinder(scope, sql, self._session).bind(node)
        return ResolvedExpression(bound, sql_text(node) or str(declared))

    def _watermark(self, declared: UnresolvedWatermark, columns: list[Column]) -> tuple[WatermarkSpec, int]:
        names = [column.name for column in columns]
        if declared.column_name not in names:
            raise ValidationError(
                f"The rowtime attribute field '{declared.column_name}' is not defined in the table schema\n"
                f"Available fields: [{', '.join(f'{name!r}' for name in names)}]"
            )
        index = names.index(declared.column_name)
        _check_rowtime(columns[index].data_type, "time field", "time field type")
        expression = self._bound(declared.expression, {column.name: column.data_type for column in columns})
        _check_rowtime(expression.bound.type, "expression", "watermark expression type")
        return WatermarkSpec(declared.column_name, expression), index


def _is_stored(column: UnresolvedColumn) -> bool:
    return not isinstance(column, UnresolvedComputedColumn)


def _type_of(column: UnresolvedColumn) -> LogicalType:
    assert isinstance(column, (UnresolvedPhysicalColumn, UnresolvedMetadataColumn))
    declared = column.data_type
    return to_logical_type(parse_type(declared), declared) if isinstance(declared, str) else declared


_KINDS = {
    UnresolvedPhysicalColumn: "regular",
    UnresolvedComputedColumn: "computed",
    UnresolvedMetadataColumn: "metadata",
}


def _check_names(columns: tuple[UnresolvedColumn, ...]) -> None:
    seen: dict[str, UnresolvedColumn] = {}
    for column in columns:
        if column.name in seen:
            kind = _KINDS[type(column)]
            raise ValidationError(f"A {kind} Column named '{column.name}' already exists in the table.")
        seen[column.name] = column


def _check_rowtime(type_: LogicalType, subject: str, noun: str) -> None:
    if isinstance(type_, (TimestampType, LocalZonedTimestampType)) and type_.precision <= _MAX_ROWTIME_PRECISION:
        return
    what = "time field" if subject == "time field" else "expression"
    raise ValidationError(
        f"Invalid data type of {what} for watermark definition. The field must be of type TIMESTAMP(p) or "
        f"TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the {noun} is {type_.as_summary_string()}"
    )


def _check_key(columns: list[Column], key: UnresolvedPrimaryKey) -> None:
    by_name = {column.name: column for column in columns}
    for name in key.column_names:
        if name not in by_name:
            raise ValidationError(f"Primary key column '{name}' is not defined in the schema")
        if not by_name[name].is_physical():
            raise ValidationError(
                f"Could not create a PRIMARY KEY with column '{name}'.\n"
                "A PRIMARY KEY constraint must be declared on physical columns."
            )
        if by_name[name].data_type.nullable:
            raise ValidationError(f"Invalid primary key '{key.constraint_name}'. Column '{name}' is nullable.")
