"""Columns of a stream that are declared by expressions, and streams whose records have a declared type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from firesteel.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from firesteel.common.types import Row, RowKind
from firesteel.datastream.data_stream import DataStream
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import InputRef
from firesteel.table.catalog.columns import PhysicalColumn
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.environment.planning.inserts import cast_to_columns
from firesteel.table.environment.planning.program_sink import beside
from firesteel.table.environment.planning.selection import only_names
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.streams import from_stream, to_stream, type_of_stream
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import LogicalNode, Project
from firesteel.table.schema import Schema
from firesteel.types.logical import FieldsType

__all__ = ["from_stream_with_fields", "to_typed_stream", "with_target_schema"]

_ROWTIME, _PROCTIME = "$rowtime", "$proctime"


class _Field(NamedTuple):
    """A declared column: the name it refers to, its own name, and the time that it is, if any."""

    source: str
    name: str
    time: str | None


def from_stream_with_fields(
    session: TableSession, stream: DataStream[Any], items: Sequence[exp.Expression]
) -> LogicalNode:
    """The plan of a table of a stream: columns by name if one of them is a field of the records, else by position."""
    fields = [_field(item) for item in items]
    type_ = type_of_stream(stream)
    known = list(type_.field_names) if isinstance(type_, FieldsType) else ["f0"]
    by_name = any(field.time is None and field.source in known for field in fields)
    schema = Schema.new_builder()
    if any(field.time == "ROWTIME" for field in fields):
        schema.column_by_metadata(_ROWTIME, "TIMESTAMP(3)", "rowtime").watermark(_ROWTIME, "SOURCE_WATERMARK()")
    if any(field.time == "PROCTIME" for field in fields):
        schema.column_by_expression(_PROCTIME, "PROCTIME()")
    plan = from_stream(session, stream, schema.build(), ChangelogMode.insert_only())
    names = plan.row_type.field_names
    chosen: list[str] = []
    for position, field in enumerate(fields):
        if field.time is not None:
            chosen.append(_ROWTIME if field.time == "ROWTIME" else _PROCTIME)
        elif by_name and field.source in known:
            chosen.append(field.source)
        elif not by_name and position < len(known):
            chosen.append(known[position])
        else:
            raise ValidationError(
                f"{field.source} is not a field of type {type_}. Expected: {', '.join(known)}.",
                hint="Name the fields of the records, or give new names to all of them in their order.",
            )
    twice = sorted({field.name for field in fields if [each.name for each in fields].count(field.name) > 1})
    if twice:
        raise ValidationError(f"Field names must be unique. Found duplicates: {twice}")
    places = [names.index(name) for name in chosen]
    references = tuple(InputRef(plan.row_type.fields[place].type.copy(True), place, names[place]) for place in places)
    return Project(plan, references, tuple(field.name for field in fields))


def _field(item: exp.Expression) -> _Field:
    name = item.alias if isinstance(item, exp.Alias) else None
    inner = item.this if isinstance(item, exp.Alias) else item
    time = None
    if isinstance(inner, nodes.WindowProperty):
        time, inner = str(inner.args["name"]), inner.this
        if time not in ("ROWTIME", "PROCTIME"):
            raise ValidationError("A column of a stream is a field, or a time attribute: rowtime or proctime.")
    (source,) = only_names([inner], "A column of a stream")
    return _Field(source, name or source, time)


def with_target_schema(session: TableSession, plan: LogicalNode, schema: Schema) -> LogicalNode:
    """The rows with the columns of a schema, by position and with implicit casts."""
    resolved = session.resolved_schema_of(schema)
    columns = [column for column in resolved.columns if column.is_persisted()]
    if not all(column.is_physical() for column in columns):
        raise ValidationError(
            "The target schema of a stream has physical columns only.",
            hint="Records get the time of the rowtime column as their timestamp without a column of metadata.",
        )
    return cast_to_columns(plan, columns, "the stream") if columns else plan


def to_typed_stream(
    session: TableSession, plan: LogicalNode, type_info: TypeInformation, *, retracts: bool
) -> DataStream[Any]:
    """A stream of records of a type, columns by position; of changes, with a flag that is false for old rows."""
    type_ = type_info.to_logical()
    if not isinstance(type_, FieldsType):
        raise ValidationError(f"Records of a table are tuples or rows, not {type_info}.")
    columns = [PhysicalColumn(part.name, part.type) for part in type_.fields]
    mode = ChangelogMode.all() if retracts else ChangelogMode.insert_only()
    stream = to_stream(session, cast_to_columns(plan, columns, "the stream"), mode)
    is_tuple = isinstance(type_info, TupleTypeInfo)
    output = Types.TUPLE([Types.BOOLEAN(), type_info]) if retracts else type_info
    if not is_tuple and not retracts:
        stream._transformation.output_type = output
        return stream
    function = _Flagged(is_tuple) if retracts else _as_tuple
    return beside(stream.map(function, output), stream)


def _as_tuple(row: Row) -> tuple[Any, ...]:
    return tuple(row)


class _Flagged:
    """Makes pairs of a flag and a record."""

    def __init__(self, is_tuple: bool) -> None:
        self._is_tuple = is_tuple

    def __call__(self, row: Row) -> tuple[bool, Any]:
        is_new = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        row.set_row_kind(RowKind.INSERT)
        return is_new, tuple(row) if self._is_tuple else row
