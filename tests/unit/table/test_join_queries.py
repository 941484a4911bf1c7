"""Joins of streams: lookups, hints, the time that rows are kept, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from firesteel.common.errors import FiresteelWarning
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.lookups import FullCacheOptions, LookupCacheOptions
from firesteel.table.connector.source import LookupFunction, LookupTableSource
from firesteel.testing.clock import FakeClock
from firesteel.types.logical import LocalZonedTimestampType, RowType, TimestampKind, TimestampType
from tests.support.sql_harness import HarnessTable, QueryHarness

INT = DataTypes.INT()
PROCTIME = LocalZonedTimestampType(3, TimestampKind.PROCTIME)
ROWTIME = TimestampType(3, TimestampKind.ROWTIME)
ROWS = {1: [(1, 10), (1, 11)], 2: [(2, 20)]}


def type_of(**columns: Any) -> RowType:
    return RowType.of(list(columns), list(columns.values()), nullable=False)


@dataclass(frozen=True)
class Lookups(HarnessTable, LookupTableSource):
    """A table that is looked up; ``calls`` are the keys of each call."""

    cache: LookupCacheOptions | FullCacheOptions | None = None
    calls: ClassVar[list[list[Any]]] = []

    @property
    def lookup_cache(self) -> LookupCacheOptions | FullCacheOptions | None:
        return self.cache

    def create_lookup(self, key_columns: Sequence[int]) -> LookupFunction:
        return _Lookup(tuple(key_columns))


@dataclass
class _Lookup(LookupFunction):
    columns: tuple[int, ...]
    opened: bool = field(default=False)

    def open(self) -> None:
        self.opened = True

    def lookup_many(self, keys: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[tuple[Any, ...]]]:
        assert self.opened
        Lookups.calls.append(list(keys))
        rows = [row for found in ROWS.values() for row in found]
        return [[row for row in rows if tuple(row[column] for column in self.columns) == key] for key in keys]

    def read_all(self) -> Iterator[tuple[Any, ...]]:
        Lookups.calls.append(["all"])
        yield from (row for found in ROWS.values() for row in found)


TABLES = {
    "o": HarnessTable("o", type_of(k=INT, v=INT, p=PROCTIME, ts=ROWTIME)),
    "i": HarnessTable("i", type_of(k=INT, v=INT)),
    "j": HarnessTable("j", type_of(k=INT, v=INT)),
    "c": Lookups("c", type_of(id=INT, name=INT)),
    "versions": HarnessTable("versions", type_of(k=INT, v=INT, ts=ROWTIME)),
    "keyed": HarnessTable("keyed", type_of(k=INT, v=INT, ts=ROWTIME), ChangelogMode.all(), (0,)),
}
ORDERS = [("+I", (key, value, None, 0)) for value, key in enumerate((1, 2, 3, None, 1))]


def looked_up(sql: str, tables: dict[str, HarnessTable] = TABLES, times: int = 1) -> list[Any]:
    Lookups.calls.clear()
    query = QueryHarness(sql, tables)
    for _ in range(times):
        query.take()
        query.push("o", ORDERS)
    query.close()
    return sorted((row for _, row in query.take()), key=repr)


def test_a_lookup_asks_for_each_key_of_a_batch_once() -> None:
    query = "SELECT o.v, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id"
    assert looked_up(query) == [(0, 10), (0, 11), (1, 20), (4, 10), (4, 11)]
    assert Lookups.calls == [[(1,), (2,), (3,)]]


def test_a_left_lookup_join_keeps_rows_that_find_nothing() -> None:
    query = "SELECT o.v, c.name FROM o LEFT JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id AND c.name > 10"
    assert looked_up(query) == [(0, 11), (1, 20), (2, None), (3, None), (4, 11)]


def test_a_constant_is_a_key() -> None:
    query = "SELECT o.v, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id AND c.name = 11"
    assert looked_up(query) == [(0, 11), (4, 11)]
    assert Lookups.calls == [[(1, 11), (2, 11), (3, 11)]]


@pytest.mark.parametrize(("caches_missing", "second"), [(True, []), (False, [[(3,)]])])
def test_a_cache_answers_for_keys_that_it_knows(caches_missing: bool, second: list[Any]) -> None:
    options = {"lookup.cache": "PARTIAL", "lookup.partial-cache.cache-missing-key": str(caches_missing)}
    cached = Lookups("c", TABLES["c"].type, cache=LookupCacheOptions.of(options))
    query = "SELECT o.v, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id"
    assert len(looked_up(query, {**TABLES, "c": cached}, times=2)) == 5
    assert Lookups.calls[1:] == second


@pytest.mark.parametrize(
    ("options", "reads"),
    [
        ({"periodic-reload.interval": "10 min"}, [1, 1, 2]),
        ({"periodic-reload.interval": "1 min", "periodic-reload.schedule-mode": "FIXED_RATE"}, [1, 2, 3]),
        ({"reload-strategy": "TIMED", "timed-reload.iso-time": "00:07Z"}, [1, 1, 2]),
        (
            {"reload-strategy": "TIMED", "timed-reload.iso-time": "00:00Z", "timed-reload.interval-in-days": "2"},
            [1] * 3,
        ),
    ],
)
def test_a_full_cache_is_read_again(options: dict[str, str], reads: list[int]) -> None:
    cache = FullCacheOptions.of({f"lookup.full-cache.{key}": value for key, value in options.items()})
    table, clock = Lookups("c", TABLES["c"].type, cache=cache), FakeClock()
    Lookups.calls.clear()
    query = QueryHarness(
        "SELECT o.v, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id", {**TABLES, "c": table}, {}, clock
    )
    counts = []
    for _ in range(3):
        query.push("o", ORDERS)
        assert sorted(row for _, row in query.take()) == [(0, 10), (0, 11), (1, 20), (4, 10), (4, 11)]
        counts.append(len(Lookups.calls))
        clock.advance(5 * 60_000)
    query.close()
    assert counts == reads


def test_a_hint_has_retries_and_threads() -> None:
    retries = (
        "'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='1 ms', 'max-attempts'='2'"
    )
    query = (
        f"SELECT /*+ LOOKUP('table'='c', 'async'='true', {retries}, 'max-attempts'='2') */ o.v, c.name "
        "FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id"
    )
    assert looked_up(query) == [(0, 10), (0, 11), (1, 20), (4, 10), (4, 11)]
    assert sorted(Lookups.calls) == [[(1,)], [(2,)], [(3,)], [(3,)], [(3,)]]


def test_a_hint_has_a_capacity_and_an_order() -> None:
    hint = "/*+ LOOKUP('table'='c', 'async'='true', {}) */"
    query = f"SELECT {hint} o.v, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id"
    found = looked_up(query.format("'capacity'='2', 'output-mode'='allow_unordered'"))
    assert found == [(0, 10), (0, 11), (1, 20), (4, 10), (4, 11)]
    assert len(Lookups.calls) == 2
    for wrong, message in (("'capacity'='0'", "'capacity' is 0"), ("'output-mode'='any'", "'output-mode' is any")):
        with pytest.raises(ValidationError, match=message):
            looked_up(query.format(wrong))


@pytest.mark.parametrize(
    ("hint", "setting", "results"),
    [
        ("", "0 ms", [[(1, 10)], [(1, 11)], [(2, 10)]]),
        ("", "1 h", [[(1, 10)], [], []]),
        ("/*+ STATE_TTL('i' = '1 h') */", "0 ms", [[(1, 10)], [], [(2, 10)]]),
        ("/*+ STATE_TTL('x' = '1 h') */", "0 ms", [[(1, 10)], [(1, 11)], []]),
    ],
)
def test_rows_are_joined_as_long_as_they_are_kept(hint: str, setting: str, results: list[Any]) -> None:
    clock = FakeClock()
    sql = f"SELECT {hint} i.v, x.v FROM i LEFT JOIN j AS x ON i.k = x.k WHERE x.v > 0"
    query = QueryHarness(sql, TABLES, {"table.exec.state.ttl": setting}, clock)
    query.push("i", [("+I", (7, 1))])
    query.push("j", [("+I", (7, 10))])
    found = [[row for _, row in query.take()]]
    clock.advance(3_600_001)
    query.push("j", [("+I", (7, 11))])
    found.append([row for _, row in query.take()])
    query = QueryHarness(sql, TABLES, {"table.exec.state.ttl": setting}, clock)
    query.push("j", [("+I", (7, 10))])
    clock.advance(3_600_001)
    query.push("i", [("+I", (7, 2))])
    found.append([row for _, row in query.take()])
    assert found == results


@pytest.mark.parametrize(
    ("query", "setting", "is_kept"),
    [
        ("SELECT k, COUNT(*) FROM i GROUP BY k", "0 ms", True),
        ("SELECT k, COUNT(*) FROM i GROUP BY k", "1 h", False),
        ("SELECT /*+ STATE_TTL('i' = '1 h') */ k, COUNT(*) FROM i GROUP BY k", "0 ms", False),
        ("SELECT /*+ STATE_TTL('x' = '3 h') */ k, COUNT(*) FROM i AS x GROUP BY k", "1 h", True),
        ("SELECT /*+ STATE_TTL('x' = '0 ms') */ k, COUNT(*) FROM (SELECT k FROM i) AS x GROUP BY k", "1 h", True),
        ("SELECT /*+ STATE_TTL('i' = '1 h') */ k, MAX(v) FROM i WHERE v > 0 GROUP BY CUBE (k)", "0 ms", False),
        ("SELECT k, COUNT(*) FROM (SELECT /*+ STATE_TTL('i' = '1 h') */ k FROM i) GROUP BY k", "0 ms", True),
    ],
)
def test_groups_are_kept_as_long_as_hints_and_options_say(query: str, setting: str, is_kept: bool) -> None:
    clock = FakeClock()
    harness = QueryHarness(query, TABLES, {"table.exec.state.ttl": setting}, clock)
    harness.push("i", [("+I", (7, 1))])
    harness.take()
    clock.advance(3_600_001)
    harness.push("i", [("+I", (7, 2))])
    kinds = {kind for kind, _ in harness.take()}
    assert kinds == ({"-U", "+U"} if is_kept else {"+I"})


def test_a_join_that_keeps_all_rows_of_an_unbounded_table_is_a_warning() -> None:
    tables = {**TABLES, "i": replace(TABLES["i"], bounded=False)}
    with pytest.warns(FiresteelWarning, match=r"table\.exec\.state\.ttl"):
        QueryHarness("SELECT i.v, j.v FROM i JOIN j ON i.k = j.k", tables)
    QueryHarness("SELECT i.v, j.v FROM i JOIN j ON i.k = j.k", tables, {"table.exec.state.ttl": "1 d"})


def test_times_behind_a_regular_join_are_ordinary_timestamps() -> None:
    plan = QueryHarness("SELECT o.ts, i.v FROM o JOIN i ON o.k = i.k", TABLES).plan
    assert plan.row_type.fields[0].type == TimestampType(3)


def test_a_window_behind_a_regular_join_is_refused() -> None:
    joined = "WITH x AS (SELECT o.ts, i.v FROM o JOIN i ON o.k = i.k)"
    window = "TUMBLE(TABLE x, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    with pytest.raises(ValidationError, match="timecol is a time attribute type"):
        QueryHarness(f"{joined} SELECT window_end, COUNT(*) FROM {window} GROUP BY window_start, window_end", TABLES)


def test_a_deletion_ends_a_version() -> None:
    query = QueryHarness("SELECT o.v, x.v FROM o LEFT JOIN keyed FOR SYSTEM_TIME AS OF o.ts AS x ON o.k = x.k", TABLES)
    second = 10**9
    query.push("keyed", [("+I", (1, 10, second)), ("-D", (1, 10, 3 * second)), ("+I", (1, 12, 5 * second))])
    query.push("o", [("+I", (1, number, None, number * second)) for number in range(7)])
    query.watermark(MAX_WATERMARK)
    assert [row for _, row in query.take()] == [(0, None), (1, 10), (2, 10), (3, None), (4, None), (5, 12), (6, 12)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM o JOIN i FOR SYSTEM_TIME AS OF o.p ON o.k = i.k", "Processing-time temporal join is not"),
        ("SELECT * FROM o JOIN i FOR SYSTEM_TIME AS OF o.v ON o.k = i.k", "left table's time attribute field"),
        ("SELECT * FROM i FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP", "left table's time attribute field"),
        ("SELECT * FROM o FULL JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id", "only INNER and LEFT"),
        ("SELECT * FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k < c.id", "requires an equality condition on fields"),
        ("SELECT * FROM o JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v ON o.k = v.k", "requires primary key"),
        ("SELECT * FROM o JOIN keyed FOR SYSTEM_TIME AS OF o.ts AS v ON o.v = v.v", "must be included in the"),
        ("SELECT * FROM o JOIN i FOR SYSTEM_TIME AS OF o.ts ON o.k = i.k", "no row time attribute"),
        ("SELECT /*+ STATE_TTL('z' = '1 d') */ 1 FROM i JOIN j ON i.k = j.k", "cannot match the name of input tables"),
        ("SELECT /*+ STATE_TTL('z' = '1 d') */ k, COUNT(*) FROM i GROUP BY k", "cannot match the name of input tables"),
        ("SELECT /*+ STATE_TTL('i' = 'x') */ k, COUNT(*) FROM i GROUP BY k", "is not a duration"),
        ("SELECT /*+ LOOKUP('table'='c', 'x'='1') */ 1 FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.id", "'x'"),
        ("SELECT k FROM i CROSS JOIN UNNEST(v) AS t (e)", "UNNEST takes an ARRAY, a MAP or a MULTISET"),
        ("SELECT k FROM i RIGHT JOIN UNNEST(ARRAY[v]) AS t (e) ON TRUE", "RIGHT JOIN with UNNEST"),
        ("SELECT i.k FROM i, LATERAL TABLE(f(i.v)) AS t", "A table function in FROM is not supported"),
        ("SELECT k FROM i CROSS JOIN UNNEST(ARRAY[v]) AS t (e, f)", "has 1 columns, but its alias names 2"),
    ],
)  # fmt: skip
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("(", r"\(")):
        QueryHarness(sql, TABLES)
