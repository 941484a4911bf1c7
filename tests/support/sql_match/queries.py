"""Queries with MATCH_RECOGNIZE whose results and refusals are recorded from Flink: written down, and drawn.

This module imports nothing of Firesteel: the script that records runs with the Python of PyFlink.
"""

# ruff: noqa: E501 - statements
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["QUERIES", "TABLES"]

_BASE = 1_700_000_000


def _rows() -> list[list[Any]]:
    """Rows of three keys and of none, with nulls, equal times, rows out of order and late ones."""
    draw = random.Random(7)
    rows: list[list[Any]] = []
    time = 0
    for number in range(90):
        time += draw.choice([0, 0, 1, 1, 1, 2, 3])
        at = time - draw.choice([0, 0, 0, 0, 1, 1, 2, 6])
        key = draw.choice(["a", "a", "b", "b", "c", None])
        value = None if draw.random() < 0.08 else draw.randrange(0, 10)
        weight = None if draw.random() < 0.05 else draw.randrange(0, 80) / 8
        name = draw.choice(["x", "y", "z", "xy", None])
        flag = draw.choice([True, False, None])
        rows.append([number, key, value, weight, name, flag, f"{draw.randrange(0, 500) / 100:.2f}", _time(max(at, 0))])
    return rows


def _time(seconds: int) -> str:
    minute, second = divmod(seconds, 60)
    return f"2024-01-01 00:{minute:02}:{second:02}"


_COLUMNS = "id INT, k STRING, v INT, w DOUBLE, s STRING, b BOOLEAN, d DECIMAL(8, 2), ts TIMESTAMP(3)"
_ROWS = _rows()
TABLES: dict[str, tuple[str, list[list[Any]]]] = {
    "t": (f"{_COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND", _ROWS),
    "p": (f"{_COLUMNS}, pt AS PROCTIME()", _ROWS),
    "z": (
        f"{_COLUMNS}, tl AS CAST(ts AS TIMESTAMP_LTZ(3)), WATERMARK FOR tl AS tl - INTERVAL '2' SECOND",
        _ROWS,
    ),
    "n": (
        "id INT NOT NULL, k STRING NOT NULL, v BIGINT NOT NULL, r ROW<x INT, y STRING>, ts TIMESTAMP(3) NOT NULL, WATERMARK FOR ts AS ts",
        [],
    ),
}
"""The columns of each table, and its rows in the order of arrival."""


def match(
    pattern: str,
    define: str = "",
    measures: str = "",
    *,
    after: str = "AFTER MATCH SKIP PAST LAST ROW",
    within: str = "",
    partition: str = "PARTITION BY k",
    order: str = "ORDER BY ts",
    rows: str = "ONE ROW PER MATCH",
    subset: str = "",
    table: str = "t",
    select: str = "*",
) -> str:
    """A query with the clauses of MATCH_RECOGNIZE."""
    parts = [
        partition,
        order,
        f"MEASURES {measures}" if measures else "",
        rows,
        after,
        f"PATTERN ({pattern})",
        within and f"WITHIN INTERVAL {within}",
        subset and f"SUBSET {subset}",
        f"DEFINE {define}" if define else "",
    ]
    return f"SELECT {select} FROM {table} MATCH_RECOGNIZE ({' '.join(filter(None, parts))}) AS m"


_AB = "A AS A.v > 4, B AS B.v <= 4"
_IDS = "FIRST(A.id) AS a, LAST(B.id) AS b"


