"""Watermarks of column batches, from their rowtime column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.runtime.columns.rowtime import latest_rowtime
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator, TimestampsAndWatermarksSpec

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ColumnWatermarksOperator", "ColumnWatermarksSpec", "RowtimeAssigner"]


@dataclass(frozen=True)
class RowtimeAssigner(TimestampAssigner):
    """The timestamp assigner of a WatermarkStrategy for columns: the event time of a row is in a column.

    ``WatermarkStrategy.with_timestamp_assigner`` takes it, for a source of columns as for ColumnWatermarksSpec.
    """

    column: int

    def extract_latest(self, batch: Any) -> int | None:
        """The latest timestamp of a batch."""
        return latest_rowtime(batch, self.column)

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Rows of a batch are not asked one by one."""
        raise AssertionError("columns have no timestamps one by one")


@dataclass(frozen=True)
class ColumnWatermarksSpec(TimestampsAndWatermarksSpec):
    """Generates watermarks from a rowtime column; the assigner of the strategy is a RowtimeAssigner."""

    def create(self, runtime: OperatorRuntime) -> ColumnWatermarksOperator:
        """Returns a new operator for one subtask."""
        return ColumnWatermarksOperator(self.watermark_strategy, runtime.watermark_interval_ms)


class ColumnWatermarksOperator(TimestampsAndWatermarksOperator):
    """Generates watermarks from a rowtime column."""

    emits_columns = True
