"""Cost of the group aggregate of SQL: time per row, checkpoints, and memory per key.

``python -m benchmarks.group_aggregate`` feeds one operator, without a job around it, with batches of an integer key
and a price: COUNT(*) and SUM(price) per key, whose changes it emits with the row before. Half of the rows of the case
with 10,000 keys have one key in a hundred, as NEXMark's bids; other keys are drawn evenly. The cost is processor time
of one core. A checkpoint is the synchronous part of an incremental one after 1% of the keys have changed, beside the
first one, which has everything; the writing is not measured. With ``--json FILE`` it writes the figures to a file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.group_aggregate import GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeClock, FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.logical import RowType

INPUT = RowType.of(["auction", "price"], [t.BigIntType(nullable=False), t.BigIntType(nullable=False)])
CALLS = (
    AggregateCall("COUNT", (), t.BigIntType(nullable=False), "count"),
    AggregateCall("SUM", (1,), t.BigIntType(nullable=False), "sum"),
)
POOL = 16
"""Batches that are made before the measurement, and processed over and over."""
HOT = 10_000
"""The number of keys with hot ones."""


@dataclass(frozen=True)
class Figures:
    """What one number of keys and size of batches costs."""

    keys: int
    rows: int
    """Of a batch."""
    update_ns: float
    """Per row, with changes emitted."""
    local_ns: float
    """Per row, of the local phase alone."""
    bytes_per_key: float
    """Growth of the process by the state, its index and room to grow included."""
    full_checkpoint_ms: float
    checkpoint_ms: float
    """The synchronous part after 1% of the keys have changed."""
    checkpoint_kb: float


def _measure(keys: int, rows: int, seconds: float) -> Figures:
    draw = np.random.default_rng(1)
    batches = [_batch(draw, keys, rows) for _ in range(POOL)]
    memory = psutil.Process().memory_info().rss
    operator, backend = _operator()
    for start in range(0, keys, 1 << 16):
        operator.process_columns(_columns(np.arange(start, min(start + (1 << 16), keys))))
    grown = psutil.Process().memory_info().rss - memory
    local: Any = LocalGroupAggregateSpec(INPUT, (0,), CALLS).create(FAKE_RUNTIME)
    local.open(_context(None))
    update = _cost(operator, batches, seconds)
    before_exchange = _cost(local, batches, seconds)
    full, _ = _checkpoint(backend, 1)
    changed = draw.choice(keys, max(keys // 100, 1), replace=False)
    operator.process_columns(_columns(changed))
    part, size = _checkpoint(backend, 2)
    return Figures(keys, rows, update, before_exchange, grown / keys, full, part, size / 1024)


def _operator() -> tuple[Any, HashMapKeyedStateBackend]:
    backend = HashMapKeyedStateBackend(KeyGroupRange(0, 127), 128, FakeClock(), incremental=True)
    operator: Any = GroupAggregateSpec(INPUT, (0,), CALLS).create(FAKE_RUNTIME)
    operator.open(_context(backend))
    return operator, backend


def _context(backend: HashMapKeyedStateBackend | None) -> Any:
    context: Any = FakeOperatorContext(lambda value: value, None, backend)
    context.emit = lambda batch, timestamps: None
    return context


def _batch(draw: Any, keys: int, rows: int) -> ColumnBatch:
    numbers = draw.integers(0, keys, rows)
    if keys <= HOT:
        numbers = np.where(draw.random(rows) < 0.5, draw.integers(0, max(keys // 100, 1), rows), numbers)
    return _columns(numbers)


def _columns(keys: Any) -> ColumnBatch:
    return ColumnBatch(pa.record_batch({"auction": pa.array(keys), "price": pa.array(keys % 10_007)}))


def _cost(operator: Any, batches: list[ColumnBatch], seconds: float) -> float:
    """Nanoseconds per row."""
    rows, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        for batch in batches:
            operator.process_columns(batch)
            rows += len(batch)
    return (time.process_time() - begin) * 1e9 / rows


def _checkpoint(backend: HashMapKeyedStateBackend, number: int) -> tuple[float, int]:
    """Milliseconds of the synchronous part, and the bytes of what is to be written."""
    begin = time.process_time()
    snapshot = backend.snapshot(number, SnapshotKind.CHECKPOINT)
    took = (time.process_time() - begin) * 1e3
    size = snapshot.held[-1].length
    return took, size


def figures(all_keys: list[int], all_rows: list[int], seconds: float) -> Iterator[Figures]:
    """The figures of all cases."""
    for keys in all_keys:
        for rows in all_rows:
            yield _measure(keys, rows, seconds)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.group_aggregate", description=__doc__.split("\n")[0])
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 1_000_000, 5_000_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 16_384])
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of a measurement")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = []
    titles = ("keys", "rows", "ns/row", "local ns/row", "bytes/key", "full ms", "1% ms", "1% kB")
    print(("{:>10} " * len(titles)).format(*titles))
    for each in figures(arguments.keys, arguments.rows, arguments.seconds):
        found.append(asdict(each))
        print(
            " ".join(
                f"{value:10,.1f}" if isinstance(value, float) else f"{value:10,}" for value in asdict(each).values()
            )
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
