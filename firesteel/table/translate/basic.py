"""Streams of scans, values, projections, unions, watermarks and sinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from firesteel.common.time import to_millis
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.table_options import SOURCE_IDLE_TIMEOUT
from firesteel.datastream.data_stream import parallelism_of
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.runtime.operators.columns.watermarks import ColumnWatermarksSpec
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.connector.sink import SinkContext
from firesteel.table.connector.source import ScanContext
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.plan.nodes import SetKind, SetOperation, TableScan, Values
from firesteel.table.plan.rewriting import inlined, moved_inputs
from firesteel.table.plan.streaming import Calc, Sink, WatermarkAssigner, inputs_of
from firesteel.table.rules.references import references
from firesteel.table.runtime.operators.calc import ConditionFunction, ProjectionFunction
from firesteel.table.runtime.operators.ranks.upserts import DropUpdateBeforeSpec
from firesteel.table.runtime.operators.watermarks import (
    LatestWatermark,
    RowWatermarks,
    WatermarkExpression,
    WatermarkOfRows,
)
from firesteel.table.translate.translator import Columns, Translator, translates
from firesteel.types.logical import LogicalType, RowType, TimestampKind

__all__ = ["rowtime_of"]


def rowtime_of(row_type: RowType) -> int | None:
    """The first column that is a row time attribute."""
    return next((index for index, part in enumerate(row_type.fields) if _is_rowtime(part.type)), None)


def _is_rowtime(type_: LogicalType) -> bool:
    return getattr(type_, "kind", None) is TimestampKind.ROWTIME


@translates(TableScan)
def scan(node: TableScan, translator: Translator) -> Columns:
    """The rows of a source."""
    return _scan(node, translator, None)


def _scan(node: TableScan, translator: Translator, strategy: WatermarkStrategy | None) -> Columns:
    if node.source is None:
        raise ValidationError(f"{node.identifier.as_summary_string()} has no source that can be read as a stream.")
    name = f"Source: {node.identifier.object_name}"
    stream: Columns = node.source.create_stream(ScanContext(translator.environment, name, strategy))
    if not node.source.belongs_to_program:
        for operator in stream._transformation.transitive_predecessors():
            translator.identify(operator, f"Source-{node.identifier.as_summary_string()}", None)
    return stream


@translates(Values)
def values(node: Values, translator: Translator) -> Columns:
    """Rows of constants."""
    rows = [tuple(evaluate_constant(value, translator.session) for value in row) for row in node.rows]
    source = InMemorySource(node.row_type, batch_of(rows, node.row_type))
    return source.create_stream(ScanContext(translator.environment, "Values"))


@translates(Calc)
def calc(node: Calc, translator: Translator) -> Columns:
    """Projection and condition."""
    used = inputs_of(node.expressions)
    places = {column: place for place, column in enumerate(used)}
    moved = [moved_inputs(expression, places) for expression in node.expressions]
    if node.condition is None:
        used, moved = [], list(node.expressions)
    spec = CalcSpec(
        ProjectionFunction(moved, node.row_type, translator.session),
        None if node.condition is None else ConditionFunction(node.condition, translator.session),
        rowtime_of(node.row_type),
        tuple(used) or None,
    )
    return translator.apply(translator.translate(node.input), "Calc", spec)


@translates(SetOperation)
def union(node: SetOperation, translator: Translator) -> Columns:
    """UNION ALL; other set operations are rewritten."""
    if node.kind is not SetKind.UNION or not node.all:
        raise ValidationError(f"{node.describe()} is not supported in streaming queries yet.")
    first, *others = (translator.translate(relation) for relation in node.relations)
    united: Columns = first.union(*others)
    return united


@translates(WatermarkAssigner)
def watermarks(node: WatermarkAssigner, translator: Translator) -> Columns:
    """Watermarks by the source itself, for each of its splits, if it can; else behind it."""
    below = node.input
    computed = below.expressions if isinstance(below, Calc) and below.condition is None else None
    scan_node = below if computed is None else below.inputs()[0]
    source = scan_node.source if isinstance(scan_node, TableScan) else None
    rowtime: Expression = references(below)[node.rowtime]
    if source is None or not source.supports_watermark_push_down:
        strategy = _strategy(node, node.watermark, rowtime, translator)
        spec = ColumnWatermarksSpec(node.params.apply(strategy, _idle_timeout(translator), is_source=False))
        return translator.apply(translator.translate(below), "WatermarkAssigner", spec, state_of=node)
    expressions: Sequence[Expression] = references(below) if computed is None else computed
    watermark, rowtime = inlined(node.watermark, expressions), expressions[node.rowtime]
    is_periodic = source.emits_watermarks_periodically and not node.params.on_event
    strategy = _strategy(node, watermark, rowtime, translator, is_periodic)
    strategy = node.params.apply(strategy, _idle_timeout(translator), is_source=True)
    stream = _scan(scan_node, translator, strategy)  # type: ignore[arg-type]
    projection = ProjectionFunction(expressions, node.row_type, translator.session)
    return translator.apply(stream, "Calc", CalcSpec(projection, None, node.rowtime))


def _strategy(
    node: WatermarkAssigner,
    watermark: Expression,
    rowtime: Expression,
    translator: Translator,
    is_periodic: bool = False,
) -> WatermarkStrategy:
    if is_periodic:
        strategy = WatermarkStrategy.for_generator(LatestWatermark)
        return strategy.with_timestamp_assigner(WatermarkExpression(watermark, translator.session))
    interval = 0 if node.params.on_event else translator.environment.get_config().get_auto_watermark_interval()
    strategy = WatermarkStrategy.for_generator(partial(RowWatermarks, interval))
    return strategy.with_timestamp_assigner(WatermarkOfRows(watermark, rowtime, translator.session))


def _idle_timeout(translator: Translator) -> int:
    return to_millis(translator.configuration.get(SOURCE_IDLE_TIMEOUT))


@translates(Sink)
def sink(node: Sink, translator: Translator) -> Any:
    """Writes the rows."""
    name = node.sink.as_summary_string() if node.identifier is None else node.identifier.object_name
    is_insert_only = translator.traits(node.input).mode.is_insert_only
    context = SinkContext(f"Sink: {name}", node.row_type, node.primary_key, is_insert_only)
    stream = translator.translate(node.input)
    # nodes may get more UPDATE_BEFORE rows than they asked for
    if not is_insert_only and not node.accepts_update_before:
        stream = translator.apply(stream, "DropUpdateBefore", DropUpdateBeforeSpec())
    written = node.sink.consume(stream, context)
    if node.identifier is not None and written._transformation is not stream._transformation:
        translator.identify(written._operator(), f"Sink-{node.identifier.as_summary_string()}", None)
    parallelism = parallelism_of(stream._transformation)
    if parallelism is not None and written._transformation.parallelism is None:
        # changes of a row must not overtake each other on the way
        written.set_parallelism(parallelism)
    return written
