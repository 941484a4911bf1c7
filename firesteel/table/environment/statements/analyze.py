"""ANALYZE TABLE: counts rows, and what is known of columns, for the catalog to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import Column, ComputedColumn, MetadataColumn
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import CatalogPartitionSpec, TableKind
from firesteel.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics, ColumnStatistics
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import execute_query
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.names import quoted, string_literal
from firesteel.table.parser import parse_query
from firesteel.table.parser.statements.utility import AnalyzeTable
from firesteel.table.plan.nodes import TableScan
from firesteel.types.logical import LogicalTypeRoot as Root

__all__ = ["analyzed_rows"]

_ORDERED = {
    Root.TINYINT,
    Root.SMALLINT,
    Root.INTEGER,
    Root.BIGINT,
    Root.FLOAT,
    Root.DOUBLE,
    Root.DECIMAL,
    Root.DATE,
    Root.TIME_WITHOUT_TIME_ZONE,
    Root.TIMESTAMP_WITHOUT_TIME_ZONE,
    Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE,
}


@execute_statement.register
def _analyze(statement: AnalyzeTable, session: TableSession) -> TableResult:
    identifier = session.manager.qualify(statement.path)
    found = session.manager.find_table(identifier)
    if found is None or found.is_temporary:
        raise ValidationError(
            f"Table {identifier} doesn't exist or is a temporary table.",
            hint=session.nearest_table(identifier.object_name),
        )
    if found.table.kind is TableKind.VIEW:
        raise ValidationError("ANALYZE TABLE for a view is not allowed")
    columns = _columns(statement, found, session)
    _check_keys(statement, found)
    if session.is_streaming:
        raise ValidationError(
            "ANALYZE TABLE is not supported for streaming mode now", hint="SET 'execution.runtime-mode' = 'batch'."
        )
    catalog, path = session.manager.get_catalog(identifier.catalog_name), identifier.to_object_path()
    try:
        if not found.table.is_partitioned:
            rows, details = _measured(session, identifier, columns, None)
            catalog.alter_table_statistics(path, rows, ignore_if_not_exists=False)
            if columns:
                catalog.alter_table_column_statistics(path, details, ignore_if_not_exists=False)
            return ok()
        for spec in _partitions(statement, found, session):
            rows, details = _measured(session, identifier, columns, spec)
            catalog.alter_partition_statistics(path, spec, rows, ignore_if_not_exists=False)
            if columns:
                catalog.alter_partition_column_statistics(path, spec, details, ignore_if_not_exists=False)
    except CatalogException as error:
        raise ValidationError(f"Failed to execute ANALYZE TABLE command: {error.message}", hint=error.hint) from error
    return ok()


def analyzed_rows(session: TableSession, scan: TableScan) -> int | None:
    """How many rows a table had when it was analyzed; None if it was not."""
    catalog = session.manager.find_catalog(scan.identifier.catalog_name)
    path = scan.identifier.to_object_path()
    if catalog is None or scan.options or not catalog.table_exists(path):
        return None
    if catalog.get_table(path).is_partitioned:
        specs = catalog.list_partitions(path)
        counts = [each.get_row_count() for each in catalog.bulk_get_partition_statistics(path, specs)]
        return sum(counts) if counts and min(counts) >= 0 else None
    count = catalog.get_table_statistics(path).get_row_count()
    return count if count >= 0 else None


def _columns(statement: AnalyzeTable, found: FoundTable, session: TableSession) -> list[Column]:
    schema = session.resolved_schema(found.table)
    if statement.all_columns:
        return [column for column in schema.columns if column.is_physical()]
    columns = []
    for name in statement.columns:
        column = schema.get_column(name)
        if column is None:
            raise ValidationError(f"Column: {name} does not exist in the table: {found.identifier}.")
        for kind, text in ((ComputedColumn, "computed"), (MetadataColumn, "metadata")):
            if isinstance(column, kind):
                raise ValidationError(
                    f"Column: {name} is a {text} column, ANALYZE TABLE does not support {text} column."
                )
        columns.append(column)
    return columns


def _check_keys(statement: AnalyzeTable, found: FoundTable) -> None:
    given = [key for key, _ in statement.partition]
    keys = found.table.partition_keys
    if not keys and given:
        raise ValidationError(
            f"Invalid ANALYZE TABLE statement. Table: {found.identifier} is not a partition table, while partition "
            "values are given."
        )
    if sorted(given) != sorted(keys):
        raise ValidationError(
            "Invalid ANALYZE TABLE statement. For partition table, all partition keys should be specified explicitly. "
            f"The given partition keys: [{', '.join(given)}] are not match the target partition keys: "
            f"[{', '.join(keys)}]."
        )


def _partitions(statement: AnalyzeTable, found: FoundTable, session: TableSession) -> Sequence[CatalogPartitionSpec]:
    """The partitions of the catalog that have the values of the statement."""
    given = {key: value.name for key, value in statement.partition if value is not None}
    catalog = session.manager.get_catalog(found.identifier.catalog_name)
    specs = [
        spec
        for spec in catalog.list_partitions(found.identifier.to_object_path())
        if given.items() <= spec.partition_spec.items()
    ]
    if given and not specs:
        shown = ", ".join(f"{key}={value}" for key, value in given.items())
        raise ValidationError(
            f"The catalog has no partition {shown} of the table {found.identifier}.",
            hint="ALTER TABLE … ADD PARTITION adds one.",
        )
    return specs


def _measured(
    session: TableSession, identifier: ObjectIdentifier, columns: Sequence[Column], spec: CatalogPartitionSpec | None
) -> tuple[CatalogTableStatistics, CatalogColumnStatistics]:
    """One query over a table or a partition."""
    parts = {column.name: _expressions(column) for column in columns}
    expressions = ["COUNT(*)", *(text for each in parts.values() for text in each.values())]
    sql = f"SELECT {', '.join(expressions)} FROM {identifier}"  # noqa: S608 - names and values are quoted
    if spec is not None:
        schema = session.resolved_schema(session.manager.get_table(identifier).table)
        sql += " WHERE " + " AND ".join(
            f"{quoted(key)} = CAST({string_literal(value)} AS {_type(schema.get_column(key))})"
            for key, value in spec.partition_spec.items()
        )
    with execute_query(session, session.bind(parse_query(sql), sql)).collect() as rows:
        values: list[Any] = list(next(rows))
    count, rest = values[0], iter(values[1:])
    found = {name: ColumnStatistics(**{key: next(rest) for key in each}) for name, each in parts.items()}
    return CatalogTableStatistics(row_count=count), CatalogColumnStatistics(found)


def _type(column: Column | None) -> str:
    assert column is not None
    return column.data_type.copy(nullable=True).as_summary_string()


def _expressions(column: Column) -> dict[str, str]:
    """What is measured of a column, by the fields of its statistics."""
    name, root = quoted(column.name), column.data_type.root
    found = {"null_count": f"COUNT(*) - COUNT({name})"}
    if root in _ORDERED:
        found |= {"distinct_count": f"COUNT(DISTINCT {name})", "min": f"MIN({name})", "max": f"MAX({name})"}
    elif root in (Root.CHAR, Root.VARCHAR):
        found |= {
            "distinct_count": f"COUNT(DISTINCT {name})",
            "max_length": f"MAX(CHAR_LENGTH({name}))",
            "average_length": f"AVG(CAST(CHAR_LENGTH({name}) AS DOUBLE))",
        }
    elif root is Root.BOOLEAN:
        found |= {
            "true_count": f"COUNT(CASE WHEN {name} THEN 1 END)",
            "false_count": f"COUNT(CASE WHEN NOT {name} THEN 1 END)",
        }
    return found