def _patterns() -> Iterator[str]:
    for pattern in (
        "A B",
        "A+ B",
        "A* B",
        "A? B",
        "A{2} B",
        "A{2,} B",
        "A{1,2} B",
        "A{,2} B",
        "A{0,2} B",
        "A{0,0} B",
        "A{0} B",
        "A{1} B",
        "A{1,1} B",
        "A{0,1} B",
        "A+? B",
        "A*? B",
        "A?? B",
        "A{2}? B",
        "A{1,3}? B",
        "A{2,}? B",
        "A{0,2}? B",
        "A{,2}? B",
        "A B+",
        "A B*",
        "A B?",
        "A B{2}",
        "A B{1,2}",
        "A B{2,}",
        "A B+?",
        "A B*?",
        "A B??",
        "A B{2}?",
        "A B{1,2}?",
        "A B{2,}?",
        "A | B",
        "A (B | C)",
        "PERMUTE(A, B)",
        "A {- C -} B",
        "^ A B",
        "A B $",
        "(A B)",
        "(A B)+",
        "(A B)+?",
        "(A B){2}",
        "(A B){1,2}?",
        "(A B){2} C",
        "(A B)+ C",
        "(A B)? C",
        "(A B)* C",
        "A (B C) D",
        "A (B+ C)",
        "(A+ B)",
        "(A) B",
        "(A)+ B",
        "(A+) B",
        "((A B))",
        "A B A",
        "A A",
        "A B? C",
        "A B* C",
        "A+ B* C",
        "A* B* C",
        "A+ B? C",
        "A B+ C",
        "A C B",
        "A C* B",
        "A C*? B",
        "A C+ B",
        "A C+? B",
        "A C{2} B",
        "A C? B",
        "C A B",
        "C* A B",
        "C+ A B",
        "C+? A B",
        "A",
        "A+",
        "A+?",
        "A?",
        "C",
    ):
        c = ", C.id AS c" if "C" in pattern else ""
        b = "LAST(B.id) AS b" if "B" in pattern else "COUNT(A.id) AS b"
        a = "FIRST(A.id) AS a" if "A" in pattern else "1 AS a"
        define = ", ".join(part for part in ("A AS A.v > 4", "B AS B.v <= 4") if part[0] in pattern)
        yield match(pattern, define or "C AS TRUE", f"{a}, {b if 'A' in pattern or 'B' in pattern else '2 AS b'}{c}")


def _skips() -> Iterator[str]:
    for after in (
        "",
        "AFTER MATCH SKIP TO NEXT ROW",
        "AFTER MATCH SKIP PAST LAST ROW",
        "AFTER MATCH SKIP TO FIRST A",
        "AFTER MATCH SKIP TO LAST A",
        "AFTER MATCH SKIP TO A",
        "AFTER MATCH SKIP TO FIRST B",
        "AFTER MATCH SKIP TO LAST B",
        "AFTER MATCH SKIP TO B",
        "AFTER MATCH SKIP TO FIRST C",
        "AFTER MATCH SKIP TO LAST C",
        "AFTER MATCH SKIP TO X",
    ):
        for pattern in ("A B+ C", "A B* C", "A+ B+ C"):
            if pattern == "A+ B+ C" and after.endswith(" A"):
                continue
            define = "A AS A.v > 1, B AS B.v < 8, C AS C.v > 3"
            yield match(pattern, define, "FIRST(A.id) AS a, FIRST(B.id) AS b, LAST(B.id) AS b2, C.id AS c", after=after)
    yield match("A B", _AB, _IDS, after="AFTER MATCH SKIP TO FIRST A")
    yield match("A B", _AB, _IDS, after="AFTER MATCH SKIP TO LAST A")


def _within() -> Iterator[str]:
    for within in (
        "'5' SECOND",
        "'1' SECOND",
        "'0' SECOND",
        "'2' SECOND",
        "'1' MINUTE",
        "'1' DAY",
        "'1' MONTH",
        "'0.5' SECOND",
        "'-1' SECOND",
    ):
        for pattern in ("A B", "A B* C", "A C*? B") if "1' MIN" not in within else ("A B",):
            define = "A AS A.v > 2, B AS B.v > 5" + (", C AS C.v < 5" if pattern == "A B* C" else "")
            c = ", C.id AS c" if "C" in pattern else ""
            yield match(pattern, define, f"A.id AS a, LAST(B.id) AS b{c}", within=within)
    yield match(
        "A B C",
        "A AS TRUE, C AS C.v > 3",
        "A.id AS a, C.id AS c",
        within="'3' SECOND",
        after="AFTER MATCH SKIP TO NEXT ROW",
    )

    # matches that wait for a partial match which began before them
    for within in ("", "'4' SECOND", "'7' SECOND", "'20' SECOND"):
        for after in ("PAST LAST ROW", "TO NEXT ROW", "TO LAST C"):
            measures = "FIRST(A.id) AS a, LAST(B.id) AS b, C.id AS c, MATCH_ROWTIME() AS x, LAST(ts) AS y"
            yield match(
                "A B*? C", "A AS A.v > 3, C AS C.v > A.v", measures, within=within, after=f"AFTER MATCH SKIP {after}"
            )


