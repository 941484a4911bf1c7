"""Window join: the rows of both sides that are in one window and have equal keys, when the window is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import TwoInputColumnOperator
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.runtime.operators.calc import ConditionFunction
from firesteel.table.runtime.operators.windows.base import WindowOperator
from firesteel.table.runtime.operators.windows.rows import WindowRows
from firesteel.table.runtime.operators.windows.slices import encoded
from firesteel.table.runtime.operators.windows.times import WindowTimes
from firesteel.types.internal import columns_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["WindowJoinSide", "WindowJoinSpec"]


@dataclass(frozen=True)
class WindowJoinSide:
    """One input: its columns, its keys without the window, and where its windows end."""

    row_type: RowType
    keys: tuple[int, ...]
    end: int


@dataclass(frozen=True)
class WindowJoinSpec(OperatorSpec):
    """Joins rows of the same windows."""

    sides: tuple[WindowJoinSide, WindowJoinSide]
    kind: JoinKind
    null_safe: tuple[bool, ...]
    condition: Expression | None
    pair_type: RowType
    """The columns of both sides, which the condition reads."""
    row_type: RowType
    time_type: LogicalType
    session: Session
    rowtime: int | None

    def create(self, runtime: OperatorRuntime) -> _WindowJoin:
        """Returns a new operator for one subtask."""
        return _WindowJoin(self)


class _WindowJoin(WindowOperator, TwoInputColumnOperator):
    def __init__(self, spec: WindowJoinSpec):
        super().__init__(WindowTimes(spec.time_type, spec.session.local_time_zone), is_proctime(spec.time_type))
        self._spec = spec
        self._condition = None if spec.condition is None else ConditionFunction(spec.condition, spec.session)
        self._schemas = [columns_schema(side.row_type) for side in spec.sides]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        names = ("left-rows", "right-rows")
        sides = zip(names, self._spec.sides, strict=True)
        self._rows = [WindowRows(context, name, side.keys) for name, side in sides]
        for rows in self._rows:
            for end in rows.ends():
                self.register(end)

    def process_columns(self, batch: ColumnBatch) -> None:
        self._add(0, batch)

    def process_second_columns(self, batch: ColumnBatch) -> None:
        self._add(1, batch)

    def _add(self, side: int, batch: ColumnBatch) -> None:
        ends = rowtime_millis(ColumnBatch(batch.data, rowtime=self._spec.sides[side].end))
        codes, distinct = encoded(ends)
        data = batch.data
        over = self.are_over(distinct)
        if over.any():
            late = over[codes]
            self.count_late(int(np.count_nonzero(late)))
            data, codes = data.filter(pa.array(~late)), codes[~late]
        self._rows[side].add(data, codes, distinct)
        for end in distinct[~over].tolist():
            self.register(end)

    def store_windows(self) -> None:
        for rows in self._rows:
            rows.snapshot()

    # -- results --------------------------------------------------------------------------------------

    def fire(self, ends: list[int]) -> None:
        for end in ends:
            left, right = (
                rows.pop(end) or _empty(schema) for rows, schema in zip(self._rows, self._schemas, strict=True)
            )
            self._join(left, right)

    def _join(self, left: Any, right: Any) -> None:
        kind = self._spec.kind
        one, other = self._pairs(left, right)
        if self._condition is not None and len(one):
            pairs = _beside(left, right, one, other, columns_schema(self._spec.pair_type))
            keep = self._condition(pairs).fill_null(False).to_numpy(zero_copy_only=False)
            one, other = one[keep], other[keep]
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            matched = np.zeros(left.num_rows, bool)
            matched[one] = True
            self._emit(left.filter(pa.array(matched if kind is JoinKind.SEMI else ~matched)).columns)
            return
        one_parts, other_parts = [one], [other]
        if kind.keeps_left:
            alone = np.setdiff1d(np.arange(left.num_rows), one)
            one_parts.append(alone)
            other_parts.append(np.full(len(alone), -1))
        if kind.keeps_right:
            alone = np.setdiff1d(np.arange(right.num_rows), other)
            one_parts.append(np.full(len(alone), -1))
            other_parts.append(alone)
        self._emit([*_taken(left, np.concatenate(one_parts)), *_taken(right, np.concatenate(other_parts))])

    def _emit(self, arrays: list[Any]) -> None:
        data = pa.RecordBatch.from_arrays(arrays, schema=columns_schema(self._spec.row_type))
        self.emit(ColumnBatch(data, None, self._spec.rowtime))

    def _pairs(self, left: Any, right: Any) -> tuple[Any, Any]:
        """The rows of both sides with equal keys."""
        codes, other_codes = self._codes(left, right)
        order = np.argsort(other_codes, kind="stable")
        ordered = other_codes[order]
        first = np.searchsorted(ordered, codes, "left")
        counts = np.where(codes < 0, 0, np.searchsorted(ordered, codes, "right") - first)
        one = np.repeat(np.arange(len(codes)), counts)
        before = np.cumsum(counts) - counts
        return one, order[first[one] + np.arange(len(one)) - before[one]]

    def _codes(self, left: Any, right: Any) -> tuple[Any, Any]:
        """A number for the key of each row, negative if it is equal to none."""
        sides = self._spec.sides
        count = left.num_rows
        if not sides[0].keys or not count or not right.num_rows:
            return np.zeros(count, np.intp), np.zeros(right.num_rows, np.intp)
        names = [f"k{index}" for index in range(len(sides[0].keys))]
        types = [left.column(key).type for key in sides[0].keys]
        mine = pa.RecordBatch.from_arrays([left.column(key) for key in sides[0].keys], names)
        theirs = pa.RecordBatch.from_arrays(
            [right.column(key).cast(type_) for key, type_ in zip(sides[1].keys, types, strict=True)], names
        )
        both = concat_batches([ColumnBatch(mine), ColumnBatch(theirs)])
        codes = BatchKeys(both, range(len(names))).codes.copy()
        for index, is_safe in enumerate(self._spec.null_safe):
            column = both.data.column(index)
            if not is_safe and column.null_count:
                codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        other = codes[count:]
        # numbers of the left side are looked up in those of the right
        other[other == -1] = -2
        return codes[:count], other


def _empty(schema: Any) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([], part.type) for part in schema], schema=schema)


def _taken(data: Any, rows: Any) -> list[Any]:
    """The columns of rows; null for those with number -1."""
    return list(data.take(pa.array(rows, mask=rows < 0)).columns)


def _beside(left: Any, right: Any, one: Any, other: Any, schema: Any) -> Any:
    return pa.RecordBatch.from_arrays([*_taken(left, one), *_taken(right, other)], schema=schema)
