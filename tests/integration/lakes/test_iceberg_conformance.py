"""IcebergSink and IcebergSource in the conformance suites."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from firesteel.common import Row
from firesteel.connectors.iceberg.scan import StartingStrategy
from firesteel.connectors.iceberg.sink import IcebergSink
from firesteel.connectors.iceberg.source import IcebergSource
from firesteel.testing.conformance import KillPoint, SinkConformance, SourceConformance
from tests.support.lakes import create_iceberg, iceberg_rows


class TestIcebergSink(SinkConformance):
    parallelisms = (2,)
    kill_points = (KillPoint.PREPARED, KillPoint.BEFORE_COMMIT, KillPoint.AFTER_COMMIT, KillPoint.HALF_COMMITTED)

    def set_up(self) -> None:
        self.outside = tempfile.TemporaryDirectory()
        self.table = create_iceberg(Path(self.outside.name))

    def tear_down(self) -> None:
        self.outside.cleanup()

    def create_sink(self) -> IcebergSink:
        return IcebergSink.builder().table_loader(self.table).build()

    def create_record(self, number: int) -> Any:
        return (number, f"name {number}")

    def visible_records(self) -> list[Any]:
        return iceberg_rows(self.table)

    def refused_records(self) -> list[Any]:
        return [("text", "x"), (1, 2), (2**63, "too large")]


class TestIcebergSource(SourceConformance):
    parallelisms = (1, 3)
    kills = 3

    def set_up(self) -> None:
        self.outside = tempfile.TemporaryDirectory()
        self.table = create_iceberg(Path(self.outside.name))
        self.added = 0
        for _ in range(5):
            self.add_records()

    def tear_down(self) -> None:
        self.outside.cleanup()

    def add_records(self) -> list[Any]:
        numbers = list(range(self.added, self.added + 6))
        self.added += 6
        self.table.loaded.append(pa.table({"id": numbers, "name": [str(number) for number in numbers]}))
        return [Row(id=number, name=str(number)) for number in numbers]

    def create_source(self) -> IcebergSource:
        builder = IcebergSource.for_row().table_loader(self.table).streaming(True).monitor_interval(20)
        return builder.streaming_starting_strategy(StartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT).build()

    def expected_records(self) -> list[Any]:
        return [Row(id=number, name=str(number)) for number in range(30)]
