"""Results of joins: columns gathered from a batch and from the kept rows of the other side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.nodes import Expression, InputRef, walk
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.runtime.operators.joins.keyed_rows import KeyedRows
from firesteel.table.runtime.operators.rows import record_batch
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["JoinOutput"]

_MAX_ROWS = 1 << 16
"""Of a batch that is emitted; a key that many rows have makes more."""


class JoinOutput:
    """Evaluates the condition on pairs, and makes batches of them."""

    def __init__(
        self,
        left: RowType,
        right: RowType,
        condition: Expression | None,
        result: RowType,
        session: Session,
        rowtime: int | None = None,
    ):
        self._schema = columns_schema(result)
        self._rowtime = rowtime
        self._widths = (len(left.fields), len(right.fields))
        self._condition = None if condition is None else compile_vector([condition], session)
        found = [] if condition is None else [part for part in walk(condition) if isinstance(part, InputRef)]
        self._read = sorted({part.index for part in found})

    def filter(self, index: int, data: Any, rows: Any, records: Any, other: KeyedRows) -> tuple[Any, Any]:
        """The pairs of rows of a batch and records of the other side for which the condition is true."""
        if self._condition is None:
            return rows, records
        kept = [
            self._is_true(index, data, rows[start : start + _MAX_ROWS], records[start : start + _MAX_ROWS], other)
            for start in range(0, len(rows), _MAX_ROWS)
        ]
        mask = kept[0] if len(kept) == 1 else np.concatenate(kept)
        return (rows, records) if mask.all() else (rows[mask], records[mask])

    def _is_true(self, index: int, data: Any, rows: Any, records: Any, other: KeyedRows) -> Any:
        assert self._condition is not None
        width = self._widths[0]
        columns: list[Any] = [None] * sum(self._widths)
        left = [column for column in self._read if column < width]
        right = [column - width for column in self._read if column >= width]
        own, theirs = (left, right) if index == 0 else (right, left)
        mine = data.select(own).take(pa.array(rows)).columns if own else []
        kept = other.rows.take(other.row_numbers(records), theirs) if theirs else []
        for column, array in zip(self._read, [*mine, *kept] if index == 0 else [*kept, *mine], strict=True):
            columns[column] = array
        (mask,) = self._condition(columns, len(rows))
        return mask.fill_null(False).to_numpy(zero_copy_only=False)

    def rows(self, data: Any, rows: Any, kinds: Any) -> ColumnBatch | None:
        """Some rows of a batch."""
        if not len(rows):
            return None
        taken = data if len(rows) == data.num_rows else data.take(pa.array(rows))
        return ColumnBatch(record_batch(taken.columns, self._schema, len(rows)), None if kinds is None else kinds[rows])

    def kept(self, side: KeyedRows, numbers: Any, kinds: Any) -> ColumnBatch:
        """Some rows that are kept."""
        data = record_batch(side.rows.take(numbers), self._schema, len(numbers))
        return ColumnBatch(data, kinds if kinds.any() else None)

    def pairs(
        self, index: int, data: Any, parts: Sequence[tuple[Any, ...]], other: KeyedRows | None
    ) -> Iterator[ColumnBatch]:
        """Rows of a batch beside kept rows of the other side, by their place in the batch."""
        columns = [_expanded(*part) for part in parts]
        if len(columns) == 1:
            _, own, theirs, kinds = columns[0]
        else:
            places, own, theirs, kinds = (np.concatenate(column) for column in zip(*columns, strict=True))
            order = np.argsort(places, kind="stable")
            own, theirs, kinds = own[order], theirs[order], kinds[order]
        for start in range(0, len(own), _MAX_ROWS):
            part = slice(start, start + _MAX_ROWS)
            yield self._pairs(index, data, own[part], theirs[part], kinds[part], other)

    def _pairs(self, index: int, data: Any, own: Any, theirs: Any, kinds: Any, other: KeyedRows | None) -> ColumnBatch:
        is_null = own < 0
        mine = data.take(pa.array(own, mask=is_null if is_null.any() else None)).columns
        is_null = theirs < 0
        if other is None:
            types = [self._schema.field(at).type for at in self._others(index)]
            kept = [pa.nulls(len(own), type_) for type_ in types]
        else:
            kept = other.rows.take(theirs, None, is_null if is_null.any() else None)
        arrays = [*mine, *kept] if index == 0 else [*kept, *mine]
        data = record_batch(arrays, self._schema, len(own))
        return ColumnBatch(data, kinds if kinds.any() else None, self._rowtime)

    def padded(self, side: int, kept: KeyedRows, numbers: Any, kinds: Any = None) -> ColumnBatch:
        """Some rows that are kept, with nulls for the other side."""
        nulls = [pa.nulls(len(numbers), self._schema.field(at).type) for at in self._others(side)]
        arrays = kept.rows.take(numbers)
        data = record_batch([*arrays, *nulls] if side == 0 else [*nulls, *arrays], self._schema, len(numbers))
        return ColumnBatch(data, kinds, self._rowtime)

    def _others(self, index: int) -> range:
        left, right = self._widths
        return range(left, left + right) if index == 0 else range(left)


def _expanded(places: Any, own: Any, theirs: Any, kinds: Any, counts: Any) -> tuple[Any, Any, Any, Any]:
    """The rows that a part of the result has, each as often as it occurs."""
    absent = np.full(len(places), -1)
    kinds = np.broadcast_to(np.asarray(kinds, np.int8), len(places))
    columns = (places, absent if own is None else own, absent if theirs is None else theirs, kinds)
    if len(counts) and counts.max() > 1:
        places, own, theirs, kinds = (np.repeat(column, counts) for column in columns)
        return places, own, theirs, kinds
    return columns
