"""UPDATE, DELETE and TRUNCATE of bounded tables.

A connector that changes rows by key gets the keys that the condition selects, with the new values. One that cannot, but
can replace all rows of a table at once, gets the rows as they are afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from firesteel.filesystem.stores import Stores
from firesteel.table.binder.calls import call, cast_to
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Case, Expression, InputRef
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.catalog.columns import Column
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.row_changes import RowChanges
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.environment.planning.inserts import find_sink_table, sink_for, sink_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import execute_inserts, execute_query
from firesteel.table.environment.results.result import PrintStyle, TableResult, ok, rows_of
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.names import quoted
from firesteel.table.parser import parse_query
from firesteel.table.parser.statements.dml import Delete, TruncateTable, Update
from firesteel.table.plan.nodes import Filter, LogicalNode, Project
from firesteel.types.logical import BigIntType, BooleanType

__all__: list[str] = []

_ABILITIES = "org.apache.flink.table.connector.sink.abilities"


@execute_statement.register
def _update(statement: Update, session: TableSession) -> TableResult:
    if session.is_streaming:
        raise ValidationError("UPDATE statement is not supported for streaming mode now.")
    found = find_sink_table(session, statement.path)
    columns = _columns(session, found)
    names = [column.name for column in columns]
    for name, _ in statement.assignments:
        if name not in names:
            raise ValidationError(f"Unknown target column '{name}'", hint=f"The columns are {', '.join(names)}.")
    rows = _bound(session, statement, [value for _, value in statement.assignments], names)
    sink, changes = _changing(session, found, "update", "SupportsRowLevelUpdate")
    condition = InputRef(BooleanType(), len(names), "$condition")
    values = {
        name: _assigned(rows, len(names) + 1 + index, columns[names.index(name)])
        for index, (name, _) in enumerate(statement.assignments)
    }
    if changes is not None:
        chosen = [*values.values(), *(_reference(rows, names.index(name)) for name in changes.key)]
        plan = Project(Filter(rows, condition), tuple(chosen), tuple(f"c{index}" for index in range(len(chosen))))
        return _affected(changes.update(list(values), _collected(session, plan)))
    changed = [
        Case(column.data_type, (condition,), (values[column.name],), _reference(rows, index))
        if column.name in values
        else _reference(rows, index)
        for index, column in enumerate(columns)
    ]
    return _replaced(session, found, sink, Project(rows, tuple(changed), tuple(names)))


@execute_statement.register
def _delete(statement: Delete, session: TableSession) -> TableResult:
    found = find_sink_table(session, statement.path)
    if session.is_streaming:
        raise ValidationError("DELETE statement is not supported for streaming mode now.")
    names = [column.name for column in _columns(session, found)]
    rows = _bound(session, statement, (), names)
    sink, changes = _changing(session, found, "delete", "SupportsRowLevelDelete")
    condition = InputRef(BooleanType(), len(names), "$condition")
    if changes is not None:
        chosen = tuple(_reference(rows, names.index(name)) for name in changes.key)
        plan = Project(Filter(rows, condition), chosen, tuple(f"c{index}" for index in range(len(chosen))))
        return _affected(changes.delete(_collected(session, plan)))
    kept = Filter(rows, call("IS_NOT_TRUE", [condition]))
    chosen = tuple(_reference(rows, index) for index in range(len(names)))
    return _replaced(session, found, sink, Project(kept, chosen, tuple(names)))


@execute_statement.register
def _truncate(statement: TruncateTable, session: TableSession) -> TableResult:
    found = find_sink_table(session, statement.path)
    if session.is_streaming:
        raise ValidationError("TRUNCATE TABLE statement is not supported in streaming mode.")
    sink = sink_for(session, found, found.table.options)
    stores = Stores.of(session.configuration)
    try:
        is_done = stores.bind(sink.truncate)()
    finally:
        stores.close()
    if not is_done:
        raise ValidationError(
            f"TRUNCATE TABLE statement is not supported for the table {found.identifier.as_summary_string()} since the "
            f"table hasn't implemented the interface {_ABILITIES}.SupportsTruncate."
        )
    return ok()


def _changing(
    session: TableSession, found: FoundTable, operation: str, interface: str
) -> tuple[DynamicTableSink, RowChanges | None]:
    """How rows are changed: by a sink that replaces all of them, or one by one."""
    sink = sink_for(session, found, found.table.options)
    changes = sink.row_changes()
    replacing = sink.replacing_all()
    if changes is None and replacing is None:
        _refuse(found, operation, interface)
    return replacing or sink, changes


def _refuse(found: FoundTable, operation: str, interface: str) -> NoReturn:
    raise ValidationError(
        f"Can't perform {operation} operation of the table {found.identifier.as_summary_string()} because the "
        f"corresponding dynamic table sink has not yet implemented {_ABILITIES}.{interface}."
    )


def _columns(session: TableSession, found: FoundTable) -> list[Column]:
    return [column for column in session.resolved_schema(found.table).columns if column.is_persisted()]


def _bound(
    session: TableSession, statement: Update | Delete, values: Sequence[exp.Expression], names: Sequence[str]
) -> LogicalNode:
    """The rows of the table, then the condition, then values of columns that are assigned to."""
    path, columns = ".".join(map(quoted, statement.path)), ", ".join(map(quoted, names))
    alias = quoted(statement.alias or statement.path[-1])
    query = parse_query(f"SELECT {columns}, TRUE AS `$condition` FROM {path} AS {alias}")  # noqa: S608 - quoted
    items = list(query.expressions)
    if statement.where is not None:
        items[-1] = exp.alias_(statement.where.copy(), "$condition", quoted=True)
    items += (exp.alias_(value.copy(), f"$value{index}", quoted=True) for index, value in enumerate(values))
    query.set("expressions", items)
    plan = session.bind(query, statement.source.sql if statement.source is not None else "")
    type_ = plan.row_type.fields[len(names)].type
    if not isinstance(type_, BooleanType):
        raise ValidationError(f"WHERE clause must be a condition, got {type_.as_summary_string()}.")
    return plan


def _reference(rows: LogicalNode, index: int) -> InputRef:
    part = rows.row_type.fields[index]
    return InputRef(part.type, index, part.name)


def _assigned(rows: LogicalNode, index: int, column: Column) -> Expression:
    value = _reference(rows, index)
    if not supports_implicit_cast(value.type, column.data_type):
        raise ValidationError(
            f"Cannot assign to target field '{column.name}' of type {column.data_type.as_summary_string()} from source "
            f"field of type {value.type.as_summary_string()}."
        )
    return cast_to(value, column.data_type)


def _replaced(session: TableSession, found: FoundTable, sink: DynamicTableSink, rows: LogicalNode) -> TableResult:
    written = sink_of(session, found, rows)
    return execute_inserts(session, [replace(written, sink=sink)])


def _collected(session: TableSession, plan: LogicalNode) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for batch in execute_query(session, plan)._rows:
        rows += zip(*(column.to_pylist() for column in batch.data.columns), strict=True)
    return rows


def _affected(count: int) -> TableResult:
    schema = ResolvedSchema.physical(["rows affected"], [BigIntType()])
    return TableResult(schema, rows_of(schema.to_physical_row_data_type(), [(count,)]), style=PrintStyle.RAW)
