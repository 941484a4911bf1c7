"""Cost of SQL's streaming joins: processor time per row of one operator, without a job around it.

``python -m benchmarks.streaming_joins`` feeds both sides of a join in turn with batches of 1,024 rows: a key, a value
and a string. Rows of an updating side are changes of rows that are there: the row before, then the row after. Keys are
integers, strings or pairs of both, drawn evenly of 100,000; interval and temporal joins have a watermark that follows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.runtime.state.api.backend import KeyedStateBackendParameters
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.spi.execution_traits import PIPELINED
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.interval import SqlIntervalJoinSpec
from firesteel.table.runtime.operators.joins.regular import RegularJoinSpec
from firesteel.table.runtime.operators.joins.sides import JoinSide
from firesteel.table.runtime.operators.joins.temporal import TemporalJoinSpec
from firesteel.testing.operator_context import FakeClock, FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

TYPES = {"int": (t.BigIntType(),), "string": (t.VarCharType(100),), "pair": (t.BigIntType(), t.VarCharType(100))}
ROWTIME = t.TimestampType(3, t.TimestampKind.ROWTIME)
KEYS = 100_000


def side_type(key: str, timed: bool = False) -> RowType:
    """The columns of a side: its key, a value, a string, and perhaps a time."""
    types = [*TYPES[key], t.BigIntType(), t.VarCharType(100), *([ROWTIME] if timed else [])]
    return RowType.of([f"c{index}" for index in range(len(types))], types, nullable=False)


def columns(key: str, keys: Any, values: Any, times: Any = None) -> Any:
    """The rows of keys and values."""
    numbers = pa.array(keys)
    texts = pa.array([f"key-{number:08}" for number in keys.tolist()])
    parts = {"int": [numbers], "string": [texts], "pair": [numbers, texts]}[key]
    parts = [*parts, pa.array(values), pa.array([f"value {number}" for number in values.tolist()])]
    if times is not None:
        parts.append(pa.array(times).cast(pa.timestamp("ms")))
    return pa.RecordBatch.from_arrays(parts, schema=columns_schema(side_type(key, times is not None)))


def appended(key: str, rows: int, count: int, keys: int, seed: int) -> list[ColumnBatch]:
    """Batches of new rows."""
    draw = np.random.default_rng(seed)
    return [
        ColumnBatch(columns(key, draw.integers(0, keys, rows), draw.integers(0, 10**6, rows))) for _ in range(count)
    ]


def updated(key: str, rows: int, count: int, keys: int, seed: int) -> list[ColumnBatch]:
    """Batches that first add a row for each key, and then change it over and over."""
    draw = np.random.default_rng(seed)
    values: dict[int, int] = {}
    batches = []
    for _ in range(count):
        kinds, numbers, found = [], [], []
        while len(kinds) < rows:
            number, value = int(draw.integers(0, keys)), int(draw.integers(0, 10**6))
            if number in values:
                kinds += [1, 2]
                numbers += [number, number]
                found += [values[number], value]
            else:
                kinds.append(0)
                numbers.append(number)
                found.append(value)
            values[number] = value
        batches.append(ColumnBatch(columns(key, np.array(numbers), np.array(found)), np.array(kinds, np.int8)))
    return batches


def regular(kind: JoinKind, key: str, mode: str, ttl_ms: int) -> RegularJoinSpec:
    """A join whose sides are appended to, or updated by a unique key, or updated without one."""
    width = len(TYPES[key])
    keys = tuple(range(width))
    unique = () if mode == "unique" else None
    side = JoinSide(side_type(key), keys, unique, ttl_ms, mode == "append")
    both = [*side.row_type.fields, *side.row_type.fields]
    kept = side.row_type.fields if kind in (JoinKind.SEMI, JoinKind.ANTI) else both
    result = RowType.of([f"r{index}" for index in range(len(kept))], [part.type for part in kept], nullable=False)
    return RegularJoinSpec(side, side, kind, (False,) * width, None, result, Session())


def opened(spec: Any, backend: str, clock: FakeClock, directory: str) -> Any:
    """An operator with a state backend."""
    if backend == "hashmap":
        keyed: Any = HashMapKeyedStateBackend(KeyGroupRange(0, 127), 128, clock, incremental=True)
    else:
        from firesteel.config.configuration import Configuration
        from firesteel.runtime.state.rocksdb import create_backend

        parameters = KeyedStateBackendParameters(
            KeyGroupRange(0, 127), 128, clock, working_directory=Path(directory), incremental=True
        )
        keyed = create_backend(Configuration(), parameters)
    context: Any = FakeOperatorContext(None, clock, keyed)
    context.emit = lambda batch, timestamps: None
    operator = spec.create(OperatorRuntime(PIPELINED, 200, backend == "hashmap"))
    operator.open(context)
    return operator


def cost(steps: Iterator[tuple[Callable[[Any], None], Any]], warm_up: int) -> float:
    """Microseconds per row of all steps but the first; watermarks are given as ranges of times."""
    rows, begin = 0, 0.0
    for number, (process, batch) in enumerate(steps):
        if number == warm_up:
            begin, rows = time.process_time(), 0
        process(batch)
        rows += 0 if isinstance(batch, range) else len(batch)
    return (time.process_time() - begin) * 1e6 / rows


def measure_regular(kind: JoinKind, key: str, mode: str, ttl_ms: int, backend: str, rows: int, count: int) -> float:
    """Microseconds per row of a regular join."""
    make = appended if mode == "append" else updated
    left, right = make(key, rows, count, KEYS, 1), make(key, rows, count, KEYS, 2)
    with tempfile.TemporaryDirectory() as directory:
        operator = opened(regular(kind, key, mode, ttl_ms), backend, FakeClock(), directory)
        pairs = zip(left, right, strict=True)
        steps = chain.from_iterable(
            ((operator.process_columns, one), (operator.process_second_columns, other)) for one, other in pairs
        )
        return cost(steps, count)


def measure_timed(name: str, key: str, kind: JoinKind, backend: str, rows: int, count: int) -> float:
    """Microseconds per row of an interval join of 10 s, or of a temporal join; each batch is one second."""
    type_ = side_type(key, timed=True)
    width = len(TYPES[key])
    keys = (tuple(range(width)),) * 2
    both = [part.type for part in (*type_.fields, *type_.fields)]
    result = RowType.of([f"r{index}" for index in range(len(both))], both, nullable=False)
    times = (len(type_.fields) - 1,) * 2
    spec: Any
    if name == "interval":
        spec = SqlIntervalJoinSpec(
            type_, type_, keys, (False,) * width, times, -10_000, 10_000, True, kind, None, result, None, Session()
        )
    else:
        spec = TemporalJoinSpec(type_, type_, keys, times, kind is JoinKind.LEFT, None, result, None, Session())
    draw = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as directory:
        operator = opened(spec, backend, FakeClock(), directory)
        steps: list[Any] = []
        for number in range(count):
            for process in (operator.process_columns, operator.process_second_columns):
                drawn = draw.integers(0, KEYS // 10, rows)
                time_ms = number * 1000 + np.sort(draw.integers(0, 1000, rows))
                steps.append((process, ColumnBatch(columns(key, drawn, drawn, time_ms), None, times[0])))
            steps.append((_Watermark(operator), range(number * 1000)))
        return cost(iter(steps), len(steps) // 2)


class _Watermark:
    def __init__(self, operator: Any):
        self._operator = operator

    def __call__(self, times: range) -> None:
        self._operator.process_watermark(times.stop)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming_joins", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1024, help="of a batch")
    parser.add_argument("--batches", type=int, default=100, help="of each side; the first half is not measured")
    parser.add_argument("--backends", nargs="+", default=["hashmap", "rocksdb"])
    parser.add_argument("--keys", nargs="+", default=["int", "string", "pair"])
    parser.add_argument("--kinds", nargs="+", default=["INNER", "LEFT", "FULL", "SEMI", "ANTI"])
    parser.add_argument("--modes", nargs="+", default=["append", "unique", "rows"])
    parser.add_argument("--ttls", nargs="+", type=int, default=[0, 86_400_000])
    parser.add_argument("--timed", nargs="*", default=["interval", "temporal"])
    arguments = parser.parse_args()
    for backend in arguments.backends:
        for key in arguments.keys:
            for mode in arguments.modes:
                for ttl_ms in arguments.ttls:
                    found = [
                        measure_regular(JoinKind[kind], key, mode, ttl_ms, backend, arguments.rows, arguments.batches)
                        for kind in arguments.kinds
                    ]
                    figures = "  ".join(f"{kind} {us:.2f}" for kind, us in zip(arguments.kinds, found, strict=True))
                    print(f"{backend} {key} {mode} ttl={bool(ttl_ms)}: {figures} us/row", flush=True)
            for name in arguments.timed:
                for kind in (JoinKind.INNER, JoinKind.LEFT):
                    us = measure_timed(name, key, kind, backend, arguments.rows, arguments.batches)
                    print(f"{backend} {key} {name} {kind.name}: {us:.2f} us/row", flush=True)


if __name__ == "__main__":
    main()
