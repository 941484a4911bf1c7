"""Sources of tables in lakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.conditions import Condition
from firesteel.connectors.lakes.scan import LakeScan
from firesteel.connectors.lakes.source import LakeSource
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.lakes.conditions import lake_condition
from firesteel.table.connectors.lakes.spark_tables import SparkLakeTable
from firesteel.table.runtime.decoding_source import BatchDecoder, DecodingSource
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.datastream import DataStream

__all__ = ["LakeTableSource"]


class _Columns(BatchDecoder):
    """Takes columns as they are."""

    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        assert isinstance(values, ColumnRows)
        kinds = values.kinds
        return ColumnBatch(values.data, None if kinds is None else np.asarray(kinds, np.int8))


@dataclass(frozen=True)
class LakeTableSource(ScanTableSource):
    """The rows of a table in a lake: files are read as columns, without rows in between."""

    type: RowType
    conditions: tuple[Condition, ...] = ()
    supports_watermark_push_down = True
    filters_before_watermarks = False

    def scan(self) -> LakeScan:
        """What is read."""
        raise NotImplementedError

    def spark_read(self, session: Any) -> SparkLakeTable | str:
        """How Spark reads the table in a bounded query, or why it does not."""
        raise NotImplementedError

    def to_dataframe(self, session: Any) -> Any:
        read = self.spark_read(session)
        return None if isinstance(read, str) else read.dataframe(session)

    def spark_reader(self, session: Any) -> str:
        read = self.spark_read(session)
        return f"a job of Firesteel: {read}" if isinstance(read, str) else read.describe()

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return self.scan().interval_ms is None

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.insert_only()

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        source = DecodingSource(LakeSource(self.scan(), emits_rows=False), _Columns())
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        stream = context.environment.from_source(source, strategy, context.name)
        # others than the first reader would have nothing to read
        return stream.set_parallelism(1) if self.scan().in_order else stream

    def with_projection(self, columns: Sequence[int]) -> Self | None:
        if not columns:
            return None
        return replace(self, type=RowType([self.type.fields[column] for column in columns], nullable=False))

    def with_filters(self, conditions: Sequence[Expression]) -> tuple[Self, Sequence[Expression]] | None:
        found = [condition for condition in map(lake_condition, conditions) if condition is not None]
        known = [condition for condition in found if condition not in self.conditions]
        if not known:
            return None
        # the rows of a file that has some of them are all there
        return replace(self, conditions=(*self.conditions, *known)), conditions

    def narrowed(self, conditions: Sequence[Expression], limit: int | None) -> Self:
        found = self.with_filters(conditions)
        return self if found is None else found[0]