def _measures() -> Iterator[str]:
    pattern, define = "A+ B", "A AS A.v > 3 OR A.v IS NULL, B AS B.v <= 3"
    for measures in (
        "A.v AS x, B.v AS y",
        "FIRST(A.v) AS x, LAST(A.v) AS y",
        "LAST(A.v, 1) AS x, LAST(A.v, 2) AS y, LAST(A.v, 0) AS z",
        "FIRST(A.v, 1) AS x, FIRST(A.v, 5) AS y, FIRST(A.v, 0) AS z",
        "FIRST(id) AS x, LAST(id) AS y",
        "id AS x",
        "v AS x, s AS y",
        "LAST(v, 1) AS x, LAST(v, 3) AS y, FIRST(v, 2) AS z",
        "PREV(A.v) AS x",
        "PREV(A.v, 1) AS x",
        "PREV(A.v, 0) AS x",
        "NEXT(A.v) AS x",
        "NEXT(A.v, 1) AS x",
        "PREV(LAST(A.v)) AS x",
        "PREV(LAST(A.v, 1), 1) AS x",
        "FINAL LAST(A.v) AS x",
        "FINAL FIRST(A.v) AS x",
        "RUNNING LAST(A.v) AS x",
        "FINAL COUNT(A.v) AS x",
        "RUNNING SUM(A.v) AS x",
        "FINAL LAST(A.v, 1) AS x",
        "COUNT(*) AS x",
        "COUNT(A.v) AS x, COUNT(B.v) AS y, COUNT(v) AS z",
        "COUNT(A.*) AS x",
        "COUNT() AS x",
        "SUM(A.v) AS x, AVG(A.v) AS y, MIN(A.v) AS z, MAX(A.v) AS q",
        "SUM(A.w) AS x, AVG(A.w) AS y, MIN(A.w) AS z, MAX(A.w) AS q",
        "SUM(A.d) AS x, AVG(A.d) AS y, MIN(A.d) AS z, MAX(A.d) AS q",
        "SUM(v) AS x, AVG(w) AS y, MIN(s) AS z, MAX(ts) AS q",
        "MIN(A.s) AS x, MAX(A.s) AS y, MAX(A.b) AS z",
        "SUM(A.v * 2 + 1) AS x, SUM(A.v) * 2 AS y, MAX(A.v) - MIN(A.v) AS z",
        "SUM(A.v + B.v) AS x",
        "SUM(A.v + v) AS x",
        "SUM(1) AS x",
        "COUNT(1) AS x",
        "COUNT(DISTINCT A.v) AS x",
        "SUM(DISTINCT A.v) AS x",
        "SUM(A.v) FILTER (WHERE A.w > 1) AS x",
        "LISTAGG(A.s) AS x",
        "LISTAGG(A.s, '-') AS x",
        "CARDINALITY(COLLECT(A.v)) AS x",
        "ARRAY_AGG(A.v) AS x",
        "STDDEV_POP(A.v) AS x, VAR_SAMP(A.v) AS y",
        "FIRST_VALUE(A.v) AS x, LAST_VALUE(A.v) AS y",
        "SUM(SUM(A.v)) AS x",
        "SUM(LAST(A.v)) AS x",
        "LAST(SUM(A.v)) AS x",
        "FIRST(LAST(A.v)) AS x",
        "FIRST(A.v + 1) AS x, LAST(A.v * 2, 1) AS y",
        "LAST(A.v + B.v) AS x",
        "FIRST(A.v, B.v) AS x",
        "LAST(A.v, -1) AS x",
        "LAST(A.v, 1 + 1) AS x",
        "LAST(A.v, CAST(NULL AS INT)) AS x",
        "LAST(1) AS x",
        "CLASSIFIER() AS x",
        "MATCH_NUMBER() AS x",
        "MATCH_ROWTIME() AS x",
        "MATCH_ROWTIME(ts) AS x",
        "MATCH_ROWTIME(A.ts) AS x",
        "MATCH_ROWTIME(A.v) AS x",
        "MATCH_PROCTIME() AS x",
        "CAST(MATCH_ROWTIME() AS TIMESTAMP(3)) AS x, A.ts AS y",
        "A.ts AS x, B.ts AS y, LAST(A.ts) AS z",
        "A.k AS x",
        "k AS x",
        "A.v + B.v AS x, A.s || B.s AS y, CASE WHEN A.v > 5 THEN 'high' ELSE 'low' END AS z",
        "UPPER(A.s) AS x, COALESCE(A.v, -1) AS y, CAST(A.v AS STRING) AS z",
        "'q' AS x, 1 AS y, CAST(NULL AS INT) AS z, TRUE AS q",
        "A.x AS x",
        "C.v AS x",
        "t.v AS x",
        "A.v AS k",
        "A.v AS x, B.v AS x",
        "A.v AS v",
        "A.v IS NULL AS x, A.v > B.v AS y, NOT A.b AS z",
        "SUM(A.v) AS x, SUM(A.v) AS y, COUNT(A.v) + SUM(A.v) AS z",
        "TIMESTAMPDIFF(SECOND, FIRST(A.ts), B.ts) AS x",
        "(SELECT 1) AS x",
        "SUM(A.v) OVER (ORDER BY ts) AS x",
        "LAST(A.v) > SUM(A.v) AS x",
        "A.id + LAST(A.id, 1) AS x",
        "AVG(A.v + A.w) AS x",
        "SUM(CASE WHEN A.v > 5 THEN 1 ELSE 0 END) AS x",
        "MAX(COALESCE(A.v, 0)) AS x",
        "COUNT(A.v > 5) AS x",
    ):
        yield match(pattern, define, measures)


