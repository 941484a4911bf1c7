"""The tables of the benchmark, as each system declares them, and the queries that it runs.

This module has no imports of Firesteel: Flink's program loads it too.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LEFT_OUT", "TABLES", "create_statement", "options_of", "view_statement"]

TABLES = {
    "person": """id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
        `dateTime` TIMESTAMP(3), extra STRING""",
    "auction": """id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
        `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING""",
    "bid": """auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3),
        extra STRING""",
}
"""The columns of each table; an event is a row of one of them."""

LEFT_OUT = {
    "q11": "Flink has no sessions in batch mode",
    "q12": "depends on the clock",
    "q13": "needs a table to look up",
}
"""Queries of NEXMark that bounded queries do not have."""


def options_of(directory: str, table: str) -> dict[str, str]:
    """The options of a table of Parquet files in Flink SQL."""
    return {"connector": "filesystem", "path": f"file://{directory}/{table}", "format": "parquet"}


def create_statement(table: str, options: Mapping[str, str]) -> str:
    """Creates a table in Flink SQL."""
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TEMPORARY TABLE {table} ({TABLES[table]}) WITH ({settings})"


def view_statement(directory: str, table: str) -> str:
    """Creates a view of the same files in Spark SQL."""
    return f"CREATE OR REPLACE TEMPORARY VIEW {table} USING parquet OPTIONS (path 'file://{directory}/{table}')"
