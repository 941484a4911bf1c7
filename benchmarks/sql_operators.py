"""Cost of the keyed operators of SQL per row, without a job around them.

``python -m benchmarks.sql_operators --cases distinct_day,top_n --rows 1000 16384`` feeds operators with batches of bids
that are drawn as NEXMark's are: half of them are of one auction of the last hundred, and three quarters are of few
bidders. The cost is processor time of one core. Aggregates have a local and a global phase, as with parallelism 2;
their cost is that of both.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend
from firesteel.spark.pipelined.slot_main import GC_THRESHOLDS
from firesteel.table.plan.nodes import AggregateCall, SortKey
from firesteel.table.runtime.operators.aggregate.group_aggregate import GlobalGroupAggregateSpec, GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.table.runtime.operators.ranks.deduplicate import KeepLastSpec
from firesteel.table.runtime.operators.ranks.top_n import AppendOnlyTopNSpec
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeClock, FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.logical import RowField, RowType

BIGINT = t.BigIntType(nullable=False)
COLUMNS = {
    "auction": BIGINT,
    "bidder": BIGINT,
    "price": BIGINT,
    "channel": t.VarCharType(nullable=False),
    "url": t.VarCharType(nullable=False),
    "dateTime": t.TimestampType(3, nullable=False),
    "extra": t.VarCharType(nullable=False),
    "day": t.VarCharType(nullable=False),
    "low": t.BooleanType(nullable=False),
    "middle": t.BooleanType(nullable=False),
    "high": t.BooleanType(nullable=False),
}
BIDS = RowType([RowField(name, type_) for name, type_ in COLUMNS.items()], nullable=False)
AUCTION, BIDDER, PRICE, CHANNEL, _, TIME, _, DAY, *RANGES = range(len(COLUMNS))
Process = Callable[[ColumnBatch], None]


def bids(start: int, count: int) -> ColumnBatch:
    """Some bids, the same for the same numbers."""
    draw = np.random.default_rng(start + 1)
    numbers = np.arange(start, start + count)
    last = numbers // 15 + 100
    auction = np.where(draw.random(count) < 0.5, last // 100 * 100, last - draw.integers(0, 100, count))
    person = numbers // 45 + 1000
    bidder = np.where(draw.random(count) < 0.75, person // 100 * 100 + 1, person - draw.integers(0, 1000, count))
    price = np.power(10, draw.random(count) * 6 + 2).astype(np.int64)
    names = np.array(["Apple", "Google", "Facebook", "Baidu", *(f"channel-{index}" for index in range(10_000))])
    channel = names[np.where(draw.random(count) < 0.5, draw.integers(0, 4, count), draw.integers(4, len(names), count))]
    url = np.char.add("https://www.nexmark.com/item.htm?query=1&channel_id=", (auction % 1000).astype(str))
    columns = {
        "auction": pa.array(auction),
        "bidder": pa.array(bidder),
        "price": pa.array(price),
        "channel": pa.array(channel, pa.string()),
        "url": pa.array(url, pa.string()),
        "dateTime": pa.array(numbers // 92).view(pa.timestamp("ms")),
        "extra": pa.array(np.char.add("extra-of-a-bid-", (numbers % 10_000).astype(str)), pa.string()),
        "day": pa.array(np.full(count, "2026-11-17"), pa.string()),
        "low": pa.array(price < 10_000),
        "middle": pa.array((price >= 10_000) & (price < 1_000_000)),
        "high": pa.array(price >= 1_000_000),
    }
    return ColumnBatch(pa.record_batch(columns))


# -- operators -------------------------------------------------------------------------------------------------


def _call(function: str, *arguments: int, **options: Any) -> AggregateCall:
    return AggregateCall(function, arguments, BIGINT, f"{function}{arguments}{options}", **options)


def _statistics() -> tuple[AggregateCall, ...]:
    calls = []
    for where in (None, *RANGES):
        calls.append(_call("COUNT", filter=where))
        calls += [_call("COUNT", column, distinct=True, filter=where) for column in (BIDDER, AUCTION)]
    return tuple(calls)


def _of_auction() -> tuple[AggregateCall, ...]:
    counts = [_call("COUNT", filter=where) for where in (None, *RANGES)]
    return (*counts, *(_call(name, PRICE) for name in ("MIN", "MAX", "AVG", "SUM")))


def _opened(spec: Any, backend: KeyedStateBackend | None, emit: Process) -> Process:
    operator: Any = spec.create(FAKE_RUNTIME)
    context: Any = FakeOperatorContext(lambda value: value, None, backend)
    context.emit = lambda batch, timestamps: emit(batch)
    operator.open(context)
    process: Process = operator.process_columns
    return process


def _drop(batch: ColumnBatch) -> None:
    """Results are not looked at."""


def _two_phases(grouping: tuple[int, ...], calls: tuple[AggregateCall, ...], backend: KeyedStateBackend) -> Process:
    merged = _opened(GlobalGroupAggregateSpec(BIDS, grouping, calls), backend, _drop)
    return _opened(LocalGroupAggregateSpec(BIDS, grouping, calls), None, merged)


def _one_phase(backend: KeyedStateBackend, per_row: bool = False) -> Process:
    calls = (_call("COUNT"), _call("SUM", PRICE))
    return _opened(GroupAggregateSpec(BIDS, (AUCTION,), calls, per_row=per_row), backend, _drop)


def _last(backend: KeyedStateBackend, update_before: bool) -> Process:
    return _opened(KeepLastSpec((BIDDER, AUCTION), BIDS, TIME, update_before), backend, _drop)


def _top_n(backend: KeyedStateBackend) -> Process:
    numbered = RowType([*BIDS.fields, RowField("rank_number", BIGINT)], nullable=False)
    order = (SortKey(PRICE, descending=True),)
    return _opened(AppendOnlyTopNSpec((AUCTION,), BIDS, numbered, order, 1, 10, None, True), backend, _drop)


CASES: dict[str, Callable[[KeyedStateBackend], Process]] = {
    "group_by": _one_phase,
    "group_by_row_by_row": lambda backend: _one_phase(backend, per_row=True),
    "distinct_day": lambda backend: _two_phases((DAY,), _statistics(), backend),
    "distinct_channel": lambda backend: _two_phases((CHANNEL, DAY), _statistics(), backend),
    "statistics_of_auctions": lambda backend: _two_phases((AUCTION, DAY), _of_auction(), backend),
    "last_row": lambda backend: _last(backend, update_before=False),
    "last_row_with_update_before": lambda backend: _last(backend, update_before=True),
    "top_n": _top_n,
}


# -- measuring -------------------------------------------------------------------------------------------------


def _backend(name: str, directory: Path) -> KeyedStateBackend:
    groups = KeyGroupRange(0, 127)
    if name == "rocksdb":
        return RocksDBKeyedStateBackend(groups, 128, FakeClock(), directory=directory)
    return HashMapKeyedStateBackend(groups, 128, FakeClock(), incremental=True)


def cost(case: str, backend: KeyedStateBackend, rows: int, total: int) -> float:
    """Nanoseconds per row, after a quarter of the rows."""
    process = CASES[case](backend)
    taken, counted = 0.0, 0
    for start in range(0, total, rows):
        batch = bids(start, rows)
        begin = time.process_time()
        process(batch)
        if start >= total // 4:
            taken += time.process_time() - begin
            counted += rows
    return taken * 1e9 / counted


def figures(cases: list[str], backends: list[str], sizes: list[int], total: int) -> Iterator[dict[str, Any]]:
    """One figure for each case, backend and size of batches."""
    for case in cases:
        for name in backends:
            for rows in sizes:
                with tempfile.TemporaryDirectory() as directory:
                    backend = _backend(name, Path(directory))
                    yield {"case": case, "backend": name, "rows": rows, "ns": cost(case, backend, rows, total)}
                    backend.close()


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sql_operators", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--backends", nargs="+", default=["hashmap"], choices=["hashmap", "rocksdb"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 16_384], help="of a batch")
    parser.add_argument("--total", type=int, default=500_000, help="rows of a measurement")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = []
    gc.set_threshold(*GC_THRESHOLDS)  # as in a slot
    print(f"{'case':30} {'backend':8} {'rows':>7} {'ns/row':>9}")
    for each in figures(arguments.cases.split(","), arguments.backends, arguments.rows, arguments.total):
        found.append(each)
        print(f"{each['case']:30} {each['backend']:8} {each['rows']:7,} {each['ns']:9,.0f}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
