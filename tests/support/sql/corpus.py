"""The queries whose streams must give the rows of Spark SQL: written down, and combined from parts."""

# ruff: noqa: E501 - statements
from __future__ import annotations

from collections.abc import Iterator

__all__ = ["QUERIES"]

_EXPRESSIONS = [
    "k + 1, n * 2, n - k, -n",
    "n / 7, MOD(n, 7), n % 5, k / 2.0",
    "d + 1, d * 2, d / 3, d * d, d - n",
    "f * 2, f / 4, f + n, ABS(f)",
    "CAST(n AS DOUBLE), CAST(d AS INT), CAST(f AS BIGINT), CAST(n AS STRING)",
    "CAST(n AS INT), CAST(k AS SMALLINT), CAST(d AS DECIMAL(6, 1)), CAST(b AS STRING)",
    "TRY_CAST(s AS INT), TRY_CAST(s AS DOUBLE), CAST(ts AS DATE)",
    "UPPER(s), LOWER(s), CHAR_LENGTH(s), s || '-' || s",
    "SUBSTRING(s, 2), SUBSTRING(s, 1, 1), TRIM(s), REPLACE(s, 'b', 'xx')",
    "POSITION('b' IN s), LPAD(s, 4, '*'), RPAD(s, 4, '*'), REPEAT(s, 2)",
    "CONCAT(s, 'x'), CONCAT_WS('-', s, 'y', s), REVERSE(s), INITCAP(s)",
    "s LIKE '%b%', s LIKE 'a_c', s IN ('a', 'B'), s SIMILAR TO 'a.*'",
    "REGEXP_REPLACE(s, '[ab]', 'z'), SPLIT_INDEX(s, 'b', 0), LEFT(s, 2), RIGHT(s, 2)",
    "k = 3, k <> 3, k < n, k >= n, k BETWEEN 2 AND 5",
    "k IS NULL, k IS NOT NULL, b IS TRUE, b IS NOT FALSE, b IS UNKNOWN",
    "b AND k > 3, b OR k > 3, NOT b, (k > 3) = b",
    "CASE WHEN k > 5 THEN 'big' WHEN k > 2 THEN 'mid' ELSE 'small' END, CASE k WHEN 1 THEN n WHEN 2 THEN -n END",
    "COALESCE(n, k, 0), NULLIF(k, 3), IFNULL(s, 'none'), IF(k > 3, s, 'few')",
    "GREATEST(k, 3, n), LEAST(k, 3), SIGN(n), ROUND(d, 1), FLOOR(f), CEIL(f)",
    "POWER(k, 2), SQRT(ABS(n)), MOD(k, 3), TRUNCATE(d, 1)",
    "EXTRACT(SECOND FROM ts), EXTRACT(MINUTE FROM ts), HOUR(ts), DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')",
    "ts + INTERVAL '1' HOUR, ts - INTERVAL '3' SECOND, TIMESTAMPDIFF(SECOND, ts, TIMESTAMP '2023-11-15 00:00:00')",
    "FLOOR(ts TO MINUTE), CEIL(ts TO HOUR), CAST(ts AS TIME), YEAR(ts), DAYOFWEEK(ts)",
    "ARRAY[k, 2][1], CARDINALITY(ARRAY[n, k]), MAP['a', n]['a'], CARDINALITY(MAP['q', n])",
    "ASCII(s), MD5(s), SHA1(s), TO_BASE64(s)",
    "k IN (1, 2, 3), k NOT IN (1, 2), n IN (10, 20) IS NOT TRUE",
]
_CONDITIONS = [
    "k > 3",
    "k > 3 AND n < 20",
    "k > 3 OR s = 'a'",
    "NOT (k > 3)",
    "s IS NULL OR k IS NULL",
    "b",
    "d > 0 AND f < 0",
    "s LIKE 'a%' OR s = ''",
    "ts > TIMESTAMP '2023-11-14 22:13:50'",
    "k IN (SELECT k FROM c)",
    "EXISTS (SELECT 1 FROM p WHERE p.oid = o.id)",
]
_AGGREGATES = [
    "COUNT(*)",
    "COUNT(n), COUNT(s)",
    "SUM(n), SUM(k), SUM(d), SUM(f)",
    "AVG(n), AVG(k), AVG(d), AVG(f)",
    "MIN(n), MAX(n), MIN(s), MAX(s)",
    "MIN(d), MAX(f), MIN(ts), MAX(b)",
    "COUNT(DISTINCT k), COUNT(DISTINCT s), SUM(DISTINCT n)",
    "COUNT(*) FILTER (WHERE n > 0), SUM(n) FILTER (WHERE b), COUNT(DISTINCT k) FILTER (WHERE b)",
    "SUM(n + k), MAX(n * 2) - MIN(n), COUNT(*) + 1",
    "STDDEV_POP(k), VAR_POP(k), VAR_SAMP(k)",
]
_KEYS = ["", "k", "s", "k, s", "b, k", "MOD(n, 3)", "CHAR_LENGTH(s)"]
_WINDOWS = [
    "TUMBLE(TABLE {t}, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
    "TUMBLE(TABLE {t}, DESCRIPTOR(ts), INTERVAL '7' SECOND, INTERVAL '2' SECOND)",
    "HOP(TABLE {t}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND)",
    "CUMULATE(TABLE {t}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)",
]
_WINDOW_CALLS = [
    "COUNT(*)",
    "SUM(n), AVG(k), MIN(s), MAX(d)",
    "COUNT(DISTINCT s), COUNT(n) FILTER (WHERE b)",
]
_JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


