"""The rows that are left of a changelog when its input has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.plan.nodes import SortKey
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["FinalRowsSpec"]

_RETRACTIONS = (1, 3)
_BATCH = 16_384


@dataclass(frozen=True)
class FinalRowsSpec(OperatorSpec):
    """Emits the rows of a bounded changelog that were added and not taken back, in order if there is one."""

    row_type: RowType
    rowtime: int | None = None
    order: tuple[SortKey, ...] = ()
    offset: int = 0

    def create(self, runtime: OperatorRuntime) -> FinalRowsOperator:
        """Returns a new operator for one subtask."""
        return FinalRowsOperator(self)


class FinalRowsOperator(ColumnOperator):
    """Counts rows; all changes of a row come to the same subtask.

    It is part of batch jobs only, which have no checkpoints: rows are in memory, and a failed job starts again.
    """

    def __init__(self, spec: FinalRowsSpec) -> None:
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._identity = identity_of(self._codec.types)
        self._rows: dict[Any, list[Any]] = {}

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._rows.clear()

    def process_columns(self, batch: ColumnBatch) -> None:
        """Counts the rows of a batch."""
        rows = self._codec.decode(batch.data)
        kinds = [0] * len(rows) if batch.kinds is None else batch.kinds.tolist()
        for row, kind in zip(rows, kinds, strict=True):
            key = row if self._identity is None else self._identity(row)
            found = self._rows.setdefault(key, [0, row])
            found[0] += -1 if kind in _RETRACTIONS else 1
            if not found[0]:
                del self._rows[key]

    def process_watermark(self, timestamp: int) -> None:
        """Emits the rows at the end of time, before windows downstream end."""
        if timestamp == MAX_WATERMARK:
            self.finish()
        super().process_watermark(timestamp)

    def finish(self) -> None:
        """Emits the rows that are left."""
        left = [row for count, row in self._rows.values() for _ in range(count)]
        self._rows.clear()
        if self._spec.order:
            values = SortKeys(self._spec.row_type, self._spec.order).of(self._codec.encode(left))
            left = [left[index] for index in sorted(range(len(left)), key=values.__getitem__)]
        for start in range(self._spec.offset, len(left), _BATCH):
            data = self._codec.encode(left[start : start + _BATCH])
            self.emit(ColumnBatch(data, None, self._spec.rowtime))
