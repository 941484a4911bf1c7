"""Streams of process table functions."""

from __future__ import annotations

from firesteel.table.plan.correlates import ProcessTable
from firesteel.table.runtime.operators.process.operator import ProcessTableSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["process_table"]


@translates(ProcessTable)
def process_table(node: ProcessTable, translator: Translator) -> Columns:
    """The rows of a function, by its partition."""
    spec = ProcessTableSpec(
        node.definition,
        node.input.row_type,
        node.row_type,
        node.partition,
        node.scalars,
        node.time,
        rowtime_of(node.row_type),
        translator.state_ttl_ms,
        translator.session,
        node.place,
    )
    stream = translator.translate(node.input)
    if node.partition is None:
        return translator.apply(stream, "ProcessTableFunction", spec)
    keyed = translator.keyed(stream, node.partition)
    is_single = not node.partition
    return translator.apply(keyed, "ProcessTableFunction", spec, is_single=is_single, state_of=node)
