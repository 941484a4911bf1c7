"""ON CONFLICT DO ERROR and DO NOTHING: upserts by a primary key of the rows that are left when a watermark comes.

A change of a row may come as two changes of different primary keys, in any order. So changes wait for the watermark
behind them. Rows of one primary key that are left then are a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.errors import EvaluationError
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["CompactingMaterializeSpec", "WatermarkStampsSpec"]

Row = tuple[Any, ...]
_LONGER_MS = 5_000
"""Changes that wait are kept so much longer than the row that was emitted, as in Flink."""


@dataclass(frozen=True)
class WatermarkStampsSpec(OperatorSpec):
    """Adds the watermark that rows are behind, as the last column."""

    def create(self, runtime: OperatorRuntime) -> WatermarkStampsOperator:
        """Returns a new operator for one subtask."""
        return WatermarkStampsOperator()


class WatermarkStampsOperator(ColumnOperator):
    """Adds the watermark that rows are behind. Rows of all subtasks up to it are there when the next one has come."""

    def __init__(self) -> None:
        self._watermark = MIN_TIMESTAMP

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows of a batch with one stamp."""
        pa = require_pyarrow("SQL")
        stamps = pa.repeat(pa.scalar(self._watermark, pa.int64()), len(batch))
        schema = batch.data.schema.append(pa.field("$watermark", pa.int64()))
        data = pa.RecordBatch.from_arrays([*batch.data.columns, stamps], schema=schema)
        self.emit(batch.with_data(data, batch.rowtime))

    def fire_timers(self, timestamp: int) -> bool:
        """Remembers the watermark."""
        self._watermark = timestamp
        return True


@dataclass(frozen=True)
class CompactingMaterializeSpec(OperatorSpec):
    """Emits upserts: of each key the row that is left when a watermark comes. The input has stamps."""

    keys: tuple[int, ...]
    upsert_key: tuple[int, ...]
    fails: bool
    row_type: RowType
    output_rowtime: int | None = None
    ttl_ms: int = 0
    """``table.exec.state.ttl``: how long an emitted row is known, and changes a little longer; 0 for ever."""

    def create(self, runtime: OperatorRuntime) -> CompactingMaterializeOperator:
        """Returns a new operator for one subtask."""
        return CompactingMaterializeOperator(self)


@dataclass
class _Waiting:
    """The changes of a key that wait; state has the values of its fields."""

    restored: int | None
    """The checkpoint from which the job was restored that wrote this."""
    current: Row | None
    """The row that was emitted last."""
    changes: dict[int, list[tuple[int, Row]]]
    """The kinds and rows that wait, by their stamps."""
    emitted_at: int = 0
    """When that row was emitted, if there is a time-to-live."""
    changed_at: dict[int, int] = field(default_factory=dict)
    """When the last change of a stamp came, likewise."""

    def stored(self, has_times: bool) -> Any:
        """What state has; None if there is nothing."""
        if self.current is None and not self.changes:
            return None
        times = (self.emitted_at, self.changed_at) if has_times else ()
        return (self.restored, self.current, self.changes, *times)

    def expire(self, now: int, ttl_ms: int) -> None:
        """Forgets what is older than the time-to-live; what has no time gets one."""
        if self.emitted_at and self.emitted_at + ttl_ms <= now:
            self.current = None
        self.emitted_at = self.emitted_at or now
        self.changed_at = {stamp: self.changed_at.get(stamp, now) for stamp in self.changes}
        for stamp, time in list(self.changed_at.items()):
            if time + ttl_ms + _LONGER_MS <= now:
                del self.changes[stamp], self.changed_at[stamp]


