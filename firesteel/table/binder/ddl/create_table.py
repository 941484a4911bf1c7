"""CREATE TABLE: a table of a catalog, with what LIKE takes from another one."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.binder.ddl.columns import declared_column, declared_key, declared_watermark, with_not_null_key
from firesteel.table.binder.ddl.like import merged_with
from firesteel.table.binder.schemas import resolve_schema
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.catalog.objects import CatalogBaseTable, TableDistribution
from firesteel.table.parser.statements import tables
from firesteel.table.schema import Schema, UnresolvedPhysicalColumn
from firesteel.types.logical import LogicalType, RowType

__all__ = ["created_as", "created_table", "declared_schema"]


def created_table(statement: tables.CreateTable, base: CatalogBaseTable | None, session: Session) -> CatalogBaseTable:
    """The table of CREATE TABLE; ``base`` is that of LIKE."""
    table = CatalogBaseTable.create_table(
        with_not_null_key(declared_schema(statement.schema, _sql(statement))),
        statement.partition_keys,
        dict(statement.options),
        statement.comment,
        _distribution(statement.distribution),
    )
    if statement.like is not None:
        assert base is not None
        table = merged_with(base, table, statement.like.options)
    return _checked(table, session)


def created_as(statement: tables.CreateTable, query: RowType, session: Session) -> tuple[CatalogBaseTable, list[str]]:
    """The table of CREATE TABLE AS, and for each column of the query the column of the table."""
    declared = statement.schema or tables.TableSchema()
    names = list(query.field_names)
    order = names
    if declared.column_names:
        order = [".".join(path) for path in declared.column_names]
        unknown = [name for name in order if name not in names]
        if unknown:
            raise ValidationError(f"Column '{unknown[0]}' not found in the source schema.")
        if len(order) != len(names):
            raise ValidationError(
                "The number of columns in the column list must match the number of columns in the source schema."
            )
    own = declared_schema(replace(declared, column_names=()), _sql(statement))
    known = {column.name for column in own.columns}
    types: dict[str, LogicalType] = {part.name: part.type for part in query.fields}
    added = tuple(UnresolvedPhysicalColumn(name, types[name]) for name in order if name not in known)
    table = CatalogBaseTable.create_table(
        with_not_null_key(replace(own, columns=(*own.columns, *added))),
        statement.partition_keys,
        dict(statement.options),
        statement.comment,
        _distribution(statement.distribution),
    )
    return _checked(table, session), names


def _sql(statement: tables.CreateTable) -> str:
    return statement.source.sql if statement.source is not None else ""


def declared_schema(schema: tables.TableSchema | None, sql: str) -> Schema:
    """A schema of DDL."""
    if schema is None:
        return Schema()
    of_columns = (column.constraint for column in schema.columns if isinstance(column, tables.PhysicalColumn))
    constraints = (*schema.constraints, *(constraint for constraint in of_columns if constraint is not None))
    keys = [declared_key(constraint) for constraint in constraints]
    if len(keys) > 1:
        raise ValidationError("Duplicate primary key definition")
    watermarks = () if schema.watermark is None else (declared_watermark(schema.watermark, sql),)
    columns = tuple(declared_column(column, sql) for column in schema.columns)
    return Schema(columns, watermarks, keys[0] if keys else None)


def _distribution(distribution: tables.Distribution | None) -> TableDistribution | None:
    if distribution is None:
        return None
    return TableDistribution(distribution.kind or "UNKNOWN", distribution.buckets, distribution.columns)


def _checked(table: CatalogBaseTable, session: Session) -> CatalogBaseTable:
    """The table, after its expressions are bound."""
    resolved = resolve_schema(table.schema, session)
    names = resolved.get_column_names()
    shown = ", ".join(f"'{name}'" for name in names)
    for key in table.partition_keys:
        if key not in names:
            raise ValidationError(
                f"Partition column '{key}' not defined in the table schema. Available columns: [{shown}]"
            )
    for key in table.distribution.bucket_keys if table.distribution is not None else ():
        if key not in names:
            raise ValidationError(
                f"Distribution column '{key}' not defined in the table schema. Available columns: [{shown}]"
            )
    return table
