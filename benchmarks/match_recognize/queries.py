"""Payments that both systems generate, and patterns over them. Imports nothing: PyFlink's Python reads it too."""

from __future__ import annotations

__all__ = ["CREATE", "QUERIES", "SINKS"]

CREATE = """CREATE TABLE numbers (
  n BIGINT,
  h AS MOD(n * 48271, 2147483647),
  ts AS TO_TIMESTAMP_LTZ(n / 50, 3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000', 'number-of-rows' = '{rows}',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{last}'
)"""
"""10,000 cards; 50 payments a millisecond."""
VIEW = """CREATE VIEW payments AS
SELECT MOD(h, 10000) AS card, MOD(h / 16, 10007) AS amount, MOD(h / 512, 53) AS country, ts FROM numbers"""

QUERIES = {
    # no pattern: what the source and the exchange of rows cost
    "exchange": """SELECT card, MAX(amount) AS a, COUNT(*) AS b, MAX(country) AS c
FROM payments GROUP BY card HAVING COUNT(*) < 0""",
    # conditions on the current row alone
    "fraud": """SELECT card, high AS a, small AS b, abroad AS c FROM payments MATCH_RECOGNIZE (
  PARTITION BY card ORDER BY ts
  MEASURES HIGH.amount AS high, COUNT(SMALL.amount) AS small, ABROAD.amount AS abroad
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (HIGH SMALL*? ABROAD) WITHIN INTERVAL '10' SECOND
  DEFINE HIGH AS amount > 9900, ABROAD AS country = 0)""",
    # conditions that name the row before
    "rising": """SELECT card, lowest AS a, payments AS b, highest AS c FROM payments MATCH_RECOGNIZE (
  PARTITION BY card ORDER BY ts
  MEASURES FIRST(UP.amount) AS lowest, COUNT(UP.amount) AS payments, LAST(UP.amount) AS highest
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (UP{3,} DOWN)
  DEFINE UP AS LAST(UP.amount, 1) IS NULL OR amount > LAST(UP.amount, 1), DOWN AS amount < LAST(UP.amount))""",
    # an aggregate in a condition
    "total": """SELECT card, total AS a, payments AS b, final AS c FROM payments MATCH_RECOGNIZE (
  PARTITION BY card ORDER BY ts
  MEASURES SUM(S.amount) AS total, COUNT(S.amount) AS payments, L.amount AS final
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S+ L)
  DEFINE S AS SUM(S.amount) < 20000)""",
}
SINKS = "CREATE TABLE dropped (card BIGINT, a BIGINT, b BIGINT, c BIGINT) WITH ('connector' = 'blackhole')"