def _defines() -> Iterator[str]:
    for define in (
        "A AS v > 4",
        "A AS id > 4 AND B.v > 2",
        "A AS A.v > 4",
        "A AS A.v > 4, B AS B.v < A.v",
        "A AS A.v > 2, B AS B.v > LAST(A.v)",
        "A AS LAST(A.v, 1) IS NULL OR A.v > LAST(A.v, 1), B AS B.v < LAST(A.v, 1)",
        "A AS LAST(A.v, 1) IS NULL OR A.v > LAST(A.v, 1)",
        "A AS A.v >= FIRST(A.v), B AS B.v < FIRST(A.v)",
        "A AS SUM(A.v) < 15, B AS B.v > 1",
        "A AS SUM(A.v) < 15",
        "A AS AVG(A.v) < 6, B AS B.v > AVG(A.v)",
        "A AS COUNT(A.v) < 3, B AS B.v > 1",
        "A AS COUNT(*) < 4, B AS TRUE",
        "A AS MAX(A.w) - MIN(A.w) < 5, B AS B.w > MAX(A.w)",
        "A AS SUM(A.d) < 6.5, B AS B.d > 1",
        "A AS A.v > 2, B AS B.v > SUM(A.v)",
        "A AS A.v > 2, B AS SUM(B.v) > 3",
        "A AS A.v > 2, B AS B.v + SUM(A.v) > 6",
        "A AS A.v > 2, B AS SUM(v) > 16",
        "A AS A.v > 2, B AS COUNT(*) > 3",
        "A AS SUM(v) < 12, B AS TRUE",
        "A AS LAST(v, 1) > 2, B AS TRUE",
        "A AS LAST(v, 1) IS NULL, B AS TRUE",
        "A AS FIRST(v) > 2, B AS v < FIRST(v)",
        "A AS A.s = 'x', B AS B.s LIKE '%y%'",
        "A AS A.b, B AS NOT B.b",
        "A AS A.b IS NOT TRUE, B AS B.v IS NOT NULL",
        "A AS A.v IN (1, 3, 5), B AS B.v BETWEEN 2 AND 7",
        "A AS CASE WHEN A.v > 5 THEN A.b ELSE A.w > 3 END, B AS B.v > 1",
        "A AS A.v / (A.v - 4) > 0, B AS TRUE",
        "A AS PREV(A.v) > 2",
        "A AS PREV(A.v, 1) > 2",
        "A AS PREV(A.v, 0) > 2",
        "A AS NEXT(A.v) > 2",
        "A AS PREV(LAST(A.v)) > 2",
        "A AS FINAL LAST(A.v) > 2",
        "A AS RUNNING LAST(A.v) > 2",
        "A AS CLASSIFIER() = 'A'",
        "A AS MATCH_NUMBER() = 1",
        "A AS MATCH_ROWTIME() > TIMESTAMP '2024-01-01 00:00:10'",
        "A AS A.ts > TIMESTAMP '2024-01-01 00:00:10', B AS B.ts > A.ts",
        "A AS A.v > 2, B AS B.ts > LAST(A.ts) + INTERVAL '1' SECOND",
        "A AS A.v",
        "A AS NULL",
        "A AS 1",
        "A AS C.v > 1",
        "A AS A.q > 1",
        "A AS A.v > 1, A AS A.v > 2",
        "A AS A.v > 1, C AS C.v > 2",
        "B AS B.v > 4",
        "A AS TRUE",
        "A AS FALSE",
        "A AS COUNT(DISTINCT A.v) < 3",
        "A AS SUM(A.v) OVER (ORDER BY ts) > 1",
        "A AS A.v IN (SELECT v FROM p)",
        "A AS EXISTS (SELECT 1 FROM p)",
        "A AS A.v > (SELECT 3)",
        "A AS SUM(A.v + B.v) > 1",
        "A AS LISTAGG(A.s) = 'x'",
        "A AS A.v > 4, B AS A.v > B.v AND FIRST(A.id) < B.id",
        "A AS SUM(A.v) > LAST(A.v, 1) OR LAST(A.v, 1) IS NULL, B AS AVG(A.w) > B.w",
        "A AS CHAR_LENGTH(A.s) > 1 OR A.s IS NULL, B AS UPPER(B.s) = 'X'",
        "A AS MOD(A.id, 2) = 0, B AS MOD(B.id, 3) = 0",
        "A AS A.v > 3, B AS B.v > 3 AND B.s = LAST(A.s)",
        "A AS SUM(A.v) < 100 AND COUNT(A.id) < 3, B AS MIN(A.v) < B.v AND MAX(A.v) > B.v",
    ):
        yield match("A+ B", define, "FIRST(A.id) AS a, COUNT(A.id) AS n, B.id AS b")