class CompactingMaterializeOperator(KeyedColumnOperator):
    """Flink's WatermarkCompactingSinkMaterializer.

    1. A change waits under its stamp. One that takes back another under the same stamp leaves with it.
    2. When a watermark is above the stamp, the changes are applied to the row that was emitted last.
    3. No row left: it is deleted. One: it is emitted if it is another. Several: a conflict.

    Stamps of different attempts cannot be compared if the parallelism is another one. So changes that were restored,
    and those that come before the first watermark of an attempt, are applied in their order at the next watermark.
    """

    def __init__(self, spec: CompactingMaterializeSpec) -> None:
        # its parts expire on their own, before the state of the key does
        super().__init__(spec.keys, "waiting", spec.ttl_ms and spec.ttl_ms + 2 * _LONGER_MS)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._identity = identity_of([part.type for part in spec.row_type.fields])
        self._key_identity = identity_of([spec.row_type.fields[column].type for column in spec.upsert_key])
        self._restored: int | None = None
        self._watermarks = 0
        """How many have come; the first one after a restore may be that of the checkpoint."""
        self._has_ttl = spec.ttl_ms > 0
        self._emitted: list[tuple[int, Row]] = []

    def initialize_state(self, context: StateInitializationContext) -> None:
        super().initialize_state(context)
        self._restored = context.restored_checkpoint_id

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("compaction", self)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Keeps changes until the next watermark (1)."""
        codes, keys = self._keys_of(batch)
        states = [self._settled(*each) for each in zip(keys, self._objects.load(keys), strict=True)]
        width = len(self._spec.row_type.fields)
        stamps = batch.data.column(width).to_pylist()
        rows = self._codec.decode(batch.data.select(range(width)))
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        is_settled = self._restored is None or self._watermarks > 1
        now = self.context.processing_time()
        for row, code, kind, time in zip(rows, codes.tolist(), kinds, stamps, strict=True):
            changes = states[code].changes
            stamp = time if is_settled else MIN_TIMESTAMP
            if stamp not in changes:
                self._backend.key = keys[code]
                self._timers.register_event_time_timer(None, stamp + 1)
            self._add(changes.setdefault(stamp, []), kind, row)
            states[code].changed_at[stamp] = now
        self._objects.store_all(keys, [state.stored(self._has_ttl) for state in states])

    def _settled(self, key: Any, stored: Any) -> _Waiting:
        """The state of a key, with restored changes in one list."""
        if stored is None:
            return _Waiting(self._restored, None, {})
        state = _Waiting(*stored)
        now = self.context.processing_time()
        if self._has_ttl:
            state.expire(now, self._spec.ttl_ms)
        if state.restored == self._restored:
            return state
        merged: list[tuple[int, Row]] = []
        for _, changes in sorted(state.changes.items()):
            for kind, row in changes:
                self._add(merged, kind, row)
        if merged:
            self._backend.key = key
            self._timers.register_event_time_timer(None, MIN_TIMESTAMP + 1)
        waiting = {MIN_TIMESTAMP: merged} if merged else {}
        return _Waiting(self._restored, state.current, waiting, state.emitted_at, dict.fromkeys(waiting, now))

    def _add(self, changes: list[tuple[int, Row]], kind: int, row: Row) -> None:
        adds = kind in (INSERT, UPDATE_AFTER)
        for index, (other_kind, other) in enumerate(changes):
            if (other_kind in (INSERT, UPDATE_AFTER)) != adds and self._same(row, other):
                del changes[index]
                return
        changes.append((kind, row))

    def _same(self, one: Row, other: Row) -> bool:
        return one == other if self._identity is None else self._identity(one) == self._identity(other)

    def _same_upsert_key(self, one: Row, other: Row) -> bool:
        if not self._spec.upsert_key:
            return self._same(one, other)
        keys = (tuple(row[column] for column in self._spec.upsert_key) for row in (one, other))
        first, second = keys if self._key_identity is None else map(self._key_identity, keys)
        return bool(first == second)

    def fire_timers(self, timestamp: int) -> bool:
        """Emits the rows that are left (2)."""
        import numpy as np

        if timestamp > self._timers.current_watermark:
            self._watermarks += 1
        done = self._timers.advance_watermark(timestamp)
        if self._emitted:
            emitted, self._emitted = self._emitted, []
            data = self._codec.encode([row for _, row in emitted])
            kinds = np.array([kind for kind, _ in emitted], np.int8)
            self.emit(ColumnBatch(data, kinds if kinds.any() else None, self._spec.output_rowtime))
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """All changes with the stamp before are there (3)."""
        (found,) = self._objects.load([key])
        if found is None:
            return  # it expired
        state = self._settled(key, found)
        rows = [] if state.current is None else [state.current]
        for kind, row in self._due(state, timestamp - 1):
            self._apply(rows, kind, row)
        if len(rows) > 1:
            if self._spec.fails:
                raise self._conflict(rows[0])
            if state.current is None:
                self._put(state, INSERT, rows[0])
        elif not rows:
            if state.current is not None:
                self._put(state, DELETE, None)
        elif state.current is None:
            self._put(state, INSERT, rows[0])
        elif not self._same(state.current, rows[0]):
            self._put(state, UPDATE_AFTER, rows[0])
        self._objects.store(key, state.stored(self._has_ttl))

    @staticmethod
    def _due(state: _Waiting, stamp: int) -> Iterator[tuple[int, Row]]:
        for due in sorted(time for time in state.changes if time <= stamp):
            state.changed_at.pop(due, None)
            yield from state.changes.pop(due)

    def _apply(self, rows: list[Row], kind: int, row: Row) -> None:
        place = next((index for index, other in enumerate(rows) if self._same_upsert_key(row, other)), None)
        if kind in (INSERT, UPDATE_AFTER):
            if place is None or not self._spec.upsert_key:
                rows.append(row)
            else:
                rows[place] = row
        elif place is not None:
            del rows[place]

    def _put(self, state: _Waiting, kind: int, row: Row | None) -> None:
        self._emitted.append((kind, state.current if row is None else row))  # type: ignore[arg-type]
        state.current = row
        state.emitted_at = self.context.processing_time()

    def _conflict(self, row: Row) -> EvaluationError:
        names = self._spec.row_type.field_names
        key = ", ".join(f"{names[index]}={'null' if row[index] is None else row[index]}" for index in self._spec.keys)
        return EvaluationError(
            "Primary key constraint violation: multiple distinct records with the same primary key detected. "
            f"Conflicting key: [{key}]. Use ON CONFLICT DO NOTHING to keep the first record."
        )

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""
