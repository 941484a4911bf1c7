"""Aggregate, table aggregate and table functions of users: state, retractions, parallelism and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.errors import FiresteelError
from firesteel.common.time import Duration
from firesteel.common.types import RowKind
from firesteel.config import checkpointing_options
from firesteel.table import DataTypes, EnvironmentSettings, ListView, MapView, Table, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.expressions import call, col, lit
from firesteel.table.udf import AggregateFunction, FunctionContext, TableAggregateFunction, udaf, udtaf, udtf
from firesteel.table.window import Tumble
from firesteel.testing.in_process import InProcessExecutor

LONG = DataTypes.BIGINT()


class Total(AggregateFunction[int, list[int]]):
    """A sum, without merge."""

    def open(self, function_context: FunctionContext) -> None:
        self.unit = 1

    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] += args[0] * self.unit

    def retract(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] -= args[0] * self.unit

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]


class Seen(AggregateFunction[str, Row]):
    """How many rows and different values there are, in views."""

    def create_accumulator(self) -> Row:
        return Row(ListView(), MapView())

    def accumulate(self, accumulator: Row, *args: Any) -> None:
        accumulator[0].add(args[0])
        accumulator[1][args[0] % 7] = 1

    def merge(self, accumulator: Row, accumulators: Iterable[Row]) -> None:
        for other in accumulators:
            accumulator[0].add_all(other[0])
            accumulator[1].put_all(dict(other[1].items()))

    def get_value(self, accumulator: Row) -> str:
        return f"{len(list(accumulator[0]))} {len(list(accumulator[1]))}"


class Largest(TableAggregateFunction[Row, list[int]]):
    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator[:] = sorted({*accumulator, args[0]}, reverse=True)[:2]

    def emit_value(self, accumulator: list[int]) -> Iterable[Any]:
        return [(value, place) for place, value in enumerate(accumulator)]


total = udaf(Total(), result_type=LONG, accumulator_type=DataTypes.ARRAY(LONG))
seen = udaf(Seen(), result_type="STRING", accumulator_type="STRING")
largest = udtaf(Largest(), result_type="ROW<v BIGINT, place INT>", accumulator_type="ARRAY<BIGINT>")


def final(table: Table) -> Counter[tuple[Any, ...]]:
    """The rows that are there in the end."""
    found: Counter[tuple[Any, ...]] = Counter()
    with table.execute().collect() as rows:
        for row in rows:
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            found[tuple(row)] += 1 if added else -1
    assert all(number >= 0 for number in found.values())
    return +found


@pytest.fixture
def numbers(table_env: TableEnvironment) -> Table:
    table_env.create_temporary_function("total", total)
    table_env.create_temporary_function("seen", seen)
    table_env.create_temporary_function("largest", largest)
    table_env.execute_sql(
        "CREATE TABLE numbers (n BIGINT, k AS MOD(n, 3)) WITH ('connector' = 'datagen', 'number-of-rows' = '300', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '300')"
    )
    return table_env.from_path("numbers")


def sums(key: int) -> int:
    return sum(n for n in range(1, 301) if n % 3 == key)


@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_groups_are_aggregated(table_env: TableEnvironment, numbers: Table, parallelism: str) -> None:
    table_env.get_config().set("parallelism.default", parallelism)
    found = final(table_env.sql_query("SELECT k, total(n), seen(n), SUM(n) FROM numbers GROUP BY k"))
    assert found == Counter((key, sums(key), "100 7", sums(key)) for key in range(3))
    nested = "SELECT total(c), total(DISTINCT c) FROM (SELECT k, total(n) AS c FROM numbers GROUP BY k)"
    assert final(table_env.sql_query(nested)) == Counter([(45150, 45150)])
    top = (
        numbers.group_by(col("k"))
        .flat_aggregate(largest(col("n")).alias("v", "p"))
        .select(col("k"), col("v"), col("p"))
    )
    assert sorted(final(top)) == [(0, 297, 1), (0, 300, 0), (1, 295, 1), (1, 298, 0), (2, 296, 1), (2, 299, 0)]
    with pytest.raises(ValidationError, match="does not support retraction"):
        final(table_env.sql_query("SELECT seen(c) FROM (SELECT k, COUNT(*) AS c FROM numbers GROUP BY k)"))


def test_windows_are_aggregated(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("seen", seen)
    table_env.execute_sql(
        "CREATE TABLE timed (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '30', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '0', 'fields.n.end' = '29')"
    )
    table_env.get_config().set("parallelism.default", "1")
    windows = "TUMBLE(TABLE timed, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    sql = f"SELECT seen(n) FROM {windows} GROUP BY window_start, window_end"
    assert final(table_env.sql_query(sql)) == Counter({("10 7",): 3})
    hops = "HOP(TABLE timed, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)"
    sql = f"SELECT seen(n) FROM {hops} GROUP BY window_start, window_end"
    assert final(table_env.sql_query(sql)) == Counter({("10 7",): 2, ("20 7",): 2})
    grouped = (
        table_env.from_path("timed").window(Tumble.over(lit(10).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    )
    ends = grouped.flat_aggregate(largest(col("n")).alias("v", "p")).select(col("v"), col("w").start)
    assert sorted(row[0] for row in final(ends)) == [8, 9, 18, 19, 28, 29]


def _stream(parallelism: str) -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", parallelism)
    created.create_temporary_function("total", total)
    created.create_temporary_function("seen", seen)
    created.execute_sql(
        "CREATE TABLE numbers (n BIGINT, k AS MOD(n, 3)) WITH ('connector' = 'datagen', 'rows-per-second' = '500', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000')"
    )
    return created


def test_accumulators_are_restored_at_another_parallelism(tmp_path: Path) -> None:
    query = "SELECT k, total(n) AS t, seen(n) AS s FROM numbers GROUP BY k"
    environment = _stream("2")
    environment.get_config().get_configuration().set(
        checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(50)
    )
    result = environment.execute_sql(query)
    client = result.get_job_client()
    assert client is not None
    known: dict[int, tuple[Any, ...]] = {}
    rows = result.collect()
    while len(known) < 3:
        row = next(rows)
        known[row[0]] = tuple(row)
    savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()
    for row in rows:
        known[row[0]] = tuple(row)
    restored = _stream("3")
    restored.get_config().set("execution.state-recovery.path", savepoint)
    with restored.execute_sql(query).collect() as changes:
        first = next(changes)
    # the first change takes back what its key had
    assert first.get_row_kind() is RowKind.UPDATE_BEFORE
    assert tuple(first) == known[first[0]]


def test_table_functions_follow_retractions(table_env: TableEnvironment, numbers: Table) -> None:
    table_env.create_temporary_function("times", udtf(lambda number: range(number // 50), result_types=LONG))
    counts = "(SELECT k, COUNT(*) AS c FROM numbers GROUP BY k)"
    found = final(table_env.sql_query(f"SELECT k, i FROM {counts} LEFT JOIN LATERAL TABLE(times(c)) AS T(i) ON TRUE"))
    assert sorted(found) == [(key, i) for key in range(3) for i in range(2)]
    assert "invocation=[times(c)]" in table_env.explain_sql(f"SELECT * FROM {counts}, LATERAL TABLE(times(c)) AS T(i)")


def test_failures_name_the_function(table_env: TableEnvironment, numbers: Table) -> None:
    @udaf(result_type=LONG, func_type="pandas")
    def wrong(values: Any) -> Any:
        return values.missing

    class Texts(Total):
        def get_value(self, accumulator: list[int]) -> Any:
            return "text"

    table_env.create_temporary_function("wrong", wrong)
    table_env.create_temporary_function("texts", udaf(Texts(), result_type=LONG, accumulator_type=LONG))
    table_env.create_temporary_function("pairs", udtf(lambda n: [(n,)], result_types=[LONG, LONG]))
    for sql, message in {
        "SELECT wrong(n) FROM numbers": r"wrong \(line 1, column 8\) failed with AttributeError.*test_aggregate",
        "SELECT texts(n) FROM numbers": r"texts .* returned 'text' for BIGINT",
        "SELECT p FROM numbers, LATERAL TABLE(pairs(n)) AS T(p, q)": "it has 1 values, but there are 2 columns",
    }.items():
        with pytest.raises(FiresteelError, match=message):
            final(table_env.sql_query(sql))
    for sql, message in {
        "SELECT pairs(n) FROM numbers": "table function 'pairs' cannot be called here",
        "SELECT largest(n) FROM numbers": "table aggregate function 'largest' cannot be called here",
    }.items():
        with pytest.raises(ValidationError, match=message):
            table_env.sql_query(sql)
    with pytest.raises(ValidationError, match="flat_map takes the call of a table function"):
        numbers.flat_map(call("total", col("n")))


def test_no_rows_in_batch_mode() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment._session.environment._executor = InProcessExecutor()
    environment.create_temporary_function(
        "total", udaf(Total(), result_type=LONG, accumulator_type=DataTypes.ARRAY(LONG))
    )
    for condition, expected in (("n > 9", (0, None)), ("n > 1", (5, 3))):
        query = f"SELECT total(n), MAX(n) FROM (VALUES (1), (2), (3)) AS t (n) WHERE {condition}"
        with environment.execute_sql(query).collect() as rows:
            assert [tuple(row) for row in rows] == [expected]
