"""Regular joins on drawn changelogs of both sides against a model in plain Python, restored and rescaled on the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.exchange import own_rows
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.columnar import row_columns
from firesteel.runtime.state.single_key.backend import SingleKeyStateBackend
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.regular import RegularJoinSpec
from firesteel.table.runtime.operators.joins.sides import JoinSide
from firesteel.testing.clock import FakeClock
from firesteel.types import logical as t
from firesteel.types.internal import from_column, to_column
from firesteel.types.logical import RowType
from tests.support.aggregate_model import RunningOperator
from tests.support.state.keyed_backends import Workbench

INSERT, BEFORE, AFTER, DELETE = range(4)
BIGINT, STRING = t.BigIntType(), t.VarCharType(100)
KEYS: dict[str, list[tuple[t.LogicalType, list[Any]]]] = {
    "none": [],
    "int": [(t.IntType(), [1, 2, 3, None])],
    "string": [(STRING, ["", "a", "b" * 7, "b" * 8, "c" * 300, "c" * 299 + "d", None])],
    "pair": [(BIGINT, [1, 2, None]), (STRING, ["a", "b", None])],
    "decimal and date": [(t.DecimalType(10, 2), [Decimal("1.50"), Decimal("-2.00")]), (t.DateType(), [0, 10_000])],
    "boolean": [(t.BooleanType(), [True, False, None])],
    "double": [(t.DoubleType(), [0.5, float("inf"), None])],
    "timestamp": [(t.TimestampType(3), [0, 10**9, None])],
    "array": [(t.ArrayType(t.IntType()), [[], [1], [1, None], None])],
}
VALUES = [1, 2, 3, None]
PAYLOADS = {
    "string": (STRING, ["x", "y", None]),
    "double": (t.DoubleType(), [0.0, -0.0, float("nan"), None]),
    "array": (t.ArrayType(t.IntType()), [[1], [2, None], None]),
}
MODES: dict[str, tuple[int, ...] | None] = {"append": None, "key": (), "value": (0,), "rows": None}
"""How rows are told apart: not at all, by the key of the join, by the value beside it, by all columns."""


def _side(keys: str, payload: str, mode: str, ttl_ms: int = 0) -> JoinSide:
    width = len(KEYS[keys])
    types = [*(type_ for type_, _ in KEYS[keys]), BIGINT, PAYLOADS[payload][0]]
    unique = MODES[mode]
    if unique:
        unique = tuple(width + column for column in unique)
    row_type = RowType.of([f"c{index}" for index in range(len(types))], types, nullable=False)
    return JoinSide(row_type, tuple(range(width)), unique, ttl_ms, mode == "append")


def _spec(left: JoinSide, right: JoinSide, kind: JoinKind, null_safe: bool, has_condition: bool) -> RegularJoinSpec:
    width = len(left.keys)
    both = [part.type for part in (*left.row_type.fields, *right.row_type.fields)]
    kept = both[: width + 2] if kind in (JoinKind.SEMI, JoinKind.ANTI) else both
    result = RowType.of([f"r{index}" for index in range(len(kept))], kept, nullable=False)
    condition = None
    if has_condition:
        values = (InputRef(BIGINT, width, "x"), InputRef(BIGINT, width + 2 + width, "y"))
        condition = Call(t.BooleanType(), "LESS_THAN_OR_EQUAL", values)
    return RegularJoinSpec(left, right, kind, (null_safe,) * width, condition, result, Session())


class History:
    """The rows of one side, and the changes that are drawn for it."""

    def __init__(self, draw: random.Random, keys: str, payload: str, mode: str):
        self._draw = draw
        self._columns = [*KEYS[keys], (BIGINT, VALUES), PAYLOADS[payload]]
        self._mode = mode
        self._identity = {"key": len(KEYS[keys]), "value": len(KEYS[keys]) + 1}.get(mode)
        self.rows: list[tuple[Any, ...]] = []

    def draw(self, count: int) -> list[tuple[int, tuple[Any, ...]]]:
        changes: list[tuple[int, tuple[Any, ...]]] = []
        for _ in range(count):
            row = tuple(self._draw.choice(values) for _, values in self._columns)
            if self._mode == "append" or not self.rows:
                same: list[Any] = []
            elif self._identity is None:
                same = [self._draw.choice(self.rows)] if self._draw.random() < 0.5 else []
            else:
                identity = repr(row[: self._identity])
                same = [known for known in self.rows if repr(known[: self._identity]) == identity]
            if not same:
                changes.append((INSERT, row))
                self.rows.append(row)
                continue
            self._remove(same[0])
            if self._draw.random() < 0.4:
                changes.append((DELETE, same[0]))
            else:
                changes += [(BEFORE, same[0]), (AFTER, row)]
                self.rows.append(row)
        return changes

    def _remove(self, row: tuple[Any, ...]) -> None:
        index = next(index for index, known in enumerate(self.rows) if repr(known) == repr(row))
        del self.rows[index]


def _batch(changes: list[tuple[int, Any]], row_type: RowType) -> ColumnBatch:
    columns = zip(*(row for _, row in changes), strict=True)
    arrays = [to_column(values, part.type) for values, part in zip(columns, row_type.fields, strict=True)]
    kinds = np.array([kind for kind, _ in changes], np.int8)
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, row_type.field_names), kinds if kinds.any() else None)


def _expected(spec: RegularJoinSpec, left: list[Any], right: list[Any]) -> Counter[str]:
    width = len(spec.left.keys)
    safe = bool(spec.null_safe) and spec.null_safe[0]

    def is_pair(one: Any, other: Any) -> bool:
        if one[:width] != other[:width] or (None in one[:width] and not safe):
            return False
        if spec.condition is None:
            return True
        return one[width] is not None and other[width] is not None and one[width] <= other[width]

    found: list[Any] = []
    if spec.kind in (JoinKind.SEMI, JoinKind.ANTI):
        is_semi = spec.kind is JoinKind.SEMI
        found = [one for one in left if any(is_pair(one, other) for other in right) is is_semi]
    else:
        padding = (None,) * (width + 2)
        found = [one + other for one in left for other in right if is_pair(one, other)]
        if spec.kind.keeps_left:
            found += [one + padding for one in left if not any(is_pair(one, other) for other in right)]
        if spec.kind.keeps_right:
            found += [padding + other for other in right if not any(is_pair(one, other) for one in left)]
    return Counter(map(repr, found))


class Job:
    """The subtasks of a join, and its result."""

    def __init__(self, spec: RegularJoinSpec, bench: Workbench, clock: FakeClock):
        self._spec = spec
        self._bench = bench
        self._clock = clock
        self._types = [part.type for part in spec.row_type.fields]
        self.result: Counter[str] = Counter()
        self._start([(bench.all_groups, bench.backend())])

    def _start(self, subtasks: list[tuple[KeyGroupRange, Any]]) -> None:
        self._subtasks = [
            (groups, backend, RunningOperator(self._spec, backend, self._clock)) for groups, backend in subtasks
        ]

    def process(self, side: int, changes: list[tuple[int, Any]]) -> None:
        own = (self._spec.left, self._spec.right)[side]
        batch = _batch(changes, own.row_type)
        for groups, _, running in self._subtasks:
            part = batch
            if len(self._subtasks) > 1:
                part = own_rows(batch, ColumnKeySelector(own.keys), self._bench.max_parallelism, groups)
            running.batches.clear()
            process = (running.operator.process_columns, running.operator.process_second_columns)[side]
            process(part)
            for emitted in running.batches:
                self._apply(emitted)

    def _apply(self, batch: ColumnBatch) -> None:
        columns = [from_column(batch.data.column(at), type_) for at, type_ in enumerate(self._types)]
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        for kind, row in zip(kinds, zip(*columns, strict=True), strict=True):
            if kind in (INSERT, AFTER):
                self.result[repr(row)] += 1
                continue
            assert self.result[repr(row)] > 0, f"{row} is retracted, but was not there"
            self.result[repr(row)] -= 1

    def checkpoint(self) -> None:
        """Goes on with what an incremental checkpoint has."""
        restored = []
        for groups, backend, _ in self._subtasks:
            for _ in range(2):  # the second one has changes only
                handle = self._bench.snapshot(backend)
                backend.notify_checkpoint_complete(self._bench.number)
            restored.append((groups, self._bench.restore([handle], groups, reusable=True)))
        self._start(restored)

    def rescale(self, parallelism: int, kind: str) -> None:
        """Goes on with a savepoint, at another parallelism and perhaps on another backend."""
        handles = [self._bench.snapshot(backend, SnapshotKind.SAVEPOINT) for _, backend, _ in self._subtasks]
        step = self._bench.max_parallelism // parallelism
        ranges = [KeyGroupRange(start, start + step - 1) for start in range(0, self._bench.max_parallelism, step)]
        self._start([(groups, self._bench.restore(handles, groups, kind=kind)) for groups in ranges])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["hashmap", "rocksdb"])
def bench(request: Any, clock: FakeClock) -> Iterator[Workbench]:
    made = Workbench(request.param, 8, clock)
    yield made
    made.close()


CASES = list(product(MODES, MODES, [False, True]))


def _run(spec: RegularJoinSpec, sides: list[History], bench: Workbench, clock: FakeClock, draw: random.Random) -> None:
    job = Job(spec, bench, clock)
    other_kind = bench.kind
    if spec.kind is JoinKind.FULL:
        other_kind = {"hashmap": "rocksdb", "rocksdb": "hashmap"}[bench.kind]
    for step in range(14):
        side = draw.randrange(2)
        job.process(side, sides[side].draw(draw.choice((1, 3, 12))))
        assert +job.result == _expected(spec, sides[0].rows, sides[1].rows), (spec.kind, step)
        if step == 4:
            job.checkpoint()
        elif step in (7, 10):
            job.rescale(2 if step == 7 else 1, other_kind if step == 7 else bench.kind)


@pytest.mark.parametrize("keys", KEYS)
def test_results_after_each_batch_are_those_of_the_rows_that_are_there(
    keys: str, bench: Workbench, clock: FakeClock
) -> None:
    draw = random.Random(f"{keys} {bench.kind}")
    # RocksDB takes long to open
    for kind in JoinKind if bench.kind == "hashmap" else draw.sample(list(JoinKind), 2):
        left, right, has_condition = draw.choice(CASES)
        payload = draw.choice(list(PAYLOADS))
        null_safe = bool(KEYS[keys]) and draw.random() < 0.5
        ttl_ms = draw.choice((0, 10**9))
        spec = _spec(
            _side(keys, payload, left, ttl_ms), _side(keys, payload, right, ttl_ms), kind, null_safe, has_condition
        )
        sides = [History(draw, keys, payload, mode) for mode in (left, right)]
        _run(spec, sides, bench, clock, draw)
        bench.close_backends()


@pytest.mark.parametrize("kind", JoinKind)
def test_rows_and_keys_with_equal_hashes_are_told_apart(
    kind: JoinKind, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr(row_columns, "hash_bytes", lambda hashes, offsets, data: hashes)
    monkeypatch.setattr(row_columns, "hash_words", lambda hashes, words: hashes & np.uint64(1))
    for left, right in (("append", "rows"), ("rows", "value"), ("value", "append"), ("key", "rows")):
        draw = random.Random(f"{left} {right}")
        spec = _spec(_side("pair", "string", left), _side("pair", "string", right), kind, False, False)
        with closing(Workbench("hashmap", 8, clock)) as bench:
            _run(spec, [History(draw, "pair", "string", mode) for mode in (left, right)], bench, clock, draw)


@pytest.mark.parametrize("mode", MODES)
def test_a_key_with_many_rows_and_many_changes(mode: str, bench: Workbench, clock: FakeClock) -> None:
    draw = random.Random(mode)
    spec = _spec(_side("int", "string", mode), _side("int", "string", mode), JoinKind.FULL, False, False)
    sides = [History(draw, "int", "string", mode) for _ in range(2)]
    job = Job(spec, bench, clock)
    for size in (100, 50, 100, 1):
        for side in (0, 1):
            job.process(side, sides[side].draw(size))
    assert +job.result == _expected(spec, sides[0].rows, sides[1].rows)


def test_a_backend_of_one_key_at_a_time(clock: FakeClock) -> None:
    spec = _spec(_side("none", "string", "rows"), _side("none", "string", "rows"), JoinKind.LEFT, False, False)
    backend = SingleKeyStateBackend(KeyGroupRange(0, 7), 8)
    backend.key = ()
    running = RunningOperator(spec, backend, clock)
    running.operator.process_columns(_batch([(INSERT, (1, "x"))], spec.left.row_type))
    running.operator.process_second_columns(_batch([(INSERT, (2, "y")), (DELETE, (2, "y"))], spec.right.row_type))
    assert [len(batch) for batch in running.batches] == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_rows_expire_after_their_last_change(mode: str, bench: Workbench, clock: FakeClock) -> None:
    side = _side("string", "string", mode, ttl_ms=10_000)
    spec = _spec(side, replace(side, ttl_ms=100_000), JoinKind.INNER, False, False)
    job = Job(spec, bench, clock)
    job.process(0, [(INSERT, ("a", 1, "x")), (INSERT, ("b", 2, "x"))])
    clock.advance(6_000)
    job.process(0, [(INSERT, ("b", 2, "x"))])
    clock.advance(6_000)
    job.process(1, [(INSERT, ("a", 3, "y")), (INSERT, ("b", 3, "y"))])
    # the row of "a" has expired; that of "b" was written again, once or for the second time
    assert +job.result == Counter({repr(("b", 2, "x", "b", 3, "y")): 1 if MODES[mode] is not None else 2})
    clock.advance(100_001)
    job.process(0, [(INSERT, ("b", 4, "x"))])
    clock.advance(100_001)
    job.process(0, [(INSERT, ("c", 4, "x"))])
    assert sum(job.result.values()) == (1 if MODES[mode] is not None else 2)
    (_, opened, _) = job._subtasks[0]
    assert list(opened.keys("right-records")) == []
    assert list(opened.keys("left-records")) == ["c"]
