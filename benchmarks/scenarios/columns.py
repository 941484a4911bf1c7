"""Bids through a calc, an exchange by key and a count and sum per key: as Arrow columns, and as tuples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.skew import await_start, cpu_of_workers, records_read
from benchmarks.systems.firesteel import ReceivingSink
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueState, ValueStateDescriptor
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["run"]

KEYS = 10_000
POOL = 16
"""Batches that a reader makes when it starts, and emits over and over."""
SELECTOR = ColumnKeySelector((0,))


def run(run: Run) -> dict[str, Any]:
    """Figures of the steady state."""
    params = run.params
    client = _environment(run).execute_async("bench")
    handle = cast("Any", client._handle)
    try:
        await_start(client, params["patience_s"])
        time.sleep(params["warmup_s"])
        records, cpu, began = records_read(handle), sum(cpu_of_workers().values()), time.monotonic()
        time.sleep(params["seconds"])
        took = time.monotonic() - began
        count = records_read(handle) - records
        spent = sum(cpu_of_workers().values()) - cpu
    finally:
        client.cancel().result()
    return {"records_per_s": count / took, "cpu_ns": spent * 1e9 / max(count, 1)}


def _environment(run: Run) -> StreamExecutionEnvironment:
    config = Configuration().set_string("spark.master", f"local[{CORES}]")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    if run.params.get("in_process"):
        env._executor = InProcessExecutor()
    is_columnar = run.params["form"] == "columns"
    source = BidSource(run.params["rows"], run.params.get("projected", False), is_columnar)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "bids", None)
    (_columnar if is_columnar else _tuples)(stream, run.params["exchanged"]).sink_to(ReceivingSink())
    return env


def _columnar(bids: DataStream, exchanged: str) -> DataStream:
    names = ["auction", "price"] if exchanged == "2 columns" else None
    calc = CalcSpec(
        (lambda data: data) if names is None else (lambda data: data.select(names)),
        lambda data: pc.greater(data.column("price"), 99),
    )
    columns = bids._transform("Calc", calc, None)
    partition = columns._partition(KeyGroupPartitioner(SELECTOR))
    keyed = KeyedStream(columns._environment, partition, SELECTOR, None, columns)  # type: ignore[arg-type]
    return keyed._transform("GroupAggregate", CountAndSumSpec(), None)


def _tuples(bids: DataStream, exchanged: str) -> DataStream:
    kept = bids.filter(lambda bid: bid[2] > 99)
    if exchanged == "2 columns":
        return kept.map(lambda bid: (bid[0], bid[2])).key_by(lambda bid: bid[0], Types.LONG()).process(CountAndSum(1))
    return kept.key_by(lambda bid: bid[0], Types.LONG()).process(CountAndSum(2))


class CountAndSum(KeyedProcessFunction):
    """Count and sum per key, of tuples."""

    def __init__(self, price: int) -> None:
        self._price = price

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state."""
        self._sums: ValueState[Any] = runtime_context.get_state(ValueStateDescriptor("sums", None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Emits the new count and sum."""
        count, total = self._sums.value() or (0, 0)
        sums = count + 1, total + value[self._price]
        self._sums.update(sums)
        yield value[0], *sums


@dataclass(frozen=True)
class CountAndSumSpec(OperatorSpec):
    """Count and sum per key, of columns; a prototype whose state is in no checkpoint."""

    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        """Returns a new operator for one subtask."""
        return ColumnCountAndSum()

    def declares_states(self, *, is_keyed: bool) -> bool:
        return False


class ColumnCountAndSum(ColumnOperator):
    """Numbers keys, and has their accumulators in arrays."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._counts = np.zeros(1024, np.int64)
        self._sums = np.zeros(1024, np.int64)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the old and new count and sum of each key of the batch."""
        encoded = batch.data.column("auction").dictionary_encode()
        keys = encoded.dictionary.to_numpy().tolist()
        known = self._slots
        slots = np.array([known.setdefault(key, len(known)) for key in keys])
        while len(known) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        codes = encoded.indices.to_numpy()
        prices = batch.data.column("price").to_numpy()
        before = self._counts[slots], self._sums[slots]
        added = np.zeros(len(keys), np.int64)
        np.add.at(added, codes, prices)
        self._counts[slots] += np.bincount(codes, minlength=len(keys))
        self._sums[slots] += added
        is_new = before[0] == 0
        arrays = [
            pa.concat_arrays([encoded.dictionary.filter(pa.array(~is_new)), encoded.dictionary]),
            pa.array(np.concatenate([before[0][~is_new], self._counts[slots]])),
            pa.array(np.concatenate([before[1][~is_new], self._sums[slots]])),
        ]
        kinds = np.concatenate([np.full(int((~is_new).sum()), 1, np.int8), np.where(is_new, 0, 2).astype(np.int8)])
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(arrays, ["auction", "count", "sum"]), kinds))


@dataclass(frozen=True)
class BidSplit:
    """Bids without end."""

    index: int
    position: int = 0

    @property
    def split_id(self) -> str:
        """The index."""
        return str(self.index)


class BidSource(Source[BidSplit]):
    """NEXMark's bids of seven columns, half of them on one auction in a hundred."""

    name: ClassVar[str] = "Bids"
    emits_own_records = True

    def __init__(self, rows: int, projected: bool, columnar: bool) -> None:
        self._rows = rows
        self._projected = projected
        self.emits_columns = columnar

    def get_boundedness(self) -> Boundedness:
        """It never ends."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[BidSplit]:
        """One split for each reader."""
        return OwnedSplitEnumerator(context, [BidSplit(index) for index in range(context.current_parallelism())])

    def create_reader(self, context: ReaderContext) -> BidReader:
        """A reader of one split."""
        return BidReader(context, self._rows, self._projected, self.emits_columns)


class BidReader(SourceReader[BidSplit]):
    """Emits batches that it has made when it started: what is measured is what follows."""

    def __init__(self, context: ReaderContext, rows: int, projected: bool, columnar: bool) -> None:
        self._context = context
        self._split: BidSplit | None = None
        batches = [bids(rows, seed) for seed in range(POOL)]
        if projected:
            batches = [batch.select(["auction", "price"]) for batch in batches]
        self._batches: list[Any] = (
            [ColumnBatch(batch) for batch in batches]
            if columnar
            else [list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) for batch in batches]
        )
        self._rows = rows

    def start(self) -> None:
        """Asks for its split."""
        self._context.send_split_request()

    def add_splits(self, splits: Sequence[BidSplit]) -> None:
        """Takes the split."""
        (self._split,) = splits

    def notify_no_more_splits(self) -> None:
        """One split is all it gets anyway."""

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits one batch."""
        split = self._split
        if split is None:
            return InputStatus.NOTHING_AVAILABLE
        output.collect(split.split_id, self._batches[split.position % POOL])
        self._split = replace(split, position=split.position + 1)
        return InputStatus.MORE_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[BidSplit]:
        """The split from its next batch on."""
        return [] if self._split is None else [self._split]


def bids(count: int, seed: int) -> Any:
    """A RecordBatch of bids."""
    draw = np.random.default_rng(seed)
    is_hot = draw.random(count) < 0.5
    auctions = np.where(is_hot, draw.integers(0, KEYS // 100, count), draw.integers(0, KEYS, count))
    channels = np.array(["Google", "Facebook", "Baidu", "Apple"])[draw.integers(0, 4, count)]
    urls = [f"https://www.nexmark.com/item.htm?query={number}" for number in draw.integers(0, 1 << 20, count).tolist()]
    return pa.record_batch(
        {
            "auction": pa.array(auctions),
            "bidder": pa.array(draw.integers(0, 1 << 20, count)),
            "price": pa.array(draw.integers(0, 10_000, count)),
            "channel": pa.array(channels.tolist()),
            "url": pa.array(urls),
            "dateTime": pa.array(np.arange(count) + seed * count, pa.timestamp("ms")),
            "extra": pa.array(["x" * (20 + number % 40) for number in range(count)]),
        }
    )
