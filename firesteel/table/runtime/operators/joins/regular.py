"""Regular join: all rows of both sides are kept, and each change of one changes the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import TwoInputColumnOperator
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.expressions.nodes import Expression
from firesteel.table.expressions.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.insert_only import InsertOnlyJoinOperator
from firesteel.table.runtime.operators.joins.output import Pairs
from firesteel.table.runtime.operators.joins.sides import (
    ASSOCIATIONS,
    COUNT,
    ROW,
    STATES,
    WRITTEN,
    JoinSide,
    Record,
    Records,
)
from firesteel.table.runtime.operators.keyed_objects import keyed_objects
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["RegularJoinOperator", "RegularJoinSpec", "has_null_key"]

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)
_MIN_SWEPT = 16
"""Keys whose expired rows are removed with each batch, at least."""


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

    def create(self, runtime: OperatorRuntime) -> RegularJoinOperator | InsertOnlyJoinOperator:
        """Returns a new operator for one subtask."""
        is_inner = self.kind is JoinKind.INNER
        if is_inner and runtime.keeps_objects and self.left.only_grows and self.right.only_grows:
            return InsertOnlyJoinOperator(self)
        return RegularJoinOperator(self)


class RegularJoinOperator(TwoInputColumnOperator):
    """Joins each row with those kept of the other side, in the order in which rows come; as Flink's operators do.

    A kept row of a side that is padded with nulls, or of the left side of a semi or anti join, has the number of rows
    it is joined with: the first one takes the padded row back, and the last one brings it again.
    """

    def __init__(self, spec: RegularJoinSpec):
        self._sides = (spec.left, spec.right)
        self._kind = spec.kind
        self._null_safe = spec.null_safe
        self._condition = None if spec.condition is None else compile_row([spec.condition], spec.session)
        self._has_right = spec.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        self._is_anti = spec.kind is JoinKind.ANTI
        self._is_outer = (spec.kind.keeps_left, spec.kind.keeps_right)
        # whose records count the rows they are joined with
        self._counts = self._is_outer if self._has_right else (True, False)
        self._out = Pairs(spec.left.row_type, spec.right.row_type, spec.row_type)
        self._identities = tuple(side.identity() for side in self._sides)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._records = tuple(keyed_objects(context.backend, name) for name in STATES)

    def process_columns(self, batch: ColumnBatch) -> None:
        self._process(0, batch)

    def process_second_columns(self, batch: ColumnBatch) -> None:
        self._process(1, batch)

    # -- batches -----------------------------------------------------------------------------------------------

    def _process(self, side: int, batch: ColumnBatch) -> None:
        codes, values = distinct_keys(batch, self._sides[side].keys)
        keys = list(map(state_key, values))
        is_null = [has_null_key(value, self._null_safe) for value in values]
        own_state, other_state = self._records[side], self._records[1 - side]
        now = self.context.processing_time() if self._sides[0].ttl_ms or self._sides[1].ttl_ms else 0
        own = [self._kept(side, found, now) for found in own_state.load(keys)]
        other = [
            {} if null else self._kept(1 - side, found, now)
            for found, null in zip(other_state.load(keys), is_null, strict=True)
        ]
        changed: set[int] = set()
        changes = self._out
        rows = changes.codecs[side].decode(batch.data)
        kinds = [_INSERT] * len(rows) if batch.kinds is None else batch.kinds.tolist()
        join = self._join if self._has_right else (self._test_left, self._test_right)[side]
        for row, kind, code in zip(rows, kinds, codes.tolist(), strict=True):
            theirs = other[code]
            matches = self._matches(side, row, theirs, now) if theirs else ()
            if join(side, row, kind, own[code], matches, now, changes) and code not in changed:
                changed.add(code)
        for code, key in enumerate(keys):
            # rows with a null key are joined with none: they need not be kept
            if not is_null[code]:
                own_state.store(key, own[code])
                if code in changed:
                    other_state.store(key, other[code])
        self._expire(now, len(keys))
        result = changes.take()
        if result is not None:
            self.emit(result)

    def _kept(self, side: int, found: Any, now: int) -> Records:
        """The records of a key; a list of rows is the state of InsertOnlyJoinOperator."""
        if not found:
            return {}
        if isinstance(found, dict):
            return found
        records: Records = {}
        for row in found:
            self._add(side, row, records, 0, now)
        return records

    # -- kept rows ---------------------------------------------------------------------------------------------

    def _matches(self, side: int, row: Any, theirs: Records, now: int) -> list[Record]:
        ttl = self._sides[1 - side].ttl_ms
        records = list(theirs.values())
        if ttl:
            records = [record for record in records if record[WRITTEN] > now - ttl]
        condition = self._condition
        if condition is None:
            return records
        if side == 0:
            return [record for record in records if condition(row + record[ROW])[0] is True]
        return [record for record in records if condition(record[ROW] + row)[0] is True]

    def _add(self, side: int, row: Any, mine: Records, associations: int, now: int) -> None:
        identity = self._identities[side](row)
        known = mine.get(identity)
        ttl = self._sides[side].ttl_ms
        count = 1
        if known is not None and self._sides[side].unique_key is None and not (ttl and known[WRITTEN] <= now - ttl):
            count += known[COUNT]
        mine[identity] = [row, count, associations, now]

    def _retract(self, side: int, row: Any, mine: Records, now: int) -> None:
        identity = self._identities[side](row)
        known = mine.get(identity)
        if known is None:
            return
        if self._sides[side].unique_key is None and known[COUNT] > 1:
            known[COUNT] -= 1
            known[WRITTEN] = now
        else:
            del mine[identity]

    def _expire(self, now: int, keys: int) -> None:
        for side, state in zip(self._sides, self._records, strict=True):
            if side.ttl_ms:
                after = now - side.ttl_ms

                def remains(records: Records, after: int = after) -> bool:
                    gone = [identity for identity, record in records.items() if record[WRITTEN] <= after]
                    for identity in gone:
                        del records[identity]
                    return bool(gone)

                state.sweep(max(keys, _MIN_SWEPT), remains)

    # -- rows --------------------------------------------------------------------------------------------------
    # each returns whether records of the other side were changed

    def _join(self, side: int, row: Any, kind: int, mine: Records, matches: Any, now: int, out: Pairs) -> bool:
        is_outer, other_is_outer = self._is_outer[side], self._is_outer[1 - side]
        own_rows, other_rows = out.rows[side], out.rows[1 - side]
        found = [record[ROW] for record in matches for _ in range(record[COUNT])] if matches else []
        if kind in (_INSERT, _UPDATE_AFTER):
            self._add(side, row, mine, len(found), now)
            if not found:
                if is_outer:
                    out.pad(side, row, _INSERT)
                return False
            if other_is_outer:
                for record in matches:
                    if record[ASSOCIATIONS] == 0:
                        for _ in range(record[COUNT]):
                            out.pad(1 - side, record[ROW], _DELETE)
                    record[ASSOCIATIONS] += 1
                    record[WRITTEN] = now
            out.kinds += [_INSERT if is_outer or other_is_outer else kind] * len(found)
        else:
            self._retract(side, row, mine, now)
            if not found:
                if is_outer:
                    out.pad(side, row, _DELETE)
                return False
            out.kinds += [_DELETE if is_outer else kind] * len(found)
        own_rows += [row] * len(found)
        other_rows += found
        if other_is_outer and kind in (_UPDATE_BEFORE, _DELETE):
            for record in matches:
                if record[ASSOCIATIONS] == 1:
                    for _ in range(record[COUNT]):
                        out.pad(1 - side, record[ROW], _INSERT)
                record[ASSOCIATIONS] -= 1
                record[WRITTEN] = now
        return other_is_outer

    def _test_left(self, side: int, row: Any, kind: int, mine: Records, matches: Any, now: int, out: Pairs) -> bool:
        """A row of the left side of a semi or anti join."""
        count = sum(record[COUNT] for record in matches)
        if (count == 0) is self._is_anti:
            out.kinds.append(kind)
            out.rows[0].append(row)
        if kind in (_INSERT, _UPDATE_AFTER):
            self._add(0, row, mine, count, now)
        else:
            self._retract(0, row, mine, now)
        return False

    def _test_right(self, side: int, row: Any, kind: int, mine: Records, matches: Any, now: int, out: Pairs) -> bool:
        """A row of the right side: may change whether rows of the left side are in the result."""
        is_added = kind in (_INSERT, _UPDATE_AFTER)
        if is_added:
            self._add(1, row, mine, 0, now)
        else:
            self._retract(1, row, mine, now)
        for record in matches:
            if record[ASSOCIATIONS] == (0 if is_added else 1):
                emitted = kind if not self._is_anti else _DELETE if is_added else _INSERT
                out.kinds += [emitted] * record[COUNT]
                out.rows[0].extend([record[ROW]] * record[COUNT])
            record[ASSOCIATIONS] += 1 if is_added else -1
            record[WRITTEN] = now
        return bool(matches)


def has_null_key(key: Any, null_safe: tuple[bool, ...]) -> bool:
    """Whether a key, as ``distinct_keys`` gives it, has a null that is equal to nothing."""
    if len(null_safe) == 1:
        return key is None and not null_safe[0]
    return any(part is None and not safe for part, safe in zip(key, null_safe, strict=True))
