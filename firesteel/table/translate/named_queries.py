"""Streams of queries with a UID hint."""

from __future__ import annotations

from firesteel.table.plan.streaming import NamedQuery
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["named_query"]


@translates(NamedQuery)
def named_query(node: NamedQuery, translator: Translator) -> Columns:
    """The stream of the query, whose operators have its name."""
    stream: Columns = translator.translate(node.input)
    return stream
