"""Streams as tables, and tables as streams."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.typeinfo import Types, from_logical
from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.table.binder.schemas import resolve_schema
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import BUILTIN_CATALOG, BUILTIN_DATABASE, FoundTable
from firesteel.table.catalog.objects import CatalogBaseTable
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.environment.planning.program_sink import ProgramSink, beside
from firesteel.table.environment.planning.scans import over_source
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.source_watermarks import SourceWatermark
from firesteel.table.plan.streaming import Sink
from firesteel.table.plan.time_attributes import as_rowtime, regular
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.runtime.operators.timed_rows import TimedRowsToColumnsSpec
from firesteel.table.schema import Schema, UnresolvedMetadataColumn, UnresolvedPhysicalColumn
from firesteel.table.translate.catalogue import Translator
from firesteel.types.logical import FieldsType, LogicalTypeRoot, RowField, RowType

__all__ = [
    "DataStreamSource",
    "anonymous",
    "from_stream",
    "is_anonymous",
    "plain_row_type",
    "to_stream",
    "type_of_stream",
]

_numbers = itertools.count(1)
_SOURCE_WATERMARK = "SOURCE_WATERMARK()"
_ROWTIME = "rowtime"


def anonymous(kind: str) -> ObjectIdentifier:
    """A name for a table that has none."""
    return ObjectIdentifier(BUILTIN_CATALOG, BUILTIN_DATABASE, f"Unregistered_{kind}_{next(_numbers)}")


def is_anonymous(identifier: ObjectIdentifier) -> bool:
    """Whether a table has no name of its own."""
    return identifier.object_name.startswith("Unregistered_")


@dataclass(frozen=True, eq=False)
class DataStreamSource(ScanTableSource):
    """The records of a stream of the program."""

    stream: DataStream[Any]
    physical_type: RowType
    mode: ChangelogMode
    is_single: bool = False
    """Whether records are single values instead of rows."""
    time_field: RowField | None = None
    """The column with the timestamps of the records."""
    belongs_to_program = True

    @property
    def produced_type(self) -> RowType:
        timed = () if self.time_field is None else (self.time_field,)
        return RowType([*self.physical_type.fields, *timed], nullable=False)

    @property
    def is_bounded(self) -> bool:
        return False

    @property
    def changelog_mode(self) -> ChangelogMode:
        return self.mode

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        # the operators become part of the job that reads the table, not of the program of the stream
        stream: DataStream[Any] = DataStream(context.environment, self.stream._transformation)
        if self.is_single:
            stream = beside(stream.map(_as_tuple), stream)
        row_type = RowType([RowField(part.name, part.type.copy()) for part in self.physical_type.fields])
        if self.time_field is None:
            spec = RowsToColumnsSpec(row_type)
        else:
            spec = TimedRowsToColumnsSpec(row_type, produced_type=self.produced_type)
        return beside(stream._transform(context.name, spec, None), stream)

    def with_metadata(self, keys: Any, produced_type: RowType) -> DataStreamSource | None:
        if tuple(keys) != (_ROWTIME,):
            raise ValidationError(
                f"Invalid metadata key '{keys[0]}' in column of the table: a stream has the metadata 'rowtime'."
            )
        return replace(self, time_field=produced_type.fields[-1])

    def as_summary_string(self) -> str:
        return "DataStream"


def _as_tuple(value: Any) -> tuple[Any]:
    return (value,)


def from_stream(
    session: TableSession, stream: DataStream[Any], schema: Schema | None, mode: ChangelogMode
) -> LogicalNode:
    """The plan of a table of the records of a stream."""
    type_ = type_of_stream(stream)
    is_single = not isinstance(type_, FieldsType)
    fields = [RowField("f0", type_)] if is_single else list(type_.fields)
    declared = schema or Schema()
    if not any(isinstance(column, UnresolvedPhysicalColumn) for column in declared.columns):
        derived = tuple(UnresolvedPhysicalColumn(part.name, part.type) for part in fields)
        declared = replace(declared, columns=(*derived, *declared.columns))
    watermarks = declared.watermarks
    is_source_watermark = bool(watermarks) and str(watermarks[0].expression).strip().upper() == _SOURCE_WATERMARK
    resolved = resolve_schema(
        replace(declared, watermarks=()) if is_source_watermark else declared, session.expression_session()
    )
    physical = resolved.to_physical_row_data_type()
    _check_names(physical, fields, is_single)
    source: ScanTableSource = DataStreamSource(stream, physical, mode, is_single)
    metadata = [column for column in declared.columns if isinstance(column, UnresolvedMetadataColumn)]
    if metadata:
        keys = list(dict.fromkeys(column.metadata_key or column.name for column in metadata))
        types = {column.name: column.data_type for column in resolved.columns}
        timed = RowField(f"$metadata${keys[0]}", regular(types[metadata[0].name]))
        source = source.with_metadata(keys, RowType([*physical.fields, timed], nullable=False)) or source
    key = resolved.primary_key
    places = tuple(physical.field_names.index(name) for name in key.columns) if key else ()
    found = FoundTable(anonymous("DataStream_Source"), CatalogBaseTable.create_table(declared), is_temporary=True)
    node = over_source(found, resolved, source, (), places, session.is_streaming)
    if is_source_watermark and session.is_streaming:
        names = node.row_type.field_names
        if watermarks[0].column_name not in names:
            raise ValidationError(
                f"The rowtime attribute field '{watermarks[0].column_name}' is not defined in the table schema."
            )
        index = names.index(watermarks[0].column_name)
        types_ = [as_rowtime(part.type) if at == index else part.type for at, part in enumerate(node.row_type.fields)]
        node = SourceWatermark(node, RowType.of(names, types_, nullable=False), index)
    return node


def type_of_stream(stream: DataStream[Any]) -> Any:
    """The declared type of the records of a stream."""
    info = stream._transformation.output_type
    type_ = None if info is None else info.to_logical()
    if type_ is None or type_.root is LogicalTypeRoot.RAW:
        raise ValidationError(
            "The stream has no type, so its table would have no columns.",
            hint="Declare it: stream.map(…, output_type=Types.ROW_NAMED(['id', 'n'], [Types.INT(), Types.STRING()])).",
        )
    return type_


def _check_names(physical: RowType, fields: list[RowField], is_single: bool) -> None:
    known = [part.name for part in fields]
    if is_single and len(physical.fields) == 1:
        return
    unknown = [name for name in physical.field_names if name not in known]
    if unknown:
        raise ValidationError(
            f"Unable to find a field named '{unknown[0]}' in the physical data type derived from the given type "
            f"information for schema declaration. The fields are {', '.join(known)}."
        )


def to_stream(session: TableSession, plan: LogicalNode, accepts: ChangelogMode) -> DataStream[Any]:
    """A stream of the rows of a query, in the environment of the program."""
    root = optimize(
        Sink(plan, anonymous("DataStream_Sink"), ProgramSink("ColumnsToRows", ColumnsToRowsSpec(), accepts)),
        OptimizerOptions.of(session.configuration),
    )
    translator = Translator(session.environment, [root], session.configuration, session.expression_session())
    rows: DataStream[Any] = translator.translate(root)
    rows._transformation.output_type = from_logical(plain_row_type(plan.row_type), Types.LIST)
    return rows


def plain_row_type(row_type: RowType) -> RowType:
    """The row type without time attributes, as records have it."""
    return RowType.of(row_type.field_names, [regular(part.type) for part in row_type.fields])
