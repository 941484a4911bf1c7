"""Tables whose rows bring watermarks: a late row is late in every run."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.runtime.batch_source import BatchSource
from firesteel.types import logical as t
from firesteel.types.logical import RowType, TimestampKind

FOLDER = Path(__file__).parents[2] / "integration" / "table" / "windows"
RECORDED = FOLDER / "recorded"
_UNITS = {"second": 1000, "seconds": 1000, "minutes": 60_000}
_TYPES: dict[str, t.LogicalType] = {
    "TIMESTAMP(3)": t.TimestampType(3),
    "STRING": t.VarCharType(),
    "BIGINT": t.BigIntType(),
    "INT": t.IntType(),
    "DOUBLE": t.DoubleType(),
    "DECIMAL(10, 2)": t.DecimalType(10, 2),
}


@dataclass(frozen=True)
class RowWatermarksSpec(OperatorSpec):
    """Sends the watermark that a row brings before the next row, if that could be late, else after the batch."""

    rowtime: int
    delay: int

    def create(self, runtime: OperatorRuntime) -> RowWatermarks:
        return RowWatermarks(self)


class RowWatermarks(ColumnOperator):
    def __init__(self, spec: RowWatermarksSpec):
        self._spec = spec
        self._watermark = MIN_TIMESTAMP

    def process_columns(self, batch: ColumnBatch) -> None:
        batch = ColumnBatch(batch.data, batch.kinds, self._spec.rowtime)
        start = 0
        for index, time in enumerate(rowtime_millis(batch).tolist()):
            if time <= self._watermark and index > start:
                self._send(batch.slice(start, index - start))
                start = index
            self._watermark = max(self._watermark, time - self._spec.delay)
        self._send(batch.slice(start, len(batch) - start))

    def _send(self, rows: ColumnBatch) -> None:
        self.emit(rows)
        self.context.emit_watermark(self._watermark)

    def process_watermark(self, timestamp: int) -> None:
        if timestamp == MAX_WATERMARK:
            self.context.emit_watermark(timestamp)


@dataclass(frozen=True)
class WatermarkedSource(ScanTableSource):
    """The rows of a batch; those of a table without watermarks come as they are."""

    name: str
    type: RowType
    batch: ColumnBatch = field(compare=False)
    rowtime: int | None = None
    delay: int = 0

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return True

    def create_stream(self, context: ScanContext) -> Any:
        source = BatchSource(self.batch)
        stream = context.environment.from_source(source, WatermarkStrategy.no_watermarks(), context.name)
        stream = stream.force_non_parallel()
        if self.rowtime is None:
            return stream
        spec = RowWatermarksSpec(self.rowtime, self.delay)
        return stream._transform("Watermarks", spec, None).force_non_parallel()

    def as_summary_string(self) -> str:
        return self.name


def _value(value: Any, type_: t.LogicalType) -> Any:
    if value is None:
        return None
    if isinstance(type_, t.TimestampType):
        moment = dt.datetime.fromisoformat(value).replace(tzinfo=dt.timezone.utc)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(milliseconds=1) * 1_000_000
    return Decimal(value) if isinstance(type_, t.DecimalType) else value


def _source(name: str, table: dict[str, Any]) -> WatermarkedSource:
    columns = [column.split(" ", 1) for column in table["columns"]]
    names = [column for column, _ in columns]
    logical = [_TYPES[type_] for _, type_ in columns]
    rows = [[_value(*pair) for pair in zip(row, logical, strict=True)] for row in table["rows"]]
    rowtime, delay = None, 0
    if "watermark" in table:
        column, text = table["watermark"]
        number, unit = text.split()
        delay = int(number) * _UNITS[unit]
        if "zone" in table:
            names.append(column)
            logical.append(t.LocalZonedTimestampType(3))
            rows = [[*row, row[0] * 1_000_000] for row in rows]
        rowtime = names.index(column)
        logical[rowtime] = type(logical[rowtime])(3, TimestampKind.ROWTIME)  # type: ignore[call-arg]
    row_type = RowType.of(names, logical, nullable=False)
    return WatermarkedSource(name, row_type, batch_of(rows, row_type), rowtime, delay)


_TABLES = json.loads((RECORDED / "tables.json").read_text("utf-8"))
SOURCES = {name: _source(name, {**_TABLES[table.get("rows_of", name)], **table}) for name, table in _TABLES.items()}
ZONE: str = _TABLES["zoned"]["zone"]


def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
    """A table of the test."""
    source = SOURCES[path[-1]]
    return TableScan(ObjectIdentifier("default_catalog", "default_database", path[-1]), source.type, options, source)
