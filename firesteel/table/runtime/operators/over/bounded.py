"""OVER of a bounded query: windows in any order and with any frame, computed when all rows are there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.session import Session
from firesteel.table.plan.over import OverGroup
from firesteel.table.runtime.operators.over.partitions import Partition, PartitionCalls
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["BoundedOverSpec"]

_BATCH = 16_384


@dataclass(frozen=True)
class BoundedOverSpec(OperatorSpec):
    """The calls of one window over each row; the columns of the row come first."""

    group: OverGroup
    row_type: RowType
    output_type: RowType
    rowtime: int | None = None
    session: Session = field(default_factory=Session)

    def create(self, runtime: OperatorRuntime) -> BoundedOverOperator:
        """Returns a new operator for one subtask."""
        return BoundedOverOperator(self)

    def calls(self) -> PartitionCalls:
        """What computes the results. Raises ValidationError for what cannot be computed."""
        SortKeys(self.row_type, self.group.order)
        return PartitionCalls(self.group, [part.type for part in self.row_type.fields], self.session)


class BoundedOverOperator(ColumnOperator):
    """Keeps all rows in memory: it is part of batch jobs only, which have no checkpoints."""

    def __init__(self, spec: BoundedOverSpec) -> None:
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._output = RowCodec(spec.output_type)
        self._calls = spec.calls()
        self._sort_keys = SortKeys(spec.row_type, spec.group.order)
        self._batches: list[Any] = []

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._batches.clear()

    def process_columns(self, batch: ColumnBatch) -> None:
        """Keeps the rows of a batch."""
        self._batches.append(batch.data)

    def process_watermark(self, timestamp: int) -> None:
        """Emits the rows at the end of time, before windows downstream end."""
        if timestamp == MAX_WATERMARK:
            self.finish()
        super().process_watermark(timestamp)

    def finish(self) -> None:
        """Emits all rows with their results."""
        pa = require_pyarrow("SQL")
        if not self._batches:
            return
        data = pa.Table.from_batches(self._batches).combine_chunks().to_batches()
        self._batches.clear()
        done: list[tuple[Any, ...]] = []
        for part in data:  # one, as chunks are combined
            done += self._results(part)
        for start in range(0, len(done), _BATCH):
            self.emit(ColumnBatch(self._output.encode(done[start : start + _BATCH]), None, self._spec.rowtime))

    def _results(self, data: Any) -> list[tuple[Any, ...]]:
        rows, keys = self._codec.decode(data), self._sort_keys.of(data)
        columns = self._spec.group.partition
        identity = identity_of([self._codec.types[index] for index in columns])
        partitions: dict[Any, list[int]] = {}
        for index, row in enumerate(rows):
            key = tuple([row[column] for column in columns])
            partitions.setdefault(key if identity is None else identity(key), []).append(index)
        done: list[tuple[Any, ...]] = []
        for places in partitions.values():
            places.sort(key=keys.__getitem__)
            partition = Partition([rows[place] for place in places], [keys[place] for place in places])
            results = self._calls.results(partition)
            done += [(*row, *result) for row, result in zip(partition.rows, results, strict=True)]
        return done
