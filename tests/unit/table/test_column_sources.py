"""Readers of columns continue where a checkpoint left them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from firesteel.connectors.generators.datagen import DataGeneratorSplit
from firesteel.connectors.generators.nexmark import NexmarkConfig
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.source import InputStatus
from firesteel.table.connectors.nexmark.columns import type_of
from firesteel.table.connectors.nexmark.source import NexmarkColumnGenerator
from firesteel.table.runtime.decoding_source import BatchDecoder, DecodingSource
from firesteel.table.runtime.generator_source import ColumnGeneratorSource
from firesteel.types.logical import RowType

PATHS = (("bid", "auction"), ("bid", "price"))
GENERATOR = NexmarkColumnGenerator(
    NexmarkConfig(), PATHS, RowType.of(["auction", "price"], [type_of(path) for path in PATHS]), frozenset({2})
)


class Output:
    """Keeps what a reader emits."""

    def __init__(self) -> None:
        self.batches: list[ColumnBatch] = []
        self.release_split = self.emit_watermark = self.emit_side = lambda *_: None

    def collect(self, _split: str, values: Any, _timestamps: Any = None) -> None:
        assert isinstance(values, ColumnBatch)
        self.batches.append(values)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        return [row for batch in self.batches for row in batch.data.to_pylist()]


def reader_of(source: Any, splits: Sequence[DataGeneratorSplit]) -> Any:
    execution = SimpleNamespace(has_idle_gaps=False)
    context = SimpleNamespace(
        parallelism=1, subtask_index=0, execution=execution, reuses_objects=True, send_split_request=lambda: None
    )
    reader = source.create_reader(context)
    reader.add_splits(splits)
    reader.notify_no_more_splits()
    reader.start()
    return reader


def read(reader: Any, output: Output, polls: int | None = None) -> None:
    done = 0
    while polls is None or done < polls:
        done += 1
        if reader.poll_next(output, 100) is InputStatus.END_OF_INPUT:
            return


def test_a_restored_reader_continues():
    source = ColumnGeneratorSource(GENERATOR, 2000, None)
    split = DataGeneratorSplit("0", 0, 1, 2000)
    whole = Output()
    read(reader_of(source, [split]), whole)
    assert len(whole.rows) == 2000 * 46 // 50
    # as many indexes are taken as bring about the rows that were asked for
    assert 95 <= len(whole.batches[0]) <= 105
    before, after = Output(), Output()
    reader = reader_of(source, [split])
    read(reader, before, polls=3)
    read(reader_of(source, reader.snapshot_state(1)), after)
    assert before.rows + after.rows == whole.rows


class Squares(BatchDecoder):
    """Drops odd numbers."""

    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        kept = [value * value for value in values if value % 2 == 0]
        return ColumnBatch(pa.record_batch({"square": pa.array(kept, pa.int64())})) if kept else None


def test_positions_of_decoded_records_are_those_of_the_source():
    from firesteel.connectors.generators.number_sequence import NumberSequenceSource, NumberSequenceSplit

    source = DecodingSource(NumberSequenceSource(0, 499), Squares())
    split: Any = NumberSequenceSplit("0", 0, 500)
    before, after = Output(), Output()
    reader = reader_of(source, [split])
    read(reader, before, polls=2)
    read(reader_of(source, reader.snapshot_state(1)), after)
    found = [row["square"] for row in before.rows + after.rows]
    assert found == [number * number for number in range(0, 500, 2)]
