"""EXPLAIN: trees of plans with exchanges, and Spark SQL over several lines."""

from __future__ import annotations

import json

import pytest

from firesteel.table import EnvironmentSettings, ExplainDetail, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.statements.plan_tree import PlanTree
from firesteel.table.plan.traits import infer_traits
from firesteel.table.rules.optimizer import optimize
from firesteel.table.spark_sql.layout import laid_out
from firesteel.table.spark_sql.queries import SparkQueryPrinter, UnsupportedInSparkError
from tests.support.sql.corpus import QUERIES
from tests.support.sql.running import bound

TUMBLE = "TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' DAY))"


def tree(sql: str, **shown: bool) -> str:
    return PlanTree([optimize(bound(sql))], **shown).print().replace("default_catalog.default_database.", "")  # type: ignore[arg-type]


def test_exchanges_are_between_nodes() -> None:
    assert tree("SELECT city, COUNT(*) AS n FROM c JOIN p ON c.k = p.k GROUP BY city") == (
        "Calc(select=[city, EXPR$0 AS n])\n"
        "+- Aggregate(groupBy=[city], EXPR$0=[COUNT(*)])\n"
        "   +- Exchange(distribution=[hash[city]])\n"
        "      +- Calc(select=[city])\n"
        "         +- StreamingJoin(joinType=[INNER], where=[k = k])\n"
        "            :- Exchange(distribution=[hash[k]])\n"
        "            :  +- TableScan(table=[c])\n"
        "            +- Exchange(distribution=[hash[k]])\n"
        "               +- WatermarkAssigner(rowtime=[ts], watermark=[MINUS(ts, 2000)])\n"
        "                  +- TableScan(table=[p])\n"
    )


@pytest.mark.parametrize(
    ("sql", "exchange"),
    [
        ("SELECT COUNT(*) AS n FROM o", "single"),
        ("SELECT k, b, COUNT(*) AS n FROM o GROUP BY CUBE (k, b)", "hash[k, b, $e]"),
        ("SELECT id, SUM(n) OVER (PARTITION BY k ORDER BY ts) AS t FROM o", "hash[k]"),
        ("SELECT id FROM o QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY n) < 3", "hash[s]"),
        ("SELECT id, n FROM o ORDER BY n LIMIT 3", "single"),
        ("SELECT id FROM o ORDER BY ts", "single"),
        (f"SELECT k FROM {TUMBLE} GROUP BY k, window_start, window_end", "hash[k]"),
    ],
)
def test_exchange_of_a_node(sql: str, exchange: str) -> None:
    assert f"Exchange(distribution=[{exchange}])" in tree(sql)


def test_rows_that_stay_where_they_are_have_no_exchange() -> None:
    assert "Exchange" not in tree("SELECT id + 1 AS j FROM o WHERE k = 1 UNION ALL SELECT oid FROM p")


def test_a_relation_that_is_read_twice_is_shown_once() -> None:
    text = tree(
        "WITH a AS (SELECT k, COUNT(*) AS n FROM o GROUP BY k) SELECT x.k FROM a x JOIN a y ON x.n = y.k",
        with_reuse=True,
    )
    assert text.count("(reuse_id=[1])") == 1
    assert text.count("Reused(reference_id=[1])") == 1
    assert text.count("TableScan") == 1


def test_the_plan_of_a_subquery_is_indented() -> None:
    query = bound("SELECT id FROM o WHERE k IN (SELECT k FROM c WHERE points > 5)")
    text = PlanTree([query], with_exchanges=False).print().replace("default_catalog.default_database.", "")
    assert text == (
        "Project(id=[id])\n"
        "+- Filter(condition=[IN(k, {Project(k=[k])\n"
        "   :      Filter(condition=[GREATER_THAN(points, CAST(5 AS BIGINT NOT NULL))])\n"
        "   :        TableScan(table=[c])})])\n"
        "   +- WatermarkAssigner(rowtime=[ts], watermark=[MINUS(ts, 2000)])\n"
        "      +- TableScan(table=[o])\n"
    )


def test_changelog_modes_and_row_counts() -> None:
    root = optimize(bound("SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t (x)"))
    text = PlanTree([root], infer_traits([root]), with_cost=True).print()
    assert "changelogMode=[I,UB,UA]): rowcount = 1" in text
    assert text.splitlines()[-1].endswith("changelogMode=[I]): rowcount = 2")


def test_aggregates_have_a_local_phase() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    environment.execute_sql(
        "CREATE TABLE t (k INT, v BIGINT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen')"
    )

    def operators(query: str) -> list[str]:
        text = environment.explain_sql(query, ExplainDetail.JSON_EXECUTION_PLAN)
        execution, json_plan = text.split("== Optimized Execution Plan ==\n")[1].split("== Physical Execution Plan ==")
        described = [node["contents"] for node in json.loads(json_plan)["nodes"]]
        lines = [line.strip(" +-") for line in execution.splitlines()]
        aggregates = [line for line in lines if "Aggregate(" in line]
        assert all(any(line in text for text in described) for line in aggregates), described
        return [
            line.split("(")[0] for line in lines if line and not line.startswith(("Calc", "Watermark", "TableScan"))
        ]

    group = "SELECT k, COUNT(*) AS n, AVG(v) AS a FROM t GROUP BY"
    window = (
        "SELECT k, MAX(v) AS m FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)) "
        "GROUP BY k, window_start, window_end"
    )
    assert operators(f"{group} k") == ["GlobalGroupAggregate", "Exchange", "LocalGroupAggregate"]
    sets = operators(f"{group} CUBE (k, s)")
    assert sets == ["GlobalGroupAggregate", "Exchange", "LocalGroupAggregate", "Expand"]
    assert operators(window) == ["GlobalWindowAggregate", "Exchange", "LocalWindowAggregate"]
    environment.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    assert operators(f"{group} ROLLUP (k)") == ["GroupAggregate", "Exchange", "Expand"]
    assert operators(window) == ["WindowAggregate", "Exchange"]


def test_layout_of_spark_sql_changes_spaces_only() -> None:
    printed = 0
    for sql in QUERIES[::8]:
        try:
            text = SparkQueryPrinter(lambda scan: scan.identifier.object_name).print(bound(sql))
        except UnsupportedInSparkError:
            continue
        printed += 1
        lines = laid_out(text)
        assert "".join(lines.split()) == "".join(text.split())
        assert "\n" in lines or " FROM " not in text
    assert printed > 20


def test_on_conflict() -> None:
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env.execute_sql("CREATE TABLE s (k INT, n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')")
    table_env.execute_sql("CREATE TABLE a (k INT, n BIGINT) WITH ('connector' = 'blackhole')")
    table_env.execute_sql("CREATE TABLE f (k INT, n BIGINT) WITH ('connector' = 'print')")
    query = "INSERT INTO a SELECT k, COUNT(*) FROM s GROUP BY k ON CONFLICT DO"
    assert "conflictStrategy=[DEDUPLICATE]" in table_env.explain_sql(f"{query} DEDUPLICATE")
    with pytest.raises(ValidationError, match="ON CONFLICT DO NOTHING requires all source tables to define watermarks"):
        table_env.explain_sql(f"{query} NOTHING")
    with pytest.raises(ValidationError, match="ON CONFLICT clause is only allowed for upsert sinks"):
        table_env.explain_sql("INSERT INTO f SELECT k, n FROM s ON CONFLICT DO DEDUPLICATE")
