"""Objects of catalogs as the statements that create them."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import Column, PhysicalColumn
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import TableDistribution
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.names import quoted, string_literal
from firesteel.types.logical import (
    LocalZonedTimestampType,
    LogicalType,
    LogicalTypeRoot,
    RowType,
    TimestampType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["create_catalog_text", "create_table_text", "create_view_text", "options_text", "sql_type"]

MAX_LENGTH = 2_147_483_647
_COLLECTIONS = (LogicalTypeRoot.ARRAY, LogicalTypeRoot.MAP, LogicalTypeRoot.MULTISET)


def create_table_text(found: FoundTable, schema: ResolvedSchema) -> str:
    """CREATE TABLE."""
    table = found.table
    lines = [_column_text(column) for column in schema.columns]
    for spec in schema.watermark_specs:
        expression = spec.watermark_expression.as_serializable_string()
        lines.append(f"WATERMARK FOR {quoted(spec.rowtime_attribute)} AS {expression}")
    if schema.primary_key is not None:
        lines.append(schema.primary_key.as_summary_string())
    text = f"CREATE {'TEMPORARY ' if found.is_temporary else ''}TABLE {found.identifier} (\n"
    text += ",\n".join(f"  {line}" for line in lines) + "\n)\n"
    text += f"COMMENT {string_literal(table.comment)}\n" if table.comment else ""
    text += _distribution_text(table.distribution)
    if table.partition_keys:
        text += f"PARTITIONED BY ({', '.join(map(quoted, table.partition_keys))})\n"
    return text + options_text(table.options)


def _column_text(column: Column) -> str:
    comment = f" COMMENT {string_literal(column.comment)}" if column.comment else ""
    extras = column.explain_extras()
    if extras is not None and extras.startswith("AS "):
        return f"{quoted(column.name)} {extras}{comment}"
    type_ = sql_type(column.data_type)
    if isinstance(column, PhysicalColumn):
        return f"{quoted(column.name)} {type_}{comment}"
    return f"{quoted(column.name)} {type_} {extras}{comment}"


def sql_type(type_: LogicalType) -> str:
    """The type as DDL has it: in full, and without being a time attribute."""
    return _type_name(type_) if type_.nullable else f"{_type_name(type_)} NOT NULL"


def _type_name(type_: LogicalType) -> str:
    match type_:
        case VarCharType():
            return f"VARCHAR({type_.length or MAX_LENGTH})"
        case VarBinaryType():
            return f"VARBINARY({type_.length or MAX_LENGTH})"
        case RowType():
            fields = (f"{quoted(part.name)} {sql_type(part.type)}" for part in type_.fields)
            return f"ROW<{', '.join(fields)}>"
        case TimestampType():
            return f"TIMESTAMP({type_.precision})"
        case LocalZonedTimestampType():
            return f"TIMESTAMP({type_.precision}) WITH LOCAL TIME ZONE"
    if type_.children() and type_.root in _COLLECTIONS:
        return f"{type_.root.value}<{', '.join(map(sql_type, type_.children()))}>"
    return type_.copy(nullable=True).as_summary_string()


def _distribution_text(distribution: TableDistribution | None) -> str:
    if distribution is None:
        return ""
    kind = "" if distribution.kind == "UNKNOWN" else distribution.kind
    keys = f" BY {kind}({', '.join(map(quoted, distribution.bucket_keys))})" if distribution.bucket_keys else ""
    buckets = f" INTO {distribution.bucket_count} BUCKETS" if distribution.bucket_count else ""
    return f"DISTRIBUTED{keys}{buckets}\n"


def options_text(options: Mapping[str, str]) -> str:
    """WITH, with the options by their names; empty without options."""
    if not options:
        return ""
    lines = (f"  {string_literal(key)} = {string_literal(value)}" for key, value in sorted(options.items()))
    return "WITH (\n" + ",\n".join(lines) + "\n)\n"


def create_view_text(found: FoundTable, schema: ResolvedSchema) -> str:
    """CREATE VIEW, with full names of tables."""
    view = found.table
    if view.expanded_query is None:
        raise ValidationError(
            f"SHOW CREATE VIEW is not supported for views registered by Table API: {found.identifier}."
        )
    columns = ",\n".join(f"  {quoted(name)}" for name in schema.get_column_names())
    comment = f"COMMENT {string_literal(view.comment)}\n" if view.comment else ""
    temporary = "TEMPORARY " if found.is_temporary else ""
    return f"CREATE {temporary}VIEW {found.identifier} (\n{columns}\n)\n{comment}AS {view.expanded_query}\n"


def create_catalog_text(name: str, options: Mapping[str, str], comment: str | None) -> str:
    """CREATE CATALOG."""
    text = f"CREATE CATALOG {quoted(name)}\n" + (f"COMMENT {string_literal(comment)}\n" if comment else "")
    return text + options_text(options)
