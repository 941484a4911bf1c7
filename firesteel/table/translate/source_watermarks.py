"""Streams whose watermarks come with them."""

from __future__ import annotations

from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.table.plan.source_watermarks import SourceWatermark
from firesteel.table.rules.references import references
from firesteel.table.runtime.operators.calc import ProjectionFunction
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["source_watermark"]


@translates(SourceWatermark)
def source_watermark(node: SourceWatermark, translator: Translator) -> Columns:
    """The same rows, with their rowtime column."""
    projection = ProjectionFunction(references(node.input), node.row_type, translator.session)
    return translator.apply(
        translator.translate(node.input), "SourceWatermark", CalcSpec(projection, None, node.rowtime)
    )
