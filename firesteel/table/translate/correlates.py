"""Streams of rows beside the elements of their collections."""

from __future__ import annotations

from firesteel.table.plan.correlates import Unnest
from firesteel.table.runtime.operators.unnest import UnnestSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["unnest"]


@translates(Unnest)
def unnest(node: Unnest, translator: Translator) -> Columns:
    """The elements of a collection."""
    spec = UnnestSpec(
        node.collection,
        node.with_ordinality,
        node.keeps_rows,
        node.condition,
        node.row_type,
        rowtime_of(node.row_type),
        translator.session,
    )
    return translator.apply(translator.translate(node.input), "Correlate", spec)
