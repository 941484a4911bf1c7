"""Streams of bounded queries whose rows are written when they are final."""

from __future__ import annotations

from firesteel.table.plan.streaming import FinalRows
from firesteel.table.runtime.operators.final_rows import FinalRowsSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["final_rows"]


@translates(FinalRows)
def final_rows(node: FinalRows, translator: Translator) -> Columns:
    """The rows that are left in the end."""
    stream: Columns = translator.translate(node.input)
    is_sorted = bool(node.order or node.offset)
    if translator.traits(node.input).mode.is_insert_only and not is_sorted:
        return stream
    spec = FinalRowsSpec(node.row_type, rowtime_of(node.row_type), node.order, node.offset)
    return translator.apply(stream, "FinalRows", spec, is_single=is_sorted)
