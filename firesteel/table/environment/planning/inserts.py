"""INSERT: the plan of a query that is written to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from firesteel.config import table_options
from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.places import position_at
from firesteel.table.binder.scope import Scope
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.catalog.columns import Column, MetadataColumn
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.factory import find_factory
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.environment.planning.scans import factory_context, options_text
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.parser.statements.dml import Insert
from firesteel.table.plan.constraints import ConstraintEnforcer
from firesteel.table.plan.nodes import LogicalNode, Project
from firesteel.table.plan.streaming import Sink, SinkAbilities
from firesteel.table.plan.time_attributes import regular
from firesteel.types.logical import LogicalType, RowType

__all__ = ["bind_insert", "cast_to_columns", "find_sink_table", "sink_for", "sink_of", "sink_with"]


def bind_insert(session: TableSession, insert: Insert) -> Sink:
    """The plan of an INSERT statement."""
    if insert.upsert:
        raise ValidationError("UPSERT INTO is not supported.", hint="Write INSERT INTO a table with a PRIMARY KEY.")
    sql = insert.source.sql if insert.source is not None else ""
    place = position_at(insert.target, sql) if sql else None
    try:
        return replace(_bound(session, insert, sql), place=place)
    except ValidationError as error:
        raise error.at(place) from error.__cause__


def _bound(session: TableSession, insert: Insert, sql: str) -> Sink:
    found = find_sink_table(session, insert.path)
    schema = session.resolved_schema(found.table)
    hints = {key: value for hint in insert.hints for key, value in hint.args.get("options") or ()}
    static = {name: _constant(session, value, sql) for name, value in insert.partition}
    plan = session.bind(insert.query, sql)
    plan = _with_all_columns(plan, insert.columns, static, found, schema)
    partition = {name: str(value.value) for name, value in static.items()}
    sink = sink_of(session, found, plan, hints, overwrite=insert.overwrite, partition=partition)
    # as in Flink, the clause means nothing in batch mode
    return replace(sink, on_conflict=insert.on_conflict if session.is_streaming else None)


def find_sink_table(session: TableSession, path: Sequence[str]) -> FoundTable:
    """The table to which rows are written."""
    identifier = session.manager.qualify(path)
    found = session.find_table(identifier)
    if found is None:
        catalogs = ", ".join(session.manager.list_catalogs())
        raise ValidationError(
            f"Cannot find table '{identifier}' in any of the catalogs [{catalogs}], nor as a temporary table.",
            hint=session.nearest_table(identifier.object_name),
        )
    if found.table.kind is TableKind.VIEW:
        raise ValidationError(
            f"Sink '{identifier.as_summary_string()}' does not exists", hint="It is a view, which cannot be written to."
        )
    return found


def sink_of(
    session: TableSession,
    found: FoundTable,
    plan: LogicalNode,
    hints: Mapping[str, str] | None = None,
    *,
    overwrite: bool = False,
    partition: Mapping[str, str] | None = None,
) -> Sink:
    """The plan that writes the rows of another to a table."""
    name = found.identifier.as_summary_string()
    schema = session.resolved_schema(found.table)
    columns = [column for column in schema.columns if column.is_persisted()]
    metadata = _metadata_of(columns)
    abilities = SinkAbilities(tuple((hints or {}).items()), overwrite, tuple((partition or {}).items()))
    sink = sink_with(session, found, abilities)
    plan = cast_to_columns(plan, columns, name)
    if metadata:
        plan = _as_metadata(plan, metadata, sink.writable_metadata)
    not_null = tuple(index for index, column in enumerate(columns) if not column.data_type.nullable)
    if any(plan.row_type.fields[index].type.nullable for index in not_null):
        policy = session.configuration.get(table_options.NOT_NULL_ENFORCER)
        plan = ConstraintEnforcer(plan, not_null, policy == "DROP")
    key = schema.primary_key
    names = [column.name for column in columns]
    places = tuple(names.index(name) for name in key.columns) if key else ()
    return Sink(plan, found.identifier, sink, places, abilities=abilities)


def sink_with(session: TableSession, found: FoundTable, abilities: SinkAbilities) -> DynamicTableSink:
    """The sink of a table for an INSERT."""
    name = found.identifier.as_summary_string()
    columns = [column for column in session.resolved_schema(found.table).columns if column.is_persisted()]
    sink = sink_for(session, found, {**found.table.options, **dict(abilities.options)})
    metadata = _metadata_of(columns)
    if metadata:
        sink = _with_metadata(sink, metadata, name)
    if abilities.partition:
        partition = dict(abilities.partition)
        sink = _changed(sink.with_partition(partition), f"Table '{name}' cannot be written by partition.")
    if abilities.overwrite:
        sink = _changed(
            sink.with_overwrite(),
            f"INSERT OVERWRITE requires that the underlying DynamicTableSink of table '{name}' implements the "
            "SupportsOverwrite interface.",
        )
    return sink


def _metadata_of(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: _metadata_key(column) for column in columns if not column.is_physical()}


def sink_for(session: TableSession, found: FoundTable, options: Mapping[str, str]) -> DynamicTableSink:
    """The sink of the connector of a table."""
    schema = session.resolved_schema(found.table)
    context = factory_context(found, schema, options, session.configuration, session.is_streaming)
    try:
        return find_factory(context, options.get("connector")).create_sink(context)
    except ValidationError as error:
        raise ValidationError(
            f"Unable to create a sink for writing table '{found.identifier.as_summary_string()}'.\n\n"
            f"Table options are:\n\n{options_text(options)}\n\n{error.reason}",
            hint=error.hint,
        ) from error


def _changed(sink: DynamicTableSink | None, message: str) -> DynamicTableSink:
    if sink is None:
        raise ValidationError(message)
    return sink


def _metadata_key(column: Column) -> str:
    assert isinstance(column, MetadataColumn)
    return column.metadata_key or column.name


def _with_metadata(sink: DynamicTableSink, metadata: Mapping[str, str], name: str) -> DynamicTableSink:
    known = sink.writable_metadata
    if not known:
        raise ValidationError(
            f"Table '{name}' declares persistable metadata columns, but the underlying DynamicTableSink doesn't "
            "implement the SupportsWritingMetadata interface. If the column should not be persisted, it can be "
            "declared with the VIRTUAL keyword."
        )
    for column, key in metadata.items():
        if key not in known:
            raise ValidationError(
                f"Invalid metadata key '{key}' in column '{column}' of table '{name}'. The sink "
                f"'{sink.as_summary_string()}' supports the following metadata keys for writing:\n"
                + "\n".join(sorted(known)),
                hint="If the column should not be persisted, declare it with the VIRTUAL keyword.",
            )
    return sink.with_metadata({key: column for column, key in metadata.items()})


def _as_metadata(plan: LogicalNode, metadata: Mapping[str, str], types: Mapping[str, LogicalType]) -> LogicalNode:
    """The rows with the types that metadata has."""
    expressions: list[Expression] = []
    for index, part in enumerate(plan.row_type.fields):
        reference = InputRef(part.type, index, part.name)
        target = types[metadata[part.name]] if part.name in metadata else part.type
        expressions.append(reference if regular(part.type).copy() == target.copy() else cast_to(reference, target))
    return Project(plan, tuple(expressions), plan.row_type.field_names)


def _constant(session: TableSession, node: object, sql: str) -> Literal:
    bound = ExpressionBinder(Scope(()), sql, session.expression_session()).bind(node)  # type: ignore[arg-type]
    if not isinstance(bound, Literal):
        raise ValidationError("The value of a static partition must be a literal.")
    return bound


def _with_all_columns(
    plan: LogicalNode,
    targets: Sequence[Sequence[str]],
    static: Mapping[str, Literal],
    found: FoundTable,
    schema: ResolvedSchema,
) -> LogicalNode:
    """The query with columns for all of the table: static partitions, and NULL where it has none."""
    name, keys = found.identifier.as_summary_string(), found.table.partition_keys
    for column in static:
        if column not in {each.name for each in schema.columns}:
            raise ValidationError(f"Unknown target column '{column}'")
        if column not in keys:
            raise ValidationError(
                f"Static partition column '{column}' should be in the partition keys list [{', '.join(keys)}] for "
                f"table '{name}'."
            )
    if not targets and not static:
        return plan
    columns = {column.name: column for column in schema.columns if column.is_persisted()}
    wanted = [_target(path, columns) for path in targets] or [column for column in columns if column not in static]
    for index, column in enumerate(wanted):
        if column in wanted[:index] or column in static:
            raise ValidationError(f"Target column '{column}' is assigned more than once")
    fields = plan.row_type.fields
    if targets and len(wanted) != len(fields):
        raise ValidationError("Number of columns must match number of query columns")
    if len(wanted) != len(fields):
        raise _mismatch(name, "Different number of columns.", plan, [columns[each] for each in wanted])
    expressions: list[Expression] = []
    for column, declared in columns.items():
        if column in static:
            expressions.append(cast_to(static[column], declared.data_type))
        elif column in wanted:
            index = wanted.index(column)
            expressions.append(InputRef(fields[index].type, index, fields[index].name))
        elif declared.data_type.nullable:
            expressions.append(Literal(declared.data_type, None))
        else:
            raise ValidationError(f"Column '{column}' has no default value and does not allow NULLs")
    return Project(plan, tuple(expressions), tuple(columns))


def _target(path: Sequence[str], columns: Mapping[str, Column]) -> str:
    if len(path) > 1:
        raise ValidationError(f"Writing to a part of a column is not supported: '{'.'.join(path)}'.")
    if path[0] not in columns:
        raise ValidationError(f"Unknown target column '{path[0]}'", hint=f"The columns are {', '.join(columns)}.")
    return path[0]


def cast_to_columns(plan: LogicalNode, columns: Sequence[Column], name: str) -> LogicalNode:
    """The query with the types of the table, as far as values are cast without being asked for."""
    fields = plan.row_type.fields
    if len(fields) != len(columns):
        raise _mismatch(name, "Different number of columns.", plan, columns)
    expressions: list[Expression] = []
    for index, (part, column) in enumerate(zip(fields, columns, strict=True)):
        source, target = regular(part.type), regular(column.data_type)
        reference = InputRef(part.type, index, part.name)
        if not supports_implicit_cast(source, target):
            cause = f"Incompatible types for sink column '{column.name}' at position {index + 1}."
            raise _mismatch(name, cause, plan, columns)
        expressions.append(reference if _is_stored_alike(source, target) else cast_to(reference, target))
    names = [column.name for column in columns]
    if all(isinstance(expression, InputRef) for expression in expressions) and list(plan.row_type.field_names) == names:
        return plan
    return Project(plan, tuple(expressions), tuple(names))


def _is_stored_alike(source: LogicalType, target: LogicalType) -> bool:
    """Whether values are the same but for their length, which is not enforced."""
    if source.copy() == target.copy():
        return True
    text = ("CHAR", "VARCHAR")
    binary = ("BINARY", "VARBINARY")
    return any(source.root.name in kinds and target.root.name in kinds for kinds in (text, binary))


def _mismatch(name: str, cause: str, plan: LogicalNode, columns: Sequence[Column]) -> ValidationError:
    return ValidationError(
        f"Column types of query result and sink for '{name}' do not match.\nCause: {cause}\n\n"
        f"Query schema: [{_schema_text(plan.row_type)}]\n"
        f"Sink schema:  [{', '.join(f'{each.name}: {each.data_type.copy().as_summary_string()}' for each in columns)}]"
    )


def _schema_text(row_type: RowType) -> str:
    return ", ".join(f"{part.name}: {part.type.as_summary_string()}" for part in row_type.fields)
