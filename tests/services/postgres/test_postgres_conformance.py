"""The PostgreSQL source and sinks through the conformance suite, against a real server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.spi.sink import DeliveryGuarantee, Sink
from firesteel.spi.source import Source
from firesteel.testing.conformance import SinkConformance, SourceConformance
from firesteel.testing.conformance.sample_values import BYTES
from tests.services.postgres.postgres_tables import EXACTLY_ONCE

ROWS = 60
POSITIONS = {
    Types.STRING(): "text",
    Types.LONG(): "bigint",
    Types.FLOAT(): "real",
    Types.DOUBLE(): "double precision",
    Types.BIG_DEC(): "numeric",
    Types.SQL_DATE(): "date",
    Types.SQL_TIMESTAMP(): "timestamp",
    BYTES: "bytea",
}
PATIENCE_S = 120.0
"""What hangs is to end; how quick the machine is, is not of interest."""


class TestPostgresSource(SourceConformance):
    """A table, in three parts."""

    kills = 3
    timeout_s = call_timeout_s = left_timeout_s = PATIENCE_S

    @pytest.fixture(autouse=True)
    def _table(self, tables: Any) -> None:
        self.tables = tables
        tables.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
        tables.run(f"INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, {ROWS}) n")
        tables.run("CREATE TABLE empty (id int PRIMARY KEY, name text)")

    position_types = tuple(POSITIONS)

    def create_source_by(self, type_info: Any, values: Sequence[Any]) -> Source[Any]:
        column = POSITIONS[type_info]
        self.tables.run(f"DROP TABLE IF EXISTS v; CREATE TABLE v (nr int NOT NULL, x {column} PRIMARY KEY)")
        for number, value in enumerate(values):
            self.tables.run(f"INSERT INTO v VALUES (%s, %s::{column})", number, value)
        builder = PostgresSource.builder().set_url(self.tables.url).set_table("v").set_fetch_size(5)
        if column not in ("text", "bytea"):
            builder.set_partition_column("x", partitions=3)
        return builder.build()

    def number_of(self, record: Any) -> int:
        return int(record.nr)

    def can_hold(self, type_info: Any, value: Any) -> bool:
        # a key of the server's has no more than some 2700 bytes
        return not isinstance(value, (str, bytes)) or ("\0" not in str(value) and len(value) < 1000)

    def create_source(self) -> Source[Any]:
        return self._source("t")

    def create_empty_source(self) -> Source[Any]:
        return self._source("empty")

    def _source(self, table: str) -> Source[Any]:
        builder = PostgresSource.builder().set_url(self.tables.url).set_table(table)
        return builder.set_partition_column("id", partitions=3).set_fetch_size(7).build()

    def expected_records(self) -> Sequence[Any]:
        return [Row(id=number, name=f"row {number}") for number in range(1, ROWS + 1)]


class TestPostgresAppend(SinkConformance):
    """Rows that are staged, and moved when their checkpoint is complete."""

    timeout_s = call_timeout_s = left_timeout_s = settle_s = PATIENCE_S

    @pytest.fixture(autouse=True)
    def _table(self, tables: Any) -> None:
        self.tables = tables
        tables.run("CREATE TABLE t (name text UNIQUE CHECK (length(name) < 40))")

    def create_sink(self) -> Sink:
        return self.tables.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(3).build()

    def create_record(self, number: int) -> Any:
        return (f"row {number}",)

    def visible_records(self) -> Sequence[Any]:
        return self.tables.run("SELECT name FROM t")

    def refused_records(self) -> Sequence[Any]:
        # a key that is there, what no text can have, what the table's own check refuses, what is no text
        return [self.create_record(0), ("\0",), ("x" * 41,), (object(),)]


class OneTable(TestPostgresAppend):
    """All checks in one test, with one table that is emptied before each."""

    outside_is_shared = False  # one run of processes that are killed is enough

    def set_up(self) -> None:
        self.tables.run("TRUNCATE t")

    def refused_records(self) -> Sequence[Any]:
        return [("\0",), (object(),)]


class Upsert(OneTable):
    """Rows by their key: those that come again replace themselves."""

    def create_sink(self) -> Sink:
        builder = self.tables.sink().set_upsert_key("name").set_batch_size(3)
        return builder.set_delivery_guarantee(EXACTLY_ONCE).build()


class AtLeastOnce(OneTable):
    def create_sink(self) -> Sink:
        return self.tables.sink().set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).set_batch_size(3).build()


@pytest.mark.parametrize(("suite", "table"), [(Upsert, "t (name text PRIMARY KEY)"), (AtLeastOnce, "t (name text)")])
def test_sink_in_one_phase_conforms(suite: type[OneTable], table: str, tables: Any) -> None:
    tables.run(f"CREATE TABLE {table}")
    conformance = suite()
    conformance.tables = tables
    report = conformance.run()
    report.raise_if_failed()
    assert len(report.passed) >= 12
