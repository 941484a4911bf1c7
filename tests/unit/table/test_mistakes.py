"""Mistakes of users are refused before anything runs, with the place and what may be meant."""

from __future__ import annotations

from pathlib import Path

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError

TABLES = [
    """CREATE TABLE orders (
        id BIGINT, customer STRING, price DECIMAL(10, 2), amount INT, order_time TIMESTAMP(3),
        address ROW<city STRING, zip INT>, tags ARRAY<STRING>,
        WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND) WITH ('connector' = 'datagen')""",
    "CREATE TABLE customers (id BIGINT, name STRING, since DATE) WITH ('connector' = 'datagen')",
    "CREATE TABLE plain (id BIGINT, ts TIMESTAMP(3), v INT) WITH ('connector' = 'datagen')",
    """CREATE TABLE append_sink (customer STRING, n BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json')""",
    "CREATE VIEW totals AS SELECT customer, SUM(price) AS total FROM orders GROUP BY customer",
]


def _refusal(environment: TableEnvironment, statement: str) -> str:
    """The first line of the error, its place and its hint."""
    run = environment.execute_sql if statement.startswith(("CREATE", "EXPLAIN")) else environment.explain_sql
    try:
        run(statement)
    except ValidationError as error:
        reason = error.reason.split("\n")[0]
        return f"=> {reason} ({error.position})" + (f"\n   {error.hint}" if error.hint else "")
    return "=> accepted"


def test_mistakes() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for table in TABLES:
        environment.execute_sql(table)
    text = (Path(__file__).parent / "mistakes.txt").read_text("utf-8")
    statements = [part.partition("\n=> ")[0].strip("\n") for part in text.split("----\n")[1:]]
    assert len(statements) > 45
    found = [f"----\n{statement}\n{_refusal(environment, statement)}\n" for statement in statements]
    assert "".join(found) == text