def _named(columns: str) -> str:
    """Columns with names, for plans that need them to differ."""
    depth, parts, part = 0, [], ""
    for letter in columns:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    parts.append(part)
    return ", ".join(f"{text.strip()} AS c{index}" for index, text in enumerate(parts))


def _calcs() -> Iterator[str]:
    for columns in _EXPRESSIONS:
        yield f"SELECT id, {_named(columns)} FROM o"
    for condition in _CONDITIONS:
        yield f"SELECT id, s FROM o WHERE {condition}"
        yield f"SELECT COUNT(*) AS c FROM o WHERE {condition}"
    yield "SELECT k, city, points FROM c WHERE points > 5"
    yield "SELECT k + 1 AS k1, UPPER(city) AS up FROM c"


def _aggregations() -> Iterator[str]:
    for calls in _AGGREGATES:
        for key in _KEYS:
            named = _named(calls)
            yield f"SELECT {key + ', ' if key and '(' not in key else ''}{named} FROM o" + (
                f" GROUP BY {key}" if key else ""
            )
    for calls in ("COUNT(*)", "SUM(points), AVG(points)", "MIN(points), MAX(city)", "COUNT(DISTINCT city)"):
        yield f"SELECT {_named(calls)} FROM c"
        yield f"SELECT city, {_named(calls)} FROM c GROUP BY city"
    yield "SELECT DISTINCT k FROM o"
    yield "SELECT DISTINCT s, b FROM o"
    yield "SELECT DISTINCT city FROM c"
    yield "SELECT k, COUNT(*) AS n FROM o GROUP BY k HAVING COUNT(*) > 15"
    yield "SELECT cnt, COUNT(*) AS keys FROM (SELECT k, COUNT(*) AS cnt FROM o GROUP BY k) GROUP BY cnt"
    yield "SELECT MAX(total) AS best FROM (SELECT s, SUM(n) AS total FROM o GROUP BY s)"
    yield "SELECT MIN(total) AS least FROM (SELECT k, SUM(amount) AS total FROM p GROUP BY k) WHERE total > 100"
    for groups in ("GROUPING SETS ((k), (s), ())", "ROLLUP (k, s)", "CUBE (k, b)"):
        columns = "k, b" if "b" in groups.split("(", 1)[1] else "k, s"
        yield f"SELECT {columns}, COUNT(*) AS c, SUM(n) AS t FROM o GROUP BY {groups}"