def _clauses() -> Iterator[str]:
    yield match("A B", _AB, "", partition="")
    yield match("A B", _AB, "")
    yield match("A B", _AB, "", select="k")
    yield match("A B", _AB, "A.id AS x", partition="")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY k, s")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY b", select="x, b")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY k, k")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY UPPER(k)")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY q")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY t.k")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY ts")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY d")
    yield match("A B", _AB, "A.id AS x", partition="PARTITION BY w")
    for order in (
        "",
        "ORDER BY ts ASC",
        "ORDER BY ts DESC",
        "ORDER BY ts, id",
        "ORDER BY ts, id DESC",
        "ORDER BY ts, v, id",
        "ORDER BY ts ASC, w ASC, id ASC",
        "ORDER BY ts, s, id DESC",
        "ORDER BY ts, w DESC, id",
        "ORDER BY ts, v NULLS LAST, id",
        "ORDER BY ts, v NULLS FIRST, id",
        "ORDER BY ts, v DESC NULLS FIRST, id",
        "ORDER BY id",
        "ORDER BY id, ts",
        "ORDER BY v",
        "ORDER BY ts, q",
        "ORDER BY ts + INTERVAL '1' SECOND",
        "ORDER BY t.ts",
        "ORDER BY 1",
        "ORDER BY ts, b, d, id",
    ):
        yield match("A B", _AB, "A.id AS x, B.id AS y", order=order)
        if order.count(",") == 1 and "q" not in order:
            yield match("A+ B", _AB, "FIRST(A.id) AS x, B.id AS y", order=order, partition="")
    for rows in ("", "ALL ROWS PER MATCH"):
        yield match("A B", _AB, "A.id AS x", rows=rows)
    yield match("A B", _AB, "A.id AS x", subset="U = (A, B)")
    yield match("A B", _AB, "U.id AS x", subset="U = (A, B)")
    yield match("A B", "", "A.id AS x")
    yield match("A B", "A AS TRUE", "A.id AS x")
    yield match("a B", "a AS a.v > 4", "a.id AS x")
    yield match("A b", "A AS A.v > 4", "b.id AS x")
    yield match("A B", "a AS a.v > 4", "A.id AS x")
    yield "SELECT x FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7)"
    yield "SELECT m.x, m.x + 1 AS y FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7) m"
    yield "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7) AS m (y)"
    yield "SELECT t.x FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7)"
    yield "SELECT * FROM t AS q MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7)"
    yield "SELECT * FROM t AS q MATCH_RECOGNIZE (PARTITION BY q.k ORDER BY q.ts MEASURES A.id AS x PATTERN (A B) DEFINE A AS A.v > 7) m"
    yield "SELECT * FROM (SELECT id, k, v + 1 AS u, ts FROM t WHERE v IS NOT NULL) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.u AS x, B.u AS y PATTERN (A B) DEFINE A AS A.u > 5, B AS B.u < A.u)"
    yield "SELECT * FROM (SELECT k, COUNT(*) AS v, MAX(ts) AS ts FROM t GROUP BY k) MATCH_RECOGNIZE (ORDER BY ts MEASURES A.v AS x PATTERN (A B) DEFINE A AS A.v > 5)"
    yield "SELECT * FROM (SELECT k, COUNT(*) AS v, MAX(id) AS id FROM p GROUP BY k) MATCH_RECOGNIZE (ORDER BY id MEASURES A.v AS x PATTERN (A B) DEFINE A AS A.v > 5)"
    yield "SELECT * FROM (SELECT k, v, PROCTIME() AS pt FROM (SELECT k, COUNT(*) AS v FROM t GROUP BY k)) MATCH_RECOGNIZE (PARTITION BY k ORDER BY pt MEASURES A.v AS x PATTERN (A B) DEFINE A AS A.v > 5)"
    # of results: windows, joins, aggregates
    inner = "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS x, MATCH_ROWTIME() AS mt AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS A.v > 4)"
    yield f"SELECT window_start, window_end, COUNT(*) AS c FROM TABLE(TUMBLE((SELECT * FROM {inner}), DESCRIPTOR(mt), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    yield f"WITH m AS (SELECT * FROM {inner}) SELECT window_start, window_end, COUNT(*) AS c, MAX(x) AS mx FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(mt), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    yield f"SELECT TUMBLE_START(mt, INTERVAL '10' SECOND) AS ws, COUNT(*) AS c, SUM(x) AS sx FROM {inner} GROUP BY TUMBLE(mt, INTERVAL '10' SECOND)"
    yield f"SELECT k, COUNT(*) AS c, MAX(x) AS mx FROM {inner} GROUP BY k"
    yield f"SELECT m.k, m.x, p.v FROM (SELECT * FROM {inner}) m JOIN p ON m.x = p.id"
    yield f"SELECT k, x, SUM(x) OVER (PARTITION BY k ORDER BY mt) AS total FROM {inner}"
    yield f"SELECT k, x FROM {inner} WHERE x > 20 AND k <> 'a'"
    yield f"SELECT * FROM (SELECT * FROM {inner}) MATCH_RECOGNIZE (ORDER BY mt MEASURES A.x AS x, B.x AS y PATTERN (A B) DEFINE B AS B.x > A.x)"
    # processing time, and time with a zone
    yield match("A B", _AB, _IDS, table="p", order="ORDER BY pt", select="k, a, b")
    yield match("A+ B", _AB, _IDS, table="p", order="ORDER BY pt", partition="", select="a, b")
    yield match(
        "A B",
        _AB,
        f"{_IDS}, MATCH_PROCTIME() AS x",
        table="p",
        order="ORDER BY pt",
        select="k, a, b, x IS NOT NULL AS y",
    )
    yield match("A B", _AB, f"{_IDS}, MATCH_ROWTIME() AS x", table="p", order="ORDER BY pt", select="k, a, b")
    yield match("A B", _AB, f"{_IDS}, A.pt IS NOT NULL AS x", table="p", order="ORDER BY pt", select="k, a, b, x")
    yield match("A B", _AB, "MATCH_PROCTIME() AS x", table="p", order="ORDER BY pt")
    yield match("A B", _AB, _IDS, table="p", order="ORDER BY ts")
    yield match("A B", _AB, f"{_IDS}, MATCH_ROWTIME() AS x", table="z", order="ORDER BY tl")
    yield match("A B", _AB, f"{_IDS}, A.tl AS x", table="z", order="ORDER BY tl")
    yield match("A B", _AB, _IDS, table="z", order="ORDER BY ts")
    # an empty table: types only
    for measures in (
        "A.v AS x, B.v AS y, A.id AS z",
        "FIRST(A.v) AS x, LAST(A.v, 1) AS y, SUM(A.v) AS z, COUNT(A.v) AS q, AVG(A.v) AS r, MIN(A.v) AS mi",
        "A.r AS x, A.r.x AS y, LAST(A.r.y) AS z",
        "MATCH_ROWTIME() AS x, A.ts AS y, ts AS z",
        "A.v + B.v AS x, A.v > 1 AS y, 'a' AS z, k AS q",
    ):
        yield match("A+ B", "A AS A.v > 1", measures, table="n")
        yield match("A? B*? C", "A AS A.v > 1", measures, table="n")


