"""CREATE MATERIALIZED TABLE: a materialized table of a catalog, and materialized tables as statements."""

from __future__ import annotations

import re
from dataclasses import fields, replace

from sqlglot import exp

from firesteel.config.configuration import Configuration
from firesteel.config.table_options import (
    MATERIALIZED_TABLE_FRESHNESS_CONTINUOUS,
    MATERIALIZED_TABLE_FRESHNESS_FULL,
    MATERIALIZED_TABLE_FRESHNESS_THRESHOLD,
)
from firesteel.table.binder.ddl.create_table import created_as
from firesteel.table.binder.ddl.show_create import create_table_text
from firesteel.table.binder.ddl.views import Qualify, qualified_query
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.materialized import CatalogMaterializedTable, Freshness, RefreshMode
from firesteel.table.catalog.objects import CatalogBaseTable, TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.inference.families import is_character
from firesteel.table.parser import nodes
from firesteel.table.parser.statements import tables
from firesteel.table.schema import UnresolvedPhysicalColumn
from firesteel.types.logical import LogicalType, RowType

__all__ = ["altered_query", "create_materialized_table_text", "created_materialized_table", "date_formatters"]

_FORMATTER = re.compile(r"partition\.fields\.(.+)\.date-formatter")
_UNITS = "SECOND, MINUTE, HOUR, DAY, WEEK"


def created_materialized_table(
    statement: tables.CreateMaterializedTable,
    query_type: RowType,
    qualify: Qualify,
    session: Session,
    configuration: Configuration,
) -> CatalogMaterializedTable:
    """The table of CREATE MATERIALIZED TABLE; ``query_type`` is the row of its query."""
    if statement.start_mode is not None and statement.start_mode.kind != "FROM_BEGINNING":
        raise ValidationError(
            f"START_MODE = {statement.start_mode.kind} is not supported.",
            hint="Leave it out, and set where sources start in their own options.",
        )
    _check_columns(statement, query_type)
    declared = tables.CreateTable(
        statement.path,
        statement.schema,
        statement.comment,
        statement.distribution,
        (),
        statement.options,
        query=statement.query,
        source=statement.source,
    )
    table, names = created_as(declared, query_type, session)
    mode, freshness = _refresh(statement, configuration)
    table = replace(table, partition_keys=statement.partition_keys)
    _check_partitions(table, query_type)
    sql = statement.source.sql if statement.source is not None else ""
    values = {each.name: getattr(table, each.name) for each in fields(CatalogBaseTable)}
    values |= {
        "kind": TableKind.MATERIALIZED_TABLE,
        "original_query": nodes.text_of(statement.query, sql),
        "expanded_query": qualified_query(statement.query, sql, qualify),
    }
    return CatalogMaterializedTable(**values, freshness=freshness, refresh_mode=mode, query_columns=tuple(names))


def _check_columns(statement: tables.CreateMaterializedTable, query_type: RowType) -> None:
    declared = statement.schema.columns if statement.schema is not None else ()
    for column in declared:
        if isinstance(column, tables.PhysicalColumn) and column.name not in query_type.field_names:
            raise ValidationError(
                f"Invalid as physical column '{column.name}' is defined in the DDL, but is not used in a query column."
            )
    key = statement.schema.primary_key if statement.schema is not None else None
    types: dict[str, LogicalType] = {part.name: part.type for part in query_type.fields}
    names = {column.name for column in declared}
    for name in key.columns if key is not None else ():
        if name in types and name not in names and types[name].nullable:
            raise ValidationError(
                f"Invalid primary key 'PK_{'_'.join(key.columns)}'. Column '{name}' is nullable."  # type: ignore[union-attr]
            )


def _check_partitions(table: CatalogBaseTable, query_type: RowType) -> None:
    types: dict[str, LogicalType] = {part.name: part.type for part in query_type.fields}
    shown = ", ".join(f"'{name}'" for name in types)
    for key in table.partition_keys:
        if key not in types:
            raise ValidationError(
                f"Partition column '{key}' not defined in the query's schema. Available columns: [{shown}]."
            )
    for column in date_formatters(table):
        option = f"partition.fields.{column}.date-formatter"
        if column not in table.partition_keys:
            keys = ", ".join(f"'{key}'" for key in table.partition_keys)
            raise ValidationError(
                f"Column '{column}' referenced by materialized table option '{option}' isn't a partition column. "
                f"Available partition columns: [{keys}]."
            )
        if not is_character(types[column]):
            raise ValidationError(
                f"Materialized table option '{option}' only supports referring to char, varchar and string type "
                f"partition column. Column `{column}` type is {types[column].as_summary_string()}."
            )