def _window_queries() -> Iterator[str]:
    for index, window in enumerate(_WINDOWS):
        table = f"TABLE({window.format(t='o')})"
        for calls in _WINDOW_CALLS:
            for key in ("", "k, ", "s, k, "):
                yield (
                    f"SELECT {key}window_start, window_end, {_named(calls)} FROM {table} "
                    f"GROUP BY {key}window_start, window_end"
                )
        yield f"SELECT id, window_start, window_end FROM {table} WHERE k = {index + 1}"
        yield (
            f"SELECT MAX(c) AS most, window_start FROM (SELECT k, COUNT(*) AS c, window_start, window_end FROM {table} "
            "GROUP BY k, window_start, window_end) GROUP BY window_start, window_end"
        )
        other = f"TABLE({window.format(t='p')})"
        for join in (*_JOINS, "SEMI"):
            left = f"(SELECT id, k, window_start, window_end FROM {table}) L"
            right = f"(SELECT oid, k, amount, window_start, window_end FROM {other}) R"
            on = "L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end"
            if join == "SEMI":
                yield f"SELECT id, L.window_start FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {on})"
            elif index in (0, 2):
                yield f"SELECT id, oid, amount, L.window_start AS ls, R.window_start AS rs FROM {left} {join} {right} ON {on}"
        yield (
            f"SELECT k, id, window_start FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k "
            f"ORDER BY n DESC, id) AS rn FROM {table}) WHERE rn <= 2"
        )
    session = "TABLE(SESSION(TABLE o PARTITION BY k, DESCRIPTOR(ts), INTERVAL '3' SECOND))"
    yield f"SELECT k, window_start, window_end, COUNT(*) AS c, SUM(n) AS t FROM {session} GROUP BY k, window_start, window_end"
    for call in ("TUMBLE", "HOP", "SESSION"):
        size = {"TUMBLE": "INTERVAL '10' SECOND", "SESSION": "INTERVAL '3' SECOND"}.get(
            call, "INTERVAL '5' SECOND, INTERVAL '10' SECOND"
        )
        yield (
            f"SELECT k, {call}_START(ts, {size}) AS ws, {call}_END(ts, {size}) AS we, COUNT(*) AS c, MAX(n) AS m "
            f"FROM o GROUP BY k, {call}(ts, {size})"
        )


def _join_queries() -> Iterator[str]:
    for join in _JOINS:
        yield f"SELECT id, o.k, amount FROM o {join} p ON o.id = p.oid"
        yield f"SELECT id, amount, way FROM o {join} p ON o.k = p.k AND n > amount"
        yield f"SELECT id, city FROM o {join} c ON o.k = c.k"
        yield f"SELECT id, city, points FROM o {join} c ON o.k = c.k AND points > 5"
        yield f"SELECT c.k, city, amount FROM c {join} p ON c.k = p.k AND p.oid < 30"
        yield f"SELECT A.k, A.t, B.m FROM (SELECT k, SUM(n) AS t FROM o GROUP BY k) A {join} (SELECT k, MAX(amount) AS m FROM p GROUP BY k) B ON A.k = B.k"
        yield (
            f"SELECT id, oid, o.ts AS ots, p.ts AS pts FROM o {join} p ON o.k = p.k "
            "AND p.ts BETWEEN o.ts - INTERVAL '2' SECOND AND o.ts + INTERVAL '4' SECOND"
        )
    yield "SELECT id, oid FROM o, p WHERE o.id = p.oid AND p.ts >= o.ts AND p.ts < o.ts + INTERVAL '10' SECOND"
    yield "SELECT id, amount, city FROM o JOIN p ON o.id = p.oid JOIN c ON p.k = c.k"
    yield "SELECT id, amount, city FROM o LEFT JOIN p ON o.id = p.oid LEFT JOIN c ON o.k = c.k"
    yield "SELECT x.id, y.id AS other FROM o x JOIN o y ON x.k = y.k AND x.s = y.s AND x.id < y.id"
    yield "SELECT c.k, m FROM c CROSS JOIN (SELECT MAX(amount) AS m FROM p)"
    for condition in (
        "o.k IN (SELECT p.k FROM p WHERE amount > 50)",
        "EXISTS (SELECT 1 FROM p WHERE p.oid = o.id AND p.amount > 20)",
        "NOT EXISTS (SELECT 1 FROM p WHERE p.oid = o.id)",
        "NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.points > 3)",
        "o.k IN (SELECT c.k FROM c WHERE city = 'x')",
        "EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
        "o.k IS NOT NULL AND o.k NOT IN (SELECT c.k FROM c WHERE c.k IS NOT NULL)",
    ):
        yield f"SELECT id, k FROM o WHERE {condition}"
    yield "SELECT id FROM o WHERE n > (SELECT AVG(amount) FROM p)"
    yield "SELECT id, (SELECT MAX(points) FROM c) AS best FROM o WHERE k = 3"
    yield "SELECT id, x FROM o CROSS JOIN UNNEST(ARRAY[k, 10]) AS T (x)"
    yield "SELECT id, x FROM o LEFT JOIN UNNEST(ARRAY[s, 'q']) AS T (x) ON TRUE"