def _drawn() -> Iterator[str]:
    """Patterns, conditions and strategies at random."""
    draw = random.Random(11)
    conditions = [
        "{x}.v > 4",
        "{x}.v <= 5",
        "{x}.v > LAST({x}.v, 1) OR LAST({x}.v, 1) IS NULL",
        "{x}.v < LAST({x}.v, 1) OR LAST({x}.v, 1) IS NULL",
        "SUM({x}.v) < 14",
        "COUNT({x}.id) < 3",
        "{x}.w > 3 AND {x}.s IS NOT NULL",
        "{x}.w > {p}.w",
        "{x}.v >= FIRST({p}.v)",
        "{x}.v > AVG({p}.v)",
        "{x}.d > 1.5",
        "{x}.s = 'x' OR {x}.b",
        "MAX({p}.v) > {x}.v",
        "{x}.id - LAST({p}.id) < 6",
    ]
    quantifiers = ["", "", "", "+", "*", "?", "+?", "*?", "{2}", "{1,2}", "{2,}", "{1,3}?", "{2,}?", "{,2}"]
    for _ in range(90):
        names = "ABCD"[: draw.randrange(2, 5)]
        parts = [name + draw.choice(quantifiers) for name in names]
        parts[-1] = names[-1] + draw.choice(["", "", "+?", "{2}", "{1,2}?"])
        define = [
            f"{name} AS {draw.choice(conditions).format(x=name, p=names[max(index - 1, 0)])}"
            for index, name in enumerate(names)
            if draw.random() < 0.85
        ] or ["A AS A.v > 4"]
        last = names[-1]
        after = draw.choice(
            [
                "PAST LAST ROW",
                "TO NEXT ROW",
                "PAST LAST ROW",
                f"TO LAST {last}",
                f"TO FIRST {names[1]}",
                f"TO {names[1]}",
            ]
        )
        within = draw.choice(["", "", "'4' SECOND", "'9' SECOND", "'30' SECOND"])
        measures = ", ".join(
            f"{call.format(x=name)} AS m{index}"
            for index, (name, call) in enumerate(
                (
                    name,
                    draw.choice(
                        [
                            "FIRST({x}.id)",
                            "LAST({x}.id)",
                            "COUNT({x}.id)",
                            "SUM({x}.v)",
                            "{x}.id",
                            "LAST({x}.id, 1)",
                            "MAX({x}.w)",
                        ]
                    ),
                )
                for name in (*names, *names)
            )
        )
        order = draw.choice(["ORDER BY ts", "ORDER BY ts", "ORDER BY ts, id", "ORDER BY ts, v DESC, id"])
        partition = draw.choice(["PARTITION BY k", "PARTITION BY k", "", "PARTITION BY k, b"])
        yield match(
            " ".join(parts),
            ", ".join(define),
            measures,
            after=f"AFTER MATCH SKIP {after}",
            within=within,
            order=order,
            partition=partition,
        )


QUERIES = list(dict.fromkeys([*_patterns(), *_skips(), *_within(), *_measures(), *_defines(), *_clauses(), *_drawn()]))
