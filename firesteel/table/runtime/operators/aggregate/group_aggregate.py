"""Group aggregate: a row per group, which changes as rows join and leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.common.errors import InvalidProgramError
from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.state import ColumnarStateDescriptor, columnar_state, empty_columns
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.changes import Changes, are_equal
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.aggregate.steps import RowOrder
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowField, RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["GlobalGroupAggregateSpec", "GroupAggregateOperator", "GroupAggregateSpec", "row_signs"]

_STATE = "group-aggregate"
_RETRACTS = (RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value)


@dataclass(frozen=True)
class GroupAggregateSpec(OperatorSpec):
    """Aggregates the rows of each key of a keyed stream of columns; its key selector has the grouping columns.

    The output has the grouping columns, then the results of the calls, with row kinds. A batch changes a key once,
    unless ``per_row``. Without grouping columns there is one group, which exists once it has rows.
    """

    input_type: RowType
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    generate_update_before: bool = True
    """Whether UPDATE_BEFORE rows are emitted."""
    consumes_retractions: bool = False
    """Whether the input has UPDATE_BEFORE or DELETE rows."""
    per_row: bool = False
    """Whether every row is a change of its own, as without mini-batches."""
    ttl_ms: int = 0
    """``table.exec.state.ttl``: groups are forgotten so long after their last row; 0 for never."""
    session: Session = field(default_factory=Session)
    has_row_for_none: bool = False
    """Whether a row is emitted at the end if there is no group; only without grouping columns, and in batch mode."""

    def create(self, runtime: OperatorRuntime) -> GroupAggregateOperator:
        """Returns a new operator for one subtask."""
        return GroupAggregateOperator(self)

    def create_handler(self, session: Session | None = None) -> AggregateHandler:
        """Returns what computes the calls; raises ValidationError for those that cannot be computed so."""
        return AggregateHandler(self.input_type, self.calls, self.consumes_retractions, session or self.session)

    def output_type(self) -> RowType:
        """Returns the row type of the results."""
        fields = [self.input_type.fields[index] for index in self.grouping]
        fields += [RowField(call.name, call.type) for call in self.calls]
        return RowType(fields, nullable=False)

    @property
    def key_columns(self) -> tuple[int, ...]:
        """The columns of the input batches by which they are keyed."""
        return self.grouping


@dataclass(frozen=True)
class GlobalGroupAggregateSpec(GroupAggregateSpec):
    """Merges what LocalGroupAggregateSpec emits with the same input type, grouping and calls.

    Its input has the grouping columns first.
    """

    def create(self, runtime: OperatorRuntime) -> GroupAggregateOperator:
        """Returns a new operator for one subtask."""
        return GlobalGroupAggregateOperator(self)

    @property
    def key_columns(self) -> tuple[int, ...]:
        return tuple(range(len(self.grouping)))


class GroupAggregateOperator(ColumnOperator):
    """Keeps the accumulators of groups and emits changes of their results.

    1. The distinct keys of the batch get their slots in the state.
    2. Rows that leave a group that is not there are dropped, up to the first that joins it: what they would take back
       has expired.
    3. The results before the batch are computed, as far as they may be emitted.
    4. The accumulators of all keys take up the rows.
    5. Groups without rows are removed; the others, which have changed, are marked.
    6. The rows for new, changed and removed groups are emitted.
    """

    def __init__(self, spec: GroupAggregateSpec):
        self._spec = spec
        self._handler = spec.create_handler(scoped(self, spec.session))
        output = spec.output_type()
        self._schema = columns_schema(output)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self._spec
        assert context.backend is not None
        schema = columns_schema(spec.input_type)
        key_types = tuple(schema.field(column).type for column in spec.grouping)
        descriptor = ColumnarStateDescriptor(_STATE, tuple(self._handler.dtypes), key_types, spec.ttl_ms)
        self._state = columnar_state(context.backend, descriptor, context.processing_time)
        self._is_empty = True

    def process_columns(self, batch: ColumnBatch) -> None:
        if self._spec.per_row and len(batch) > 1:
            self._process_row_by_row(batch)
            return
        self.emit(self._process(batch)[0])

    def finish(self) -> None:
        """Emits the results of no rows, if that is asked for."""
        if self._spec.has_row_for_none and self._is_empty:
            results = self._handler.results(empty_columns(self._handler.dtypes, 1), np.zeros(1, np.intp))
            self.emit(ColumnBatch(pa.RecordBatch.from_arrays(results, schema=self._schema)))

    def _process_row_by_row(self, batch: ColumnBatch) -> None:
        """Emits what each row changes, in order."""
        parts = [
            (changes, positions)
            for changes, positions in (self._run(batch) if self._handler.runs else self._in_rounds(batch))
            if len(changes)
        ]
        if len(parts) == 1:
            self.emit(parts[0][0])
        elif parts:
            order = np.argsort(np.concatenate([positions for _, positions in parts]), kind="stable")
            self.emit(concat_batches([changes for changes, _ in parts]).take(order))

    def _in_rounds(self, batch: ColumnBatch) -> Iterator[tuple[ColumnBatch, Any]]:
        """The changes of rows, and the row of each change. Rows of different keys are processed together."""
        for rows in _rounds(BatchKeys(batch, self._spec.key_columns)):
            changes, keys = self._process(batch.take(rows))
            yield changes, rows[keys]

    def _run(self, batch: ColumnBatch) -> Iterator[tuple[ColumnBatch, Any]]:
        """The same, with the accumulators of all keys after each row.

        Groups that have no rows in between start over with the next row: theirs are processed in rounds.
        """
        spec, handler, state = self._spec, self._handler, self._state
        keys = BatchKeys(batch, spec.key_columns)
        slots, is_new = state.lookup(keys)
        codes, signs = keys.codes, row_signs(batch)
        order = RowOrder(codes, keys.count)
        if signs is not None:
            self._refuse_retractions()
            counts = handler.row_counts(state.columns, slots)[codes] + order.totals(signs)
            starts_over = np.zeros(keys.count, bool)
            starts_over[codes[counts <= 0]] = True
            if starts_over.any():
                state.remove(slots[is_new])
                is_apart = starts_over[codes]
                for part, way in ((np.flatnonzero(is_apart), self._in_rounds), (np.flatnonzero(~is_apart), self._run)):
                    if len(part):
                        for changes, positions in way(batch.take(part)):
                            yield changes, part[positions]
                return
        rows = Rows(codes, signs, [_plain(column) for column in batch.data.columns], slots)
        old = handler.results(state.columns, slots)
        new = handler.results(handler.run(state.columns, rows, order), np.arange(len(batch)))
        state.update(slots)
        self._is_empty = False
        # the results before a row are those after the row before it
        before = np.where(order.before < 0, codes, order.before + keys.count)
        taken = pa.array(before)
        old = [pa.concat_arrays([first, after]).take(taken) for first, after in zip(old, new, strict=True)]
        always_changes = spec.ttl_ms > 0 or (handler.counts_rows and signs is None)
        is_changed = None if always_changes else ~_equal(old, new, len(batch))
        emitted = Changes(is_new[codes] & (order.before < 0), None, is_changed, spec.generate_update_before)
        yield self._changelog(batch, emitted, emitted.keys, old, new), emitted.keys

    def _process(self, batch: ColumnBatch) -> tuple[ColumnBatch, Any]:
        """Applies rows to the state: the changes, and of which row each change has the key."""
        spec, handler, state = self._spec, self._handler, self._state
        keys = BatchKeys(batch, spec.key_columns)
        slots, is_new = state.lookup(keys)
        columns = state.columns
        rows = self._rows(batch, keys, slots, is_new)
        # nothing but an insertion can be emitted for new keys
        always_changes = spec.ttl_ms > 0 or (handler.counts_rows and self._only_joins(rows))
        needs_old = not is_new.all() and (
            spec.generate_update_before or not always_changes or spec.consumes_retractions
        )
        old = self._old_results(slots, is_new) if needs_old else None
        self._apply(columns, rows)
        is_gone = handler.are_empty(columns, slots)
        new = handler.results(columns, slots)
        if is_gone is None or not is_gone.any():
            is_gone = None
            state.update(slots)
        else:
            state.update(slots[~is_gone])
            state.remove(slots[is_gone])
        self._is_empty = is_gone is not None and bool(is_gone.all())
        is_changed = None if always_changes or old is None else ~_equal(old, new, len(slots))
        changes = Changes(is_new, is_gone, is_changed, spec.generate_update_before)
        key_rows = keys.first_rows[changes.keys]
        return self._changelog(batch, changes, key_rows, old, new), key_rows

    def _old_results(self, slots: Any, is_new: Any) -> list[Any]:
        if not self._handler.calls_users or not is_new.any():
            return self._handler.results(self._state.columns, slots)
        known = self._handler.results(self._state.columns, slots[~is_new])
        places = pa.array(np.cumsum(~is_new) - 1, mask=is_new)
        return [column.take(places) for column in known]

    def _changelog(self, batch: ColumnBatch, changes: Changes, key_rows: Any, old: Any, new: Any) -> ColumnBatch:
        """The rows to emit; ``key_rows`` are rows of the batch that have their keys."""
        arrays = [column.take(pa.array(key_rows)) for column in self._key_arrays(batch)]
        for index, column in enumerate(new):
            arrays.append(changes.pick(None if old is None else old[index], column))
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=self._schema), changes.kinds)

    def _key_arrays(self, batch: ColumnBatch) -> Iterator[Any]:
        for place, index in enumerate(self._spec.key_columns):
            column = _plain(batch.data.column(index))
            type_ = self._schema.field(place).type
            yield column if column.type == type_ else column.cast(type_)

    def _rows(self, batch: ColumnBatch, keys: BatchKeys, slots: Any, is_new: Any) -> Rows:
        signs = row_signs(batch)
        if signs is not None:
            self._refuse_retractions()
        rows = Rows(keys.codes, signs, [_plain(column) for column in batch.data.columns], slots)
        if signs is None or not is_new.any():
            return rows
        first_joining = np.full(len(slots), len(signs), np.intp)
        joining = np.flatnonzero(signs > 0)[::-1]
        first_joining[keys.codes[joining]] = joining
        counts = ~is_new[keys.codes] | (np.arange(len(signs)) >= first_joining[keys.codes])
        return rows if counts.all() else rows.take(np.flatnonzero(counts))

    def _refuse_retractions(self) -> None:
        if not self._spec.consumes_retractions:
            raise InvalidProgramError(
                "A group aggregate that takes insertions only got rows that retract others.",
                hint="Set consumes_retractions of its spec.",
            )

    def _apply(self, columns: Sequence[Any], rows: Rows) -> None:
        self._handler.accumulate(columns, rows)

    def _only_joins(self, rows: Rows) -> bool:
        return rows.signs is None


class GlobalGroupAggregateOperator(GroupAggregateOperator):
    """Merges accumulators instead of taking up rows."""

    def _rows(self, batch: ColumnBatch, keys: BatchKeys, slots: Any, is_new: Any) -> Rows:
        return Rows(keys.codes, None, batch.data.columns[len(self._spec.grouping) :], slots)

    def _apply(self, columns: Sequence[Any], rows: Rows) -> None:
        self._handler.merge(columns, rows)

    def _only_joins(self, rows: Rows) -> bool:
        return not self._spec.consumes_retractions


def row_signs(batch: ColumnBatch) -> Any:
    """1 for rows that join and -1 for those that leave; None if all join."""
    if batch.kinds is None:
        return None
    leaves = (batch.kinds == _RETRACTS[0]) | (batch.kinds == _RETRACTS[1])
    return np.where(leaves, -1, 1) if leaves.any() else None


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _equal(old: Sequence[Any], new: Sequence[Any], count: int) -> Any:
    # a group without results never changes
    return are_equal(old, new) if old else np.ones(count, bool)


def _rounds(keys: BatchKeys) -> Iterator[Any]:
    """Rows in parts with one row of each key at most: the first row of each key, then the second, …"""
    codes = keys.codes
    order = np.argsort(codes, kind="stable")
    starts = np.zeros(keys.count + 1, np.intp)
    np.cumsum(np.bincount(codes, minlength=keys.count), out=starts[1:])
    occurrence = np.empty(len(codes), np.intp)
    occurrence[order] = np.arange(len(codes)) - starts[codes[order]]
    by_round = np.argsort(occurrence, kind="stable")
    ends = np.cumsum(np.bincount(occurrence)).tolist()
    start = 0
    for end in ends:
        yield by_round[start:end]
        start = end
