"""A table whose rows come one by one, each followed by the watermark that it brings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.connector.source import ScanContext
from firesteel.table.connectors.in_memory import InMemorySource

if TYPE_CHECKING:
    from firesteel.datastream import DataStream
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["PunctuatedSource"]


@dataclass(frozen=True)
class _OneByOneSpec(OperatorSpec):
    rowtime: int | None
    delay_ms: int
    rows: int

    def create(self, runtime: OperatorRuntime) -> _OneByOne:
        return _OneByOne(self)


class _OneByOne(ColumnOperator):
    def __init__(self, spec: _OneByOneSpec) -> None:
        self._spec = spec
        self._watermark = -(2**63)

    def process_columns(self, batch: ColumnBatch) -> None:
        for start in range(0, len(batch), self._spec.rows):
            part = batch.slice(start, self._spec.rows)
            part = ColumnBatch(part.data, part.kinds, self._spec.rowtime)
            self.emit(part)
            if self._spec.rowtime is not None:
                watermark = int(rowtime_millis(part).max()) - self._spec.delay_ms
                if watermark > self._watermark:
                    self._watermark = watermark
                    self.context.emit_watermark(watermark)


@dataclass(frozen=True)
class PunctuatedSource(InMemorySource):
    """Rows in batches of ``rows``; after each the watermark: the latest event time less the delay."""

    rowtime: int | None = None
    delay_ms: int = 0
    rows: int = 1
    supports_watermark_push_down = False
    batch: ColumnBatch = field(compare=False, default=None)  # type: ignore[assignment]

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        stream = super().create_stream(context)
        spec = _OneByOneSpec(self.rowtime, self.delay_ms, self.rows)
        return stream._transform("OneByOne", spec, None).force_non_parallel()

    def with_projection(self, columns: Any) -> PunctuatedSource | None:
        if self.rowtime is not None and self.rowtime not in columns:
            return None
        projected = super().with_projection(columns)
        assert isinstance(projected, PunctuatedSource)
        return replace(projected, rowtime=None if self.rowtime is None else list(columns).index(self.rowtime))
