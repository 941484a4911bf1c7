"""All translations of nodes: to import this module registers them."""

from __future__ import annotations

from firesteel.table.translate import (
    aggregates,
    basic,
    changelogs,
    constraints,
    correlates,
    final_rows,
    joins,
    match,
    models,
    named_queries,
    over,
    process_tables,
    ranks,
    source_watermarks,
    windows,
)
from firesteel.table.translate.translator import Translator

__all__ = [
    "Translator",
    "aggregates",
    "basic",
    "changelogs",
    "constraints",
    "correlates",
    "final_rows",
    "joins",
    "match",
    "models",
    "named_queries",
    "over",
    "process_tables",
    "ranks",
    "source_watermarks",
    "windows",
]
