"""Upserts become a changelog with the rows before updates and whole rows for deletions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["NormalizeSpec"]


@dataclass(frozen=True)
class NormalizeSpec(OperatorSpec):
    """Knows the last row of each key. A row that is the same again, and a deletion of no row, change nothing."""

    keys: tuple[int, ...]
    row_type: RowType
    ttl_ms: int = 0

    def create(self, runtime: OperatorRuntime) -> NormalizeOperator:
        """Returns a new operator for one subtask."""
        return NormalizeOperator(self)


class NormalizeOperator(KeyedColumnOperator):
    """State of a key: its row."""

    def __init__(self, spec: NormalizeSpec) -> None:
        super().__init__(spec.keys, "last-row", spec.ttl_ms)
        self._codec = RowCodec(spec.row_type)
        self._identity = identity_of([part.type for part in spec.row_type.fields])
        self._compares = not spec.ttl_ms

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch, row by row."""
        codes, keys = self._keys_of(batch)
        known = [None if found is None else found[0] for found in self._objects.load(keys)]
        decoded = self._codec.decode(batch.data)
        changes = Changes(self._codec, batch.data, decoded)
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        touched = set()
        for row, code, kind in zip(decoded, codes.tolist(), kinds, strict=True):
            old = known[code]
            if kind in (DELETE, UPDATE_BEFORE):
                if old is None or kind == UPDATE_BEFORE:
                    continue
                found: list[tuple[int, tuple[object, ...]]] = [(DELETE, old)]
                known[code] = None
            elif old is None:
                found = [(INSERT, row)]
                known[code] = row
            elif self._compares and self._same(old, row):
                continue
            else:
                found = [(UPDATE_BEFORE, old), (UPDATE_AFTER, row)]
                known[code] = row
            touched.add(code)
            for one, changed in found:
                changes.kinds.append(one)
                changes.rows.append(changed)
        for code in touched:
            self._objects.store(keys[code], None if known[code] is None else (known[code],))
        built = changes.build(None, None)
        if built is not None:
            self.emit(built)

    def _same(self, one: tuple[object, ...], other: tuple[object, ...]) -> bool:
        return one == other if self._identity is None else bool(self._identity(one) == self._identity(other))
