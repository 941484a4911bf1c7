"""Regular join: all rows of both sides are kept, and each change of one changes the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.join_output import JoinOutput
from firesteel.table.runtime.operators.joins.join_state import join_state
from firesteel.table.runtime.operators.joins.operator import JoinOperator
from firesteel.table.runtime.operators.joins.sides import JoinSide
from firesteel.table.runtime.operators.joins.transitions import transitions
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["RegularJoinOperator", "RegularJoinSpec"]

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)


@dataclass(frozen=True)
class RegularJoinSpec(OperatorSpec):
    """Joins rows of two keyed streams."""

    left: JoinSide
    right: JoinSide
    kind: JoinKind
    null_safe: tuple[bool, ...]
    """For each key whether null is equal to null."""
    condition: Expression | None
    """Over the columns of both sides."""
    row_type: RowType
    session: Session
    per_row: bool = False
    """Whether every row is a change of its own, as without mini-batches."""

    def create(self, runtime: OperatorRuntime) -> RegularJoinOperator:
        """Returns a new operator for one subtask."""
        return RegularJoinOperator(self)


class RegularJoinOperator(JoinOperator):
    """Joins the rows of a batch with those kept of the other side, all at a time.

    A kept row of a side that is padded with nulls, or of the left side of a semi or anti join, has the number of rows
    it is joined with: the first one takes the padded row back, and the last one brings it again.

    1. The keys of the batch are looked up. Rows with a null key are joined with none, and not kept.
    2. Pairs of rows of the batch and records of the other side are found; the condition is evaluated on them.
    3. The records of the other side that are in pairs count the rows added and retracted, in the order of the batch.
    4. The rows of the batch are added to the records of their own side, or retracted.
    5. Pairs and padded rows are emitted in the order of the batch. What one row of a side causes is what Flink's
       operator emits for it. A padded row that comes and goes within a batch is left out, but with ``per_row``.
    """

    def __init__(self, spec: RegularJoinSpec):
        self._sides = (spec.left, spec.right)
        self._null_safe = spec.null_safe
        self._has_right = spec.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        self._is_anti = spec.kind is JoinKind.ANTI
        self._is_outer = (spec.kind.keeps_left, spec.kind.keeps_right)
        # whose records count the rows they are joined with
        self._counts = self._is_outer if self._has_right else (True, False)
        self._keeps_changes = spec.per_row
        self._output = JoinOutput(spec.left.row_type, spec.right.row_type, spec.condition, spec.row_type, spec.session)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._state = join_state(context.backend, self._sides)

    def process_side(self, side: int, batch: ColumnBatch) -> None:
        if not len(batch):
            return
        kinds = batch.kinds if batch.kinds is not None and batch.kinds.any() else None
        is_added = None if kinds is None else (kinds == _INSERT) | (kinds == _UPDATE_AFTER)
        now = self.context.processing_time() if self._sides[0].ttl_ms or self._sides[1].ttl_ms else 0
        keyed, rows_with_key = self._with_keys(side, batch)
        matched = np.zeros(len(batch), np.int64)
        rows = records = ups = downs = np.zeros(0, np.int64)
        if len(keyed):
            keys = BatchKeys(keyed, self._sides[side].keys)
            slots = self._state.lookup(keys, now)
            own, other = self._state.sides[side], self._state.sides[1 - side]
            row_slots = slots[keys.codes]
            rows, records = other.matches(row_slots, now)
            if len(rows):
                rows, records = self._output.filter(side, keyed.data, rows, records, other)
            weights = other.counts[records]
            found = np.bincount(rows, weights, len(keyed)).astype(np.int64)
            keyed_added = is_added if is_added is None or rows_with_key is None else is_added[rows_with_key]
            if len(rows) and self._counts[1 - side]:
                signs = None if keyed_added is None else np.where(keyed_added[rows], 1, -1)
                touched, after, ups, downs = transitions(
                    records, signs, other.associations, keeps_changes=self._keeps_changes
                )
                other.associate(touched, after, now)
            own.apply(keyed.data, row_slots, keyed_added, found if self._counts[side] else None, now)
            if rows_with_key is None:
                matched = found
            else:
                matched[rows_with_key] = found
                rows = rows_with_key[rows]
        if self._has_right:
            kept = self._state.sides[1 - side] if len(keyed) else None
            self._emit_pairs(side, batch, kinds, is_added, matched, rows, records, ups, downs, kept)
        elif side == 0:
            passed = (matched == 0) if self._is_anti else matched > 0
            self._emit(self._output.rows(batch.data, np.flatnonzero(passed), kinds))
        elif len(ups) or len(downs):
            self._emit_left(kinds, rows, records, ups, downs)
        if len(keyed):
            self._state.finish(slots)

    def _with_keys(self, index: int, batch: ColumnBatch) -> tuple[ColumnBatch, Any]:
        """The rows without a null that is equal to nothing, and their numbers; None if these are all rows."""
        is_keyed: Any = None
        for column, safe in zip(self._sides[index].keys, self._null_safe, strict=True):
            array = batch.data.column(column)
            if not safe and array.null_count:
                valid = array.is_valid().to_numpy(zero_copy_only=False)
                is_keyed = valid if is_keyed is None else is_keyed & valid
        if is_keyed is None:
            return batch, None
        rows = np.flatnonzero(is_keyed)
        return batch.take(rows), rows

    def _emit_pairs(
        self,
        index: int,
        batch: ColumnBatch,
        kinds: Any,
        is_added: Any,
        matched: Any,
        rows: Any,
        records: Any,
        ups: Any,
        downs: Any,
        other: Any,
    ) -> None:
        """Emits pairs, the padded rows of the other side that they replace, and padded rows of the batch."""
        is_outer, other_is_outer = self._is_outer[index], self._is_outer[1 - index]
        nothing = np.zeros(0, np.int64)
        numbers = nothing if other is None else other.row_numbers(records)
        counts = nothing if other is None else other.counts[records]
        # (place in the batch, row of the batch or -1, row of the other side or -1, kind, times)
        parts: list[tuple[Any, ...]] = []
        if len(ups):
            parts.append((rows[ups], None, numbers[ups], _DELETE, counts[ups]))
        if len(rows):
            if kinds is None:
                pair_kinds: Any = _INSERT
            else:
                of_row = kinds
                if is_outer or other_is_outer:
                    of_row = np.where(is_added, _INSERT, _DELETE if is_outer else kinds)
                pair_kinds = of_row[rows]
            parts.append((rows, rows, numbers, pair_kinds, counts))
        if len(downs):
            parts.append((rows[downs], None, numbers[downs], _INSERT, counts[downs]))
        if is_outer:
            unmatched = np.flatnonzero(matched == 0)
            if len(unmatched):
                padded: Any = _INSERT if is_added is None else np.where(is_added[unmatched], _INSERT, _DELETE)
                parts.append((unmatched, unmatched, None, padded, np.ones(len(unmatched), np.int64)))
        if parts:
            for result in self._output.pairs(index, batch.data, parts, other):
                self._emit(result)

    def _emit_left(self, kinds: Any, rows: Any, records: Any, ups: Any, downs: Any) -> None:
        """Emits rows of the left side that rows of the right side bring into the result of a semi or anti join."""
        left = self._state.sides[0]
        events = np.concatenate([ups, downs])
        if self._is_anti:
            emitted = np.repeat(np.array([_DELETE, _INSERT], np.int8), [len(ups), len(downs)])
        else:
            emitted = np.zeros(len(events), np.int8) if kinds is None else kinds[rows[events]]
        order = np.argsort(rows[events], kind="stable")
        events, emitted = events[order], emitted[order]
        counts = left.counts[records[events]]
        numbers = np.repeat(left.row_numbers(records[events]), counts)
        self._emit(self._output.kept(left, numbers, np.repeat(emitted, counts)))

    def _emit(self, result: ColumnBatch | None) -> None:
        if result is not None:
            self.emit(result)
