"""Rows of PostgreSQL's sources and sinks as columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firesteel.common.errors import FiresteelError
from firesteel.common.types import Row, RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.decoding_source import BatchDecoder
from firesteel.table.runtime.operators.to_records import RecordConverter
from firesteel.types.arrow import require_pyarrow, to_arrow_schema
from firesteel.types.arrow_decoding import ArrowRecords
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["RowColumns", "RowRecords"]

_KINDS = {kind.value: kind for kind in RowKind}


class RowColumns(BatchDecoder):
    """Makes columns of Rows, by the names of their fields."""

    def __init__(self, row_type: RowType, *, has_kinds: bool = False) -> None:
        self._row_type = row_type
        self._has_kinds = has_kinds

    def open(self) -> None:
        self._encoder = ArrowBatchEncoder(to_arrow_schema(self._row_type), str(self._row_type))
        self._schema = columns_schema(self._row_type)

    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        if not values:
            return None
        names = self._row_type.field_names
        fields = values[0].get_field_names()
        if fields is not None and tuple(fields) != names:
            values = [_chosen(row, names) for row in values]
        kinds = None
        if self._has_kinds:
            kinds = np.array([row.get_row_kind().value for row in values], np.int8)
            kinds = kinds if kinds.any() else None
        return ColumnBatch(self.batch(values), kinds)

    def batch(self, rows: Sequence[Any]) -> Any:
        """The RecordBatch of rows with all columns."""
        data = self._encoder.to_batch(rows)
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(data.columns, self._schema, strict=True)
        ]
        return require_pyarrow("SQL").RecordBatch.from_arrays(columns, schema=self._schema)


def _chosen(row: Row, names: Sequence[str]) -> Row:
    values = row.as_dict()
    missing = [name for name in names if name not in values]
    if missing:
        raise FiresteelError(
            f"The captured table has no column {', '.join(map(repr, missing))}; it has {', '.join(values)}."
        )
    chosen = Row(**{name: values[name] for name in names})
    chosen.set_row_kind(row.get_row_kind())
    return chosen


@dataclass(frozen=True)
class RowRecords(RecordConverter):
    """Makes Rows with their kinds of columns."""

    row_type: RowType

    def open(self) -> Any:
        records = ArrowRecords(columns_schema(self.row_type), False)

        def convert(batch: ColumnBatch) -> list[Any]:
            rows = list(records.decode(batch.data))
            if batch.kinds is not None:
                for row, kind in zip(rows, batch.kinds.tolist(), strict=True):
                    if kind:
                        row._row_kind = _KINDS[kind]
            return rows

        return convert
