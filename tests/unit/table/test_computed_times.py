"""A value that is computed from a time attribute is none: which queries Flink 2.3 refuses, and how others run."""

from __future__ import annotations

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError

EARLIER = "(SELECT customer, ts - INTERVAL '1' HOUR AS later FROM payments)"


@pytest.fixture(scope="module")
def table_env() -> TableEnvironment:
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env.execute_sql(
        "CREATE TABLE payments (customer STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, "
        "proc AS PROCTIME()) WITH ('connector' = 'datagen')"
    )
    table_env.execute_sql(
        "CREATE VIEW totals AS SELECT customer, COUNT(ts) AS n, MAX(ts) AS latest, SUM(amount) AS amount "
        "FROM payments GROUP BY customer"
    )
    return table_env


def windows_over(query: str) -> str:
    return (
        f"SELECT window_start, COUNT(*) FROM TUMBLE(({query}), DESCRIPTOR(later), INTERVAL '1' MINUTE) "
        "GROUP BY window_start, window_end"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "ts + INTERVAL '1' HOUR",
        "INTERVAL '1' HOUR + ts",
        "TIMESTAMPADD(HOUR, 1, ts)",
        "COALESCE(ts, ts)",
        "IFNULL(ts, ts)",
        "NULLIF(ts, ts)",
        "IF(amount > 1, ts, ts)",
        "GREATEST(ts, ts)",
        "FLOOR(ts TO MINUTE)",
        "ARRAY[ts][1]",
        "MAP['a', ts]['a']",
        "MAX(ts) OVER (PARTITION BY customer ORDER BY ts)",
        "LAG(ts) OVER (PARTITION BY customer ORDER BY ts)",
    ],
)
def test_windows_refuse_computed_times(table_env: TableEnvironment, expression: str) -> None:
    query = f"SELECT {expression} AS later FROM payments"
    # the type that is shown keeps the attribute, as in Flink
    assert "*ROWTIME*" in str(table_env.sql_query(query).get_schema().get_field_data_type(0))
    with pytest.raises(ValidationError, match=r"requires the timecol is a time attribute type, but is TIMESTAMP\(3\)"):
        table_env.explain_sql(windows_over(query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX(ts) AS later FROM payments GROUP BY customer",
        (
            "SELECT MIN(ts) AS later FROM TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
            "GROUP BY window_start, window_end"
        ),
        f"SELECT later FROM {EARLIER} WHERE customer <> 'a'",
        f"SELECT later FROM {EARLIER} UNION ALL SELECT ts FROM payments",
    ],
)
def test_windows_refuse_times_of_subqueries(table_env: TableEnvironment, query: str) -> None:
    with pytest.raises(ValidationError, match="requires the timecol is a time attribute type"):
        table_env.explain_sql(windows_over(query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ts AS later FROM payments WHERE amount > 1",
        "SELECT ts AS later FROM payments UNION ALL SELECT ts FROM payments",
        "SELECT proc AS later FROM payments",
    ],
)
def test_windows_take_columns_as_they_are(table_env: TableEnvironment, query: str) -> None:
    assert "WindowAggregate" in table_env.explain_sql(windows_over(query))


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        (
            (
                f"SELECT a.customer FROM {EARLIER} AS a JOIN payments AS b ON a.customer = b.customer "
                "AND a.later BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts"
            ),
            "StreamingJoin",
        ),
        (
            (
                "SELECT customer FROM (SELECT customer, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY later) AS n "
                f"FROM {EARLIER}) WHERE n = 1"
            ),
            "Rank(rankType=[ROW_NUMBER]",
        ),
        # Flink's older functions take it, for days of another zone
        (f"SELECT COUNT(*) FROM {EARLIER} GROUP BY TUMBLE(later, INTERVAL '1' DAY)", "WindowAggregate"),
        (
            (
                f"SELECT COUNT(*) FROM (SELECT later AS x FROM {EARLIER} WHERE customer <> 'a') "
                "GROUP BY TUMBLE(x, INTERVAL '1' DAY)"
            ),
            "WindowAggregate",
        ),
        (
            (
                "SELECT p.customer, v.amount FROM payments AS p JOIN totals FOR SYSTEM_TIME AS OF p.ts AS v "
                "ON p.customer = v.customer"
            ),
            "TemporalJoin",
        ),
        ("SELECT COUNT(*) FROM payments GROUP BY TUMBLE(ts + INTERVAL '8' HOUR, INTERVAL '1' DAY)", "WindowAggregate"),
    ],
)
def test_operators_over_computed_times(table_env: TableEnvironment, query: str, operator: str) -> None:
    assert operator in table_env.explain_sql(query)


def test_sorting_refuses_computed_times(table_env: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match="Sort on a non-time-attribute field is not supported"):
        table_env.explain_sql(f"SELECT later FROM {EARLIER} ORDER BY later")
