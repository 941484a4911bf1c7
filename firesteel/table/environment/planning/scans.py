"""The plan of a table: its source, computed columns, and watermarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firesteel.config.configuration import Configuration, shown
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.catalog.columns import Column, ComputedColumn, MetadataColumn
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.factory import FactoryContext, find_factory
from firesteel.table.connector.source import ScanTableSource
from firesteel.table.connector.watermark_options import WATERMARK_OPTIONS, watermark_params
from firesteel.table.plan.nodes import LogicalNode, Project, TableScan
from firesteel.table.plan.rewriting import inlined
from firesteel.table.plan.streaming import WatermarkAssigner
from firesteel.table.plan.time_attributes import regular
from firesteel.types.logical import RowField, RowType

__all__ = ["ScanBuilder", "factory_context", "options_text"]


class ScanBuilder:
    """Builds the plans of tables that are read."""

    def __init__(self, configuration: Configuration, is_streaming: bool) -> None:
        self._configuration = configuration
        self._is_streaming = is_streaming

    def build(self, found: FoundTable, schema: ResolvedSchema, hints: Mapping[str, str]) -> LogicalNode:
        """The plan of a table, with the options of a hint."""
        options = {**found.table.options, **hints}
        source = self.source(found, schema, options)
        key = schema.primary_key
        physical = [column.name for column in schema.columns if column.is_physical()]
        places = tuple(physical.index(name) for name in key.columns) if key else ()
        node = over_source(found, schema, source, tuple(hints.items()), places, self._is_streaming)
        if not isinstance(node, WatermarkAssigner):
            return node
        params = watermark_params(options)
        return replace(node, params=replace(params, on_event=params.on_event and source.emits_watermarks_periodically))

    def source(self, found: FoundTable, schema: ResolvedSchema, options: Mapping[str, str]) -> ScanTableSource:
        """The source of a table, with the metadata that its columns have."""
        name = found.identifier.as_summary_string()
        context = factory_context(found, schema, options, self._configuration, self._is_streaming)
        try:
            watermark_params(options)
            source = find_factory(context, options.get("connector")).create_source(context)
        except ValidationError as error:
            raise ValidationError(
                f"Unable to create a source for reading table '{name}'.\n\nTable options are:\n\n"
                f"{options_text(options)}\n\n{error.reason}",
                hint=error.hint,
            ) from error
        if not isinstance(source, ScanTableSource):
            raise ValidationError(
                f"The table '{name}' can only be used in lookup joins: its connector cannot read all rows."
            )
        if not self._is_streaming and not source.is_bounded:
            raise ValidationError(
                f"Querying an unbounded table '{name}' in batch mode is not allowed. The table source is unbounded.",
                hint="Use streaming mode (SET 'execution.runtime-mode' = 'streaming'), or an option of the connector "
                "that ends the table.",
            )
        if not self._is_streaming and not source.changelog_mode.is_insert_only:
            raise ValidationError(
                "Querying a table in batch mode is currently only possible for INSERT-only table sources. But the "
                f"source for table '{name}' produces other changelog messages than INSERT."
            )
        return _with_metadata(source, schema)


def factory_context(
    found: FoundTable,
    schema: ResolvedSchema,
    options: Mapping[str, str],
    configuration: Configuration,
    is_streaming: bool,
) -> FactoryContext:
    """What the factory of a connector gets."""
    others = {key: value for key, value in options.items() if key not in {"connector", *WATERMARK_OPTIONS}}
    if found.table.kind is TableKind.MATERIALIZED_TABLE:
        # of the refresh, not of the connector
        others = {key: value for key, value in others.items() if not key.startswith("partition.fields.")}
    return FactoryContext(
        found.identifier,
        schema,
        others,
        found.table.partition_keys,
        configuration,
        found.is_temporary,
        is_streaming,
    )


def options_text(options: Mapping[str, str]) -> str:
    """Options of a table as errors show them, without secrets."""
    return "\n".join(f"'{key}'='{shown(key, value)}'" for key, value in sorted(options.items()))


def _metadata_key(column: Column) -> str | None:
    return column.metadata_key or column.name if isinstance(column, MetadataColumn) else None


def _metadata(schema: ResolvedSchema) -> dict[str, Column]:
    """The first column of each key of metadata."""
    found: dict[str, Column] = {}
    for column in schema.columns:
        key = _metadata_key(column)
        if key is not None:
            found.setdefault(key, column)
    return found


def _with_metadata(source: ScanTableSource, schema: ResolvedSchema) -> ScanTableSource:
    metadata = _metadata(schema)
    if not metadata:
        return source
    fields = [*source.produced_type.fields]
    fields += (RowField(f"$metadata${key}", column.data_type) for key, column in metadata.items())
    changed = source.with_metadata(tuple(metadata), RowType(fields, nullable=False))
    if changed is None:
        raise ValidationError(
            f"Table '{source.as_summary_string()}' declares metadata columns, but the underlying DynamicTableSource "
            "doesn't implement the SupportsReadingMetadata interface. Therefore, metadata cannot be read from the "
            "given source."
        )
    return changed


def over_source(
    found: FoundTable,
    schema: ResolvedSchema,
    source: ScanTableSource,
    hints: tuple[tuple[str, str], ...] = (),
    primary_key: tuple[int, ...] = (),
    is_streaming: bool = True,
) -> LogicalNode:
    """A scan, then computed columns, then watermarks."""
    scan = TableScan(found.identifier, source.produced_type, hints, source, primary_key)
    columns = _columns(schema, source.produced_type)
    names = tuple(column.name for column in schema.columns)
    is_plain = names == scan.row_type.field_names and all(isinstance(column, InputRef) for column in columns)
    node: LogicalNode = scan if is_plain else Project(scan, tuple(columns), names)
    if not schema.watermark_specs or not is_streaming:
        return node
    (spec,) = schema.watermark_specs
    type_ = RowType([RowField(column.name, column.data_type) for column in schema.columns], nullable=False)
    watermark = spec.watermark_expression.bound
    return WatermarkAssigner(node, type_, names.index(spec.rowtime_attribute), watermark)


def _columns(schema: ResolvedSchema, produced: RowType) -> list[Expression]:
    """The columns of a table over those of its source: physical ones by place, then metadata."""
    physical = [column.name for column in schema.columns if column.is_physical()]
    metadata = _metadata(schema)
    places = {name: index for index, name in enumerate(physical)}
    keys = {key: len(physical) + index for index, key in enumerate(metadata)}

    def stored(column: Column) -> Expression:
        index = keys[key] if (key := _metadata_key(column)) is not None else places[column.name]
        return InputRef(regular(column.data_type), index, produced.fields[index].name)

    # computed columns are bound over the stored ones, in the order of the schema
    inputs = [stored(column) for column in schema.columns if not isinstance(column, ComputedColumn)]
    return [
        inlined(column.expression.bound, inputs) if isinstance(column, ComputedColumn) else stored(column)
        for column in schema.columns
    ]
