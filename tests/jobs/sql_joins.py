"""Joins of SQL: regular with both kinds of state, semi, interval and temporal, and UNNEST, in event time.

Rows of different streams come in any order, so the queries are such that their results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.runtime.operators.columns.watermarks import ColumnWatermarksSpec, RowtimeAssigner
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from firesteel.types.logical import IntType, RowType, TimestampKind, TimestampType

STREAMING_ONLY = True
START = datetime(2020, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
TYPE = RowType.of(["k", "v", "ts"], [IntType(), IntType(), TimestampType(3, TimestampKind.ROWTIME)], nullable=False)
ORDERS = tuple((number % 5 if number % 7 else None, number, START + timedelta(seconds=number)) for number in range(30))
RATES = tuple((number % 4, 100 + number, START + timedelta(seconds=2 * number)) for number in range(15))
INTERVAL = "o.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '5' SECOND"
QUERIES = {
    "columns": "SELECT o.k, o.v, r.v FROM orders AS o JOIN rates AS r ON o.k = r.k AND o.v < 20 AND r.v > 104",
    "rows": "SELECT /*+ STATE_TTL('o' = '9 d') */ o.k, o.v, r.v FROM orders AS o JOIN rates AS r "
    "ON o.k = r.k AND r.v < 104",
    "semi": "SELECT k, v FROM orders WHERE k IN (SELECT k FROM rates WHERE v > 110)",
    "interval": f"SELECT o.k, o.v, r.v FROM orders AS o FULL JOIN rates AS r ON o.k = r.k AND {INTERVAL}",
    "temporal": "SELECT o.k, o.v, r.v FROM orders AS o LEFT JOIN versions FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k",
    "unnest": "SELECT k, e FROM rates CROSS JOIN UNNEST(ARRAY[v, k]) AS t (e)",
}


@dataclass(frozen=True)
class Records(ScanTableSource):
    """A table of records, in the order of their times."""

    name: str
    rows: tuple[Any, ...]

    @property
    def produced_type(self) -> RowType:
        return TYPE

    @property
    def is_bounded(self) -> bool:
        return True

    def create_stream(self, context: ScanContext) -> DataStream:
        records = context.environment.from_collection(list(self.rows))
        columns = records._transform("RowsToColumns", RowsToColumnsSpec(TYPE, 2), None).set_parallelism(1)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(RowtimeAssigner(2))
        return columns._transform("Watermarks", ColumnWatermarksSpec(strategy), None).set_parallelism(1)

    def as_summary_string(self) -> str:
        return self.name


TABLES = {
    "orders": (Records("orders", ORDERS), ()),
    "rates": (Records("rates", RATES), ()),
    "versions": (Records("rates", RATES), (0,)),
}


def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
    source, primary_key = TABLES[path[-1]]
    return TableScan(ObjectIdentifier("c", "d", path[-1]), TYPE, options, source, primary_key)


def build(env: StreamExecutionEnvironment) -> DataStream:
    plans = {name: optimize(QueryBinder(resolve, sql).bind(parse_query(sql))) for name, sql in QUERIES.items()}
    translator = Translator(env, list(plans.values()))
    results = []
    for name, plan in plans.items():
        rows = translator.apply(translator.translate(plan), "ColumnsToRows", ColumnsToRowsSpec(as_tuples=True))
        results.append(rows.map(lambda row, name=name: (name, *row)))
    return results[0].union(*results[1:])
