"""Operators between upserts and whole changelogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ChangelogNormalizeSpec", "DropUpdateBeforeSpec", "UpsertMaterializeSpec"]


@dataclass(frozen=True)
class ChangelogNormalizeSpec(OperatorSpec):
    """Keeps the last row of each key of a stream of upserts and deletions."""

    keys: tuple[int, ...]
    row_type: RowType
    update_before: bool
    per_row: bool = False
    output_rowtime: int | None = None
    ttl_ms: int = 0

    def create(self, runtime: OperatorRuntime) -> ChangelogNormalizeOperator:
        """Returns a new operator for one subtask."""
        return ChangelogNormalizeOperator(self)


class _RowsOfKeys(KeyedColumnOperator):
    """Applies the changes of a batch row by row."""

    def __init__(self, spec: ChangelogNormalizeSpec | UpsertMaterializeSpec, state_name: str) -> None:
        super().__init__(spec.keys, state_name, spec.ttl_ms)
        self._codec = RowCodec(spec.row_type)
        self._identity = identity_of([part.type for part in spec.row_type.fields])
        self._rowtime = spec.output_rowtime

    def _same(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return one == other if self._identity is None else self._identity(one) == self._identity(other)

    def _apply(self, batch: ColumnBatch, codes: Any, keys: list[Any]) -> None:
        states = self._objects.load(keys)
        rows = self._codec.decode(batch.data)
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        changes = Changes(self._codec, batch.data, rows)
        touched = set()
        for row, code, kind in zip(rows, codes.tolist(), kinds, strict=True):
            states[code] = self._next(changes, states[code], kind, row)
            touched.add(code)
        for code in touched:
            self._objects.store(keys[code], states[code])
        built = changes.build(None, self._rowtime)
        if built is not None:
            self.emit(built)

    def _next(self, changes: Changes, state: Any, kind: int, row: tuple[Any, ...]) -> Any:
        """The state of a key after a change; what it leads to is added to the changes."""
        raise NotImplementedError

    @staticmethod
    def _add(changes: Changes, kind: int, row: tuple[Any, ...]) -> None:
        changes.kinds.append(kind)
        changes.rows.append(row)


class ChangelogNormalizeOperator(_RowsOfKeys):
    """State of a key: its row. A row that changes nothing is left out, if state does not expire."""

    def __init__(self, spec: ChangelogNormalizeSpec) -> None:
        super().__init__(spec, "last-row")
        self._spec = spec

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch; without changes per row only the last row of each key counts."""
        import numpy as np

        codes, keys = self._keys_of(batch)
        if not self._spec.per_row and len(keys) < len(batch):
            last = np.empty(len(keys), np.int64)
            last[codes] = np.arange(len(batch))
            last.sort()
            batch, codes = batch.take(last), codes[last]
        self._apply(batch, codes, keys)

    def _next(self, changes: Changes, state: Any, kind: int, row: tuple[Any, ...]) -> Any:
        old = None if state is None else state[0]
        if kind in (DELETE, UPDATE_BEFORE):
            if old is not None:
                self._add(changes, DELETE, old)
            return None
        if old is None:
            self._add(changes, INSERT, row)
        elif not self._spec.ttl_ms and self._same(old, row):
            return state
        else:
            if self._spec.update_before:
                self._add(changes, UPDATE_BEFORE, old)
            self._add(changes, UPDATE_AFTER, row)
        return (row,)


@dataclass(frozen=True)
class UpsertMaterializeSpec(OperatorSpec):
    """Emits upserts: of each key the last row that is there."""

    keys: tuple[int, ...]
    row_type: RowType
    output_rowtime: int | None = None
    ttl_ms: int = 0

    def create(self, runtime: OperatorRuntime) -> UpsertMaterializeOperator:
        """Returns a new operator for one subtask."""
        return UpsertMaterializeOperator(self)


class UpsertMaterializeOperator(_RowsOfKeys):
    """State of a key: all of its rows that are there, in the order in which they came."""

    def __init__(self, spec: UpsertMaterializeSpec) -> None:
        super().__init__(spec, "rows")

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the last row of a key whenever it is another one."""
        self._apply(batch, *self._keys_of(batch))

    def _next(self, changes: Changes, state: Any, kind: int, row: tuple[Any, ...]) -> Any:
        rows: list[tuple[Any, ...]] = state or []
        if kind in (INSERT, UPDATE_AFTER):
            self._add(changes, UPDATE_AFTER if rows else INSERT, row)
            rows.append(row)
            return rows
        place = next((index for index, known in enumerate(rows) if self._same(known, row)), None)
        if place is None:
            return rows  # the row expired
        was_last = place == len(rows) - 1
        del rows[place]
        if not rows:
            self._add(changes, DELETE, row)
        elif was_last:
            self._add(changes, UPDATE_AFTER, rows[-1])
        return rows


@dataclass(frozen=True)
class DropUpdateBeforeSpec(OperatorSpec):
    """Leaves out UPDATE_BEFORE rows."""

    def create(self, runtime: OperatorRuntime) -> DropUpdateBeforeOperator:
        """Returns a new operator for one subtask."""
        return DropUpdateBeforeOperator()


class DropUpdateBeforeOperator(ColumnOperator):
    """Leaves out UPDATE_BEFORE rows."""

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the other rows."""
        import numpy as np

        if batch.kinds is not None and (batch.kinds == UPDATE_BEFORE).any():
            batch = batch.take(np.flatnonzero(batch.kinds != UPDATE_BEFORE))
        self.emit(batch)
