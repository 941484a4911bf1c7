"""Aggregate functions: their types, and how a row joins and leaves an accumulator."""

from __future__ import annotations

from firesteel.table.functions.aggregates.bitmaps import BITMAP_AGGREGATES
from firesteel.table.functions.aggregates.body import AggregateBody
from firesteel.table.functions.aggregates.collecting import COLLECTING
from firesteel.table.functions.aggregates.json_aggregates import JSON_AGGREGATES
from firesteel.table.functions.aggregates.numeric import NUMERIC_AGGREGATES
from firesteel.table.functions.aggregates.percentile import PERCENTILE
from firesteel.table.functions.aggregates.ranking import RANKING

__all__ = ["FUNCTIONS", "AggregateBody"]

FUNCTIONS = (*NUMERIC_AGGREGATES, *COLLECTING, *JSON_AGGREGATES, PERCENTILE, *BITMAP_AGGREGATES, *RANKING)