def _ranks() -> Iterator[str]:
    for order in ("n DESC, id", "f, id DESC", "d DESC NULLS LAST, id"):
        for limit in (1, 3):
            numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS rn FROM o"
            yield f"SELECT k, id FROM ({numbered}) WHERE rn <= {limit}"
            yield f"SELECT k, id, rn FROM ({numbered}) WHERE rn <= {limit}"
    yield "SELECT city, k, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY points DESC, k) AS rn FROM c) WHERE rn <= 2"
    yield "SELECT city, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY points, k) AS rn FROM c) WHERE rn <= 1"
    totals = "SELECT k, SUM(amount) AS t FROM p WHERE k IS NOT NULL GROUP BY k"
    yield f"SELECT k, t, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY t DESC, k) AS rn FROM ({totals})) WHERE rn <= 3"
    yield f"SELECT k, t FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY t, k) AS rn FROM ({totals})) WHERE rn BETWEEN 2 AND 4"
    yield "SELECT id, n FROM o ORDER BY n DESC, id LIMIT 5"
    yield "SELECT id, f FROM o ORDER BY f, id LIMIT 4 OFFSET 2"
    yield "SELECT k, points FROM c ORDER BY points DESC, k LIMIT 3"


def _overs() -> Iterator[str]:
    for frame in (
        "",
        " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
        " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        " RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW",
        " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    ):
        if "ROWS" in frame:
            # rows with the same time have no order: only what does not depend on it
            yield f"SELECT k, ts, COUNT(*) OVER (PARTITION BY k, id ORDER BY ts{frame}) AS c FROM o"
            continue
        yield f"SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts{frame}) AS c, SUM(n) OVER (PARTITION BY k ORDER BY ts{frame}) AS t FROM o"
        yield f"SELECT id, MAX(n) OVER (ORDER BY ts{frame}) AS m FROM o"
        yield f"SELECT id, MIN(d) OVER w AS m, AVG(k) OVER w AS a FROM o WINDOW w AS (PARTITION BY s ORDER BY ts{frame})"


def _sets() -> Iterator[str]:
    yield "SELECT k, s FROM o UNION ALL SELECT k, way FROM p"
    yield "SELECT k FROM o UNION SELECT k FROM p"
    yield "SELECT k FROM c UNION SELECT k FROM p"
    for operation in ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"):
        yield f"SELECT k FROM o {operation} SELECT k FROM p"
        yield f"SELECT k FROM p {operation} SELECT k FROM c"
    yield "SELECT k, SUM(x) AS t FROM (SELECT k, n AS x FROM o UNION ALL SELECT k, amount FROM p) GROUP BY k"
    yield "VALUES (1, 'a'), (2, 'b')"
    yield "SELECT COUNT(*) AS c, MAX(x) AS m FROM (VALUES (1), (5), (3)) AS T (x)"
    yield "WITH big AS (SELECT * FROM o WHERE n > 10) SELECT a.id, b.id AS other FROM big a JOIN big b ON a.k = b.k"


def _mixed() -> Iterator[str]:
    yield "SELECT city, COUNT(*) AS c, MAX(n) AS m FROM o JOIN c ON o.k = c.k GROUP BY city"
    yield "SELECT city, SUM(amount) AS t, COUNT(DISTINCT way) AS w FROM p LEFT JOIN c ON p.k = c.k GROUP BY city"
    yield "SELECT way, MIN(n) AS low, MAX(n) AS high FROM p JOIN o ON p.oid = o.id GROUP BY way HAVING COUNT(*) > 3"
    yield "SELECT t, COUNT(*) AS cities FROM (SELECT city, SUM(points) AS t FROM c GROUP BY city) GROUP BY t"
    yield "SELECT MIN(points) AS low, MAX(points) AS high, COUNT(DISTINCT points) AS d FROM c WHERE city = 'x'"
    yield "SELECT k, MAX(c) AS most FROM (SELECT k, s, COUNT(*) AS c FROM o GROUP BY k, s) GROUP BY k"
    yield "SELECT A.k, c, t FROM (SELECT k, COUNT(*) AS c FROM o GROUP BY k) A JOIN (SELECT k, SUM(points) AS t FROM c GROUP BY k) B ON A.k = B.k"
    yield "SELECT id, c FROM o JOIN (SELECT k, COUNT(*) AS c FROM p GROUP BY k) x ON o.k = x.k WHERE c > 8"
    yield "SELECT city, id FROM (SELECT city, id, ROW_NUMBER() OVER (PARTITION BY city ORDER BY n DESC, id) AS rn FROM o JOIN c ON o.k = c.k) WHERE rn <= 2"
    yield "SELECT city, COUNT(*) AS c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC, id) AS rn FROM o) x JOIN c ON x.k = c.k WHERE rn <= 2 GROUP BY city"
    yield "SELECT DISTINCT city, way FROM c JOIN p ON c.k = p.k"
    yield "SELECT k, SUM(n) AS t FROM o WHERE k IN (SELECT k FROM c WHERE points > 5) GROUP BY k"
    yield "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end HAVING COUNT(*) > 20"
    yield "SELECT city, c FROM (SELECT k, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY k, window_start, window_end) x JOIN c ON x.k = c.k"


def _matches() -> Iterator[str]:
    for pattern, define, measures, after, within in (
        (
            "A B+ C",
            "A AS n > 0, B AS n <= 20, C AS n > 0",
            "A.id AS a, LAST(B.id) AS b, C.id AS c",
            "PAST LAST ROW",
            "",
        ),
        (
            "A+ B",
            "A AS LAST(A.f, 1) IS NULL OR A.f < LAST(A.f, 1), B AS B.f > LAST(A.f)",
            "COUNT(A.id) AS a, B.id AS b",
            "PAST LAST ROW",
            "",
        ),
        (
            "A B*? C",
            "A AS n > 10, C AS n > A.n",
            "A.id AS a, COUNT(B.id) AS b, C.id AS c",
            "TO NEXT ROW",
            "'12' SECOND",
        ),
        (
            "A{2,} B",
            "A AS SUM(A.k) < 20, B AS B.k > AVG(A.k)",
            "SUM(A.d) AS a, MAX(A.s) AS m, B.id AS b",
            "TO LAST A",
            "",
        ),
    ):
        for key in ("PARTITION BY k ", ""):
            yield (
                f"SELECT * FROM o MATCH_RECOGNIZE ({key}ORDER BY ts, id MEASURES {measures} AFTER MATCH SKIP {after} "
                f"PATTERN ({pattern}) {within and f'WITHIN INTERVAL {within} '}DEFINE {define})"
            )


def _subqueries() -> Iterator[str]:
    for condition in (
        "k IN (SELECT k FROM c WHERE points > 5) OR n > 30",
        "EXISTS (SELECT 1 FROM p WHERE p.oid = o.id) OR k = 3",
        "k NOT IN (SELECT k FROM c) OR n > 30",
        "k NOT IN (SELECT k FROM p) OR n > 30",
        "k NOT IN (SELECT k FROM p)",
        "NOT (k IN (SELECT k FROM c) AND n > 0)",
        "(k IN (SELECT k FROM c)) IS NOT TRUE",
        "(k IN (SELECT k FROM p)) IS NULL",
        "(k, id) IN (SELECT k, oid FROM p) OR n > 40",
        "k IN (SELECT k FROM p WHERE amount IN (SELECT points FROM c))",
        "k IN (SELECT c.k FROM c WHERE c.points > o.n)",
        "k NOT IN (SELECT p.k FROM p WHERE p.oid = o.id)",
        "k IN (SELECT k FROM p UNION SELECT k FROM c)",
        "k IN (WITH a AS (SELECT k FROM c WHERE points > 4) SELECT k FROM a)",
        "5 IN (SELECT points FROM c)",
        "EXISTS (SELECT COUNT(*) FROM p WHERE p.oid = o.id)",
        "EXISTS (SELECT k FROM p WHERE p.k = o.k GROUP BY k HAVING COUNT(*) > 9)",
        "EXISTS (SELECT 1 FROM p WHERE p.k = o.k AND EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.k = p.k))",
        "n > (SELECT points FROM c WHERE k = 3)",
        "n > (SELECT AVG(amount) FROM p WHERE p.k = o.k) OR k = 1",
        "n = (SELECT MAX(x.n) FROM o x WHERE x.k = o.k)",
        "(SELECT COUNT(*) FROM p WHERE p.oid = o.id) > 0",
        "n BETWEEN (SELECT MIN(points) FROM c) AND (SELECT MAX(points) FROM c)",
        "n > ALL (SELECT points FROM c WHERE points IS NOT NULL)",
        "n > ALL (SELECT amount FROM p)",
        "n > SOME (SELECT points FROM c)",
        "n <= ANY (SELECT amount FROM p WHERE p.k = o.k)",
        "n = ANY (SELECT points FROM c)",
        "n <> ALL (SELECT points FROM c WHERE points IS NOT NULL)",
    ):
        yield f"SELECT id FROM o WHERE {condition}"
    for value in (
        "CASE WHEN k IN (SELECT k FROM c WHERE city = 'x') THEN 'x' ELSE 'no' END",
        "k IN (SELECT k FROM c)",
        "k IN (SELECT k FROM p)",
        "k NOT IN (SELECT k FROM p)",
        "EXISTS (SELECT 1 FROM p WHERE p.oid = o.id)",
        "NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.points > 5)",
        "EXISTS (SELECT 1 FROM p WHERE amount > 1000)",
        "EXISTS (SELECT 1 FROM p WHERE p.amount < o.n AND p.k = o.k)",
        "(SELECT points FROM c WHERE k = 999)",
        "(SELECT city FROM c WHERE c.k = o.k)",
        "(SELECT COUNT(*) + 1 FROM p WHERE p.oid = o.id)",
        "(SELECT COUNT(*) FROM p WHERE p.amount > o.n)",
        "(SELECT MAX(amount) FROM p WHERE p.k = o.k AND p.amount < o.n)",
    ):
        yield f"SELECT id, {value} AS v FROM o"
    yield "SELECT id, amount FROM o JOIN p ON o.id = p.oid AND n > (SELECT AVG(points) FROM c)"
    yield "SELECT id, amount FROM o LEFT JOIN p ON o.id = p.oid AND amount > (SELECT AVG(points) FROM c)"
    yield "SELECT k, COUNT(*) AS n FROM o GROUP BY k HAVING COUNT(*) > (SELECT AVG(points) FROM c)"
    yield "SELECT k, SUM(CASE WHEN k IN (SELECT k FROM c WHERE points > 3) THEN n ELSE 0 END) AS t FROM o GROUP BY k"
    yield "SELECT COUNT(*) AS n FROM o GROUP BY k IN (SELECT k FROM c)"
    yield "SELECT (SELECT COUNT(*) FROM o) AS a, (SELECT MAX(points) FROM c) AS b"
    for join in ("CROSS JOIN", "LEFT JOIN"):
        on = "" if "CROSS" in join else " ON TRUE"
        yield f"SELECT c.k, t.amount FROM c {join} LATERAL (SELECT amount FROM p WHERE p.k = c.k) t{on}"
        yield f"SELECT c.k, t.v FROM c {join} LATERAL (SELECT c.points + p.amount AS v FROM p WHERE p.k = c.k) t{on}"
        yield f"SELECT c.k, way, m FROM c {join} LATERAL (SELECT way, SUM(amount) AS m FROM p WHERE p.k = c.k GROUP BY way) t{on}"


def _grouping_functions() -> Iterator[str]:
    yield "SELECT k, s, GROUPING(k) AS a, GROUPING(s) AS b, COUNT(*) AS n FROM o GROUP BY GROUPING SETS ((k), (s), ())"
    yield "SELECT k, b, GROUPING(k, b) AS g, COUNT(*) AS n FROM o GROUP BY CUBE (k, b)"
    yield "SELECT k, s, GROUPING_ID(s, k) AS g, SUM(n) AS n FROM o GROUP BY ROLLUP (k, s)"
    yield "SELECT k, GROUP_ID() AS g, COUNT(*) AS n FROM o GROUP BY GROUPING SETS ((k), (k), ())"
    yield "SELECT k, COUNT(*) AS n, GROUP_ID() AS g FROM o GROUP BY CUBE (k, k)"
    yield "SELECT k, GROUPING_ID(k) AS g, GROUP_ID() AS h, COUNT(*) AS n FROM o GROUP BY k"
    yield "SELECT k, b, COUNT(*) AS n FROM o GROUP BY GROUPING SETS ((k, b), (k)), b"
    yield "SELECT city, COUNT(*) AS n FROM c GROUP BY CUBE (city) HAVING GROUPING(city) = 1"
    yield (
        "SELECT window_start, k, GROUPING(k) AS g, COUNT(*) AS n, SUM(n) AS t FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), "
        "INTERVAL '20' SECOND)) GROUP BY window_start, window_end, ROLLUP (k)"
    )


def _sorted_overs() -> Iterator[str]:
    for call in (
        "SUM(n) OVER (PARTITION BY k ORDER BY id)",
        "SUM(n) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "COUNT(*) OVER (PARTITION BY s ORDER BY n)",
        "MAX(d) OVER (ORDER BY id)",
        "RANK() OVER (PARTITION BY k ORDER BY n)",
        "DENSE_RANK() OVER (PARTITION BY k ORDER BY n)",
        "ROW_NUMBER() OVER (PARTITION BY k ORDER BY id)",
        "LAG(n) OVER (PARTITION BY k ORDER BY id)",
        "FIRST_VALUE(n) OVER (PARTITION BY k ORDER BY id)",
        "LAST_VALUE(n) OVER (PARTITION BY k ORDER BY id)",
    ):
        yield f"SELECT id, {call} AS v FROM o"
    yield "SELECT k, SUM(points) OVER (PARTITION BY city ORDER BY k) AS t FROM c"
    yield "SELECT k, COUNT(*) OVER (PARTITION BY city ORDER BY points) AS t FROM c"
    yield "SELECT k, cnt, SUM(cnt) OVER (ORDER BY k) AS t FROM (SELECT k, COUNT(*) AS cnt FROM o GROUP BY k)"
    yield "SELECT id FROM o WHERE n > 3 QUALIFY SUM(n) OVER (PARTITION BY k ORDER BY id) > 20"


QUERIES = list(
    dict.fromkeys(
        [
            *_calcs(),
            *_aggregations(),
            *_window_queries(),
            *_join_queries(),
            *_ranks(),
            *_overs(),
            *_sets(),
            *_mixed(),
            *_matches(),
            *_subqueries(),
            *_grouping_functions(),
            *_sorted_overs(),
        ]
    )
)
