"""Streams of window functions and window aggregations."""

from __future__ import annotations

from firesteel.table.expressions.errors import ValidationError
from firesteel.table.plan.window_kinds import AlignedWindow
from firesteel.table.plan.windows import WindowAggregate, WindowTableFunction
from firesteel.table.runtime.operators.windows.aggregate import WindowAggregateSpec
from firesteel.table.runtime.operators.windows.table_function import WindowTableFunctionSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__: list[str] = []


@translates(WindowTableFunction)
def table_function(node: WindowTableFunction, translator: Translator) -> Columns:
    """Rows with their windows."""
    if not isinstance(node.window, AlignedWindow):
        raise ValidationError(f"{node.window} is not supported in streaming queries yet.")
    spec = WindowTableFunctionSpec(
        node.window,
        node.row_type,
        node.time_type,
        None if node.is_proctime else node.time,
        translator.session.local_time_zone,
        rowtime_of(node.row_type),
    )
    return translator.apply(translator.translate(node.input), "WindowTableFunction", spec)


@translates(WindowAggregate)
def aggregate(node: WindowAggregate, translator: Translator) -> Columns:
    """Results of windows."""
    if not isinstance(node.window, AlignedWindow):
        raise ValidationError(f"{node.window} is not supported in streaming queries yet.")
    spec = WindowAggregateSpec(
        node.window,
        node.input.row_type,
        node.row_type,
        node.time_type,
        node.grouping,
        node.calls,
        node.time,
        node.end,
        not translator.traits(node.input).mode.is_insert_only,
        translator.session,
        rowtime_of(node.row_type),
    )
    stream = translator.keyed(translator.translate(node.input), spec.keys)
    return translator.apply(stream, "WindowAggregate", spec)
