"""DESCRIBE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import PhysicalColumn
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, rows_of, strings
from firesteel.table.environment.statements.dispatch import execute_statement, plan_of
from firesteel.table.environment.statements.models import describe_model
from firesteel.table.parser.statements import utility
from firesteel.types.logical import BooleanType, LogicalType, VarCharType

__all__ = ["describe_table"]

_STRING = VarCharType()
_COLUMNS: dict[str, LogicalType] = {
    "name": _STRING,
    "type": _STRING,
    "null": BooleanType(),
    "key": _STRING,
    "extras": _STRING,
    "watermark": _STRING,
}


@execute_statement.register
def _describe(statement: utility.DescribeObject, session: TableSession) -> TableResult:
    if statement.kind == "TABLE":
        wanted = statement.column
        return describe_table(session, statement.path, lambda names: [n for n in names if wanted in (None, n)])
    if statement.kind == "CATALOG":
        name = statement.path[0]
        descriptor = session.manager.store.get_catalog(name)
        if descriptor is None:
            raise ValidationError(f"Cannot obtain metadata information from Catalog {name}.")
        options, comment = descriptor.options, descriptor.comment
        rows = [("name", name), ("type", options.get("type")), ("comment", comment or "")]
        if statement.extended:
            rows += ((f"option:{key}", value) for key, value in options.items() if key != "type")
        return strings(["info name", "info value"], rows)
    if statement.kind == "MODEL":
        return describe_model(statement.path, session)
    raise ValidationError(f"DESCRIBE {statement.kind} is not supported yet.")


@execute_statement.register
def _describe_query(statement: utility.DescribeStatement, session: TableSession) -> TableResult:
    """The columns of a query."""
    plan = plan_of(statement.statement, session)
    schema = ResolvedSchema(PhysicalColumn(part.name, part.type) for part in plan.row_type.fields)
    return _described(schema, schema.get_column_names())


def describe_table(
    session: TableSession, path: Sequence[str], chosen: Callable[[list[str]], Iterable[str]]
) -> TableResult:
    """The columns of a table or view that are chosen of all."""
    identifier = session.manager.qualify(path)
    found = session.manager.find_table(identifier)
    if found is None:
        raise ValidationError(
            f"Tables or views with the identifier '{identifier.as_summary_string()}' doesn't exist.",
            hint=session.nearest_table(identifier.object_name),
        )
    schema = session.resolved_schema(found.table)
    return _described(schema, chosen(schema.get_column_names()))


def _described(schema: ResolvedSchema, chosen: Iterable[str]) -> TableResult:
    names = set(chosen)
    key = schema.primary_key
    watermarks = {spec.rowtime_attribute: spec.watermark_expression for spec in schema.watermark_specs}
    has_comments = any(column.comment for column in schema.columns)
    rows = []
    for column in schema.columns:
        if column.name not in names:
            continue
        watermark = watermarks.get(column.name)
        row = (
            column.name,
            _type_text(column.data_type),
            column.data_type.nullable,
            f"PRI({', '.join(key.columns)})" if key is not None and column.name in key.columns else None,
            column.explain_extras(),
            None if watermark is None else watermark.as_summary_string(),
            *((column.comment,) if has_comments else ()),
        )
        rows.append(row)
    types = {**_COLUMNS, **({"comment": _STRING} if has_comments else {})}
    described = ResolvedSchema.physical(list(types), list(types.values()))
    return TableResult(described, rows_of(described.to_physical_row_data_type(), rows))


def _type_text(type_: LogicalType) -> str:
    """The type without its nullability."""
    return type_.copy(nullable=True).as_summary_string()
