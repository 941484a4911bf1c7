"""DeltaSink and DeltaSource in the conformance suites."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from firesteel.common import Row
from firesteel.connectors.delta.sink import DeltaSink
from firesteel.connectors.delta.source import DeltaSource
from firesteel.testing.conformance import KillPoint, SinkConformance, SourceConformance
from tests.support.lakes import create_delta, delta_rows


class TestDeltaSink(SinkConformance):
    parallelisms = (2,)
    kill_points = (KillPoint.PREPARED, KillPoint.BEFORE_COMMIT, KillPoint.AFTER_COMMIT, KillPoint.HALF_COMMITTED)

    def set_up(self) -> None:
        self.outside = tempfile.TemporaryDirectory()
        self.table = create_delta(Path(self.outside.name))

    def tear_down(self) -> None:
        self.outside.cleanup()

    def create_sink(self) -> DeltaSink:
        return DeltaSink.for_row_data(self.table.path).build()

    def create_record(self, number: int) -> Any:
        return (number, f"name {number}")

    def visible_records(self) -> list[Any]:
        return delta_rows(self.table)

    def refused_records(self) -> list[Any]:
        return [("text", "x"), (1, 2)]


class TestDeltaSource(SourceConformance):
    parallelisms = (1, 3)
    kills = 3

    def set_up(self) -> None:
        self.outside = tempfile.TemporaryDirectory()
        self.table = create_delta(Path(self.outside.name))
        self.added = 0
        for _ in range(5):
            self.add_records()

    def tear_down(self) -> None:
        self.outside.cleanup()

    def add_records(self) -> list[Any]:
        numbers = list(range(self.added, self.added + 6))
        self.added += 6
        write_deltalake(
            self.table.path, pa.table({"id": numbers, "name": [str(number) for number in numbers]}), mode="append"
        )
        return [Row(id=number, name=str(number)) for number in numbers]

    def create_source(self) -> DeltaSource:
        builder = DeltaSource.for_continuous_row_data(self.table.path)
        return builder.starting_version(1).update_check_interval_millis(20).build()

    def expected_records(self) -> list[Any]:
        return [Row(id=number, name=str(number)) for number in range(30)]
