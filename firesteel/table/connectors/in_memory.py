"""A table of rows that a program has in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.types import RowKind
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import EvaluationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.runtime.batch_source import BatchSource
from firesteel.types.internal import to_column
from firesteel.types.logical import LogicalType, RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["InMemorySource", "batch_of"]


def batch_of(rows: Sequence[Sequence[Any]], row_type: RowType, kinds: Sequence[RowKind] | None = None) -> ColumnBatch:
    """The columns of rows with values as rows hold them inside of the engine."""
    import numpy as np
    import pyarrow as pa

    from firesteel.types.internal import columns_schema

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(row_type.fields)
    arrays = [_column(column, part.type) for column, part in zip(columns, row_type.fields, strict=True)]
    if not arrays:
        data = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    else:
        data = pa.RecordBatch.from_arrays(arrays, schema=columns_schema(row_type))
    changes = None if kinds is None else np.array([kind.value for kind in kinds], np.int8)
    return ColumnBatch(data, changes)


def _column(values: Sequence[Any], type_: LogicalType) -> Any:
    import pyarrow as pa

    try:
        return to_column(values, type_)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError.of_column(type_, error) from error


@dataclass(frozen=True)
class InMemorySource(ScanTableSource):
    """The rows of a batch."""

    type: RowType
    batch: ColumnBatch = field(compare=False)
    name: str = "Values"
    mode: ChangelogMode = ChangelogMode.insert_only()  # noqa: RUF009 - immutable
    columns: tuple[int, ...] | None = None
    token: int = field(default=0)
    """Tells sources with the same columns apart."""
    supports_watermark_push_down = True

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return True

    @property
    def changelog_mode(self) -> ChangelogMode:
        return self.mode

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        stream = context.environment.from_source(BatchSource(self.batch), strategy, context.name)
        return stream.force_non_parallel()

    def to_dataframe(self, session: Any) -> Any:
        import pyarrow as pa

        if self.batch.kinds is not None or not self.type.fields:
            return None
        data = pa.Table.from_batches([self.batch.data])
        for index, part in enumerate(data.schema):
            if pa.types.is_fixed_size_binary(part.type):  # which Spark does not have
                data = data.set_column(index, part.name, data.column(index).cast(pa.binary()))
        return session.createDataFrame(data)

    def spark_reader(self, session: Any) -> str:
        return "Spark, as a DataFrame"

    def with_projection(self, columns: Sequence[int]) -> InMemorySource | None:
        if not columns:
            return None
        fields = [self.type.fields[index] for index in columns]
        batch = self.batch.with_data(self.batch.data.select(list(columns)))
        kept = tuple(columns) if self.columns is None else tuple(self.columns[index] for index in columns)
        return replace(self, type=RowType(fields, nullable=False), batch=batch, columns=kept)

    def as_summary_string(self) -> str:
        return self.name