def date_formatters(table: CatalogBaseTable) -> dict[str, str]:
    """The patterns of partition columns that are times."""
    found = ((_FORMATTER.fullmatch(key), value) for key, value in table.options.items())
    return {match.group(1): value for match, value in found if match is not None}


def _refresh(statement: tables.CreateMaterializedTable, configuration: Configuration) -> tuple[RefreshMode, Freshness]:
    """The refresh mode and the freshness, which depend on each other if only one is given."""
    given = None if statement.refresh_mode is None else RefreshMode(statement.refresh_mode)
    if statement.freshness is not None:
        freshness = _freshness(statement.freshness)
    else:
        if given is RefreshMode.FULL:
            duration = configuration.get(MATERIALIZED_TABLE_FRESHNESS_FULL)
        else:
            duration = configuration.get(MATERIALIZED_TABLE_FRESHNESS_CONTINUOUS)
        freshness = Freshness.of_seconds(duration.to_millis() // 1000)
    threshold = configuration.get(MATERIALIZED_TABLE_FRESHNESS_THRESHOLD).to_millis()
    mode = given or (RefreshMode.CONTINUOUS if freshness.seconds * 1000 < threshold else RefreshMode.FULL)
    if mode is RefreshMode.FULL:
        _check_schedule(freshness)
    return mode, freshness


def _freshness(interval: exp.Expression) -> Freshness:
    negated = isinstance(interval, exp.Neg)
    inner = interval.this if negated else interval
    unit = inner.args["unit"]
    name = str(unit.args["start"]).upper()
    if name not in _UNITS.split(", ") or unit.args.get("end"):
        raise ValidationError(f"Materialized table freshness only supports {_UNITS} as the time unit.")
    text = f"{'-' if negated else ''}{inner.this.name}"
    if not text.strip().isdigit() or int(text) <= 0:
        raise ValidationError(
            f"The freshness interval currently only supports positive integer type values. But was: {text}"
        )
    return Freshness(int(text), name)


def _check_schedule(freshness: Freshness) -> None:
    """Raises an error if times that far apart are not the same every day."""
    whole = {"SECOND": 60, "MINUTE": 60, "HOUR": 24}.get(freshness.unit)
    if whole is None:
        if freshness.count != 1:
            raise ValidationError(f"In full refresh mode, freshness must be 1 when the time unit is {freshness.unit}.")
    elif whole % freshness.count or freshness.count >= whole:
        raise ValidationError(
            f"In full refresh mode, only freshness that are factors of {whole} are currently supported when the time "
            f"unit is {freshness.unit}."
        )


def altered_query(
    table: CatalogMaterializedTable, query: exp.Expression, sql: str, query_type: RowType, qualify: Qualify
) -> CatalogMaterializedTable:
    """The table with another query: it has the columns of the old one, and maybe more after them."""
    old = [column for column in table.schema.columns if isinstance(column, UnresolvedPhysicalColumn)]
    names = query_type.field_names
    for column in old:
        if column.name not in names:
            raise ValidationError(
                f"Failed to modify query because drop column is unsupported: the new query has no column "
                f"'{column.name}'.",
                hint="Drop the table and create it again.",
            )
    known = {column.name for column in old}
    added = tuple(
        UnresolvedPhysicalColumn(part.name, part.type.copy(nullable=True))
        for part in query_type.fields
        if part.name not in known
    )
    return replace(
        table,
        schema=replace(table.schema, columns=(*table.schema.columns, *added)),
        original_query=nodes.text_of(query, sql),
        expanded_query=qualified_query(query, sql, qualify),
        query_columns=tuple(names),
    )


def create_materialized_table_text(found: FoundTable, schema: ResolvedSchema) -> str:
    """CREATE MATERIALIZED TABLE, with full names of tables."""
    table = found.table
    assert isinstance(table, CatalogMaterializedTable)
    text = create_table_text(found, schema).replace("CREATE TABLE ", "CREATE MATERIALIZED TABLE ", 1)
    return (
        f"{text}START_MODE = {table.start_mode}\nFRESHNESS = {table.freshness}\n"
        f"REFRESH_MODE = {table.refresh_mode.value}\nAS {table.expanded_query}\n"
    )
