"""Records what Flink makes of the queries of the tests: the type of their rows and the rows, or why they are refused.

Run it with a Python that has PyFlink 2.3; it writes tests/unit/table/recorded/queries.json. Queries that are recorded
already are left as they are, unless it runs with ``--all``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

NOT_NULL = " NOT NULL"
FOLDER = Path(__file__).parents[1] / "tests" / "unit" / "table"
TABLES = json.loads((FOLDER / "recorded" / "query_tables.json").read_text("utf-8"))


def main() -> None:
    """Records all queries."""
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    for name, table in TABLES.items():
        columns = [column.split(" ", 1) for column in table["columns"]]
        rows = ", ".join(
            "("
            + ", ".join(
                f"CAST({value} AS {type_.removesuffix(NOT_NULL)})"
                for value, (_, type_) in zip(row, columns, strict=True)
            )
            + ")"
            for row in table["rows"]
        )
        names = ", ".join(name for name, _ in columns)
        environment.execute_sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM (VALUES {rows}) AS v ({names})")
    target = FOLDER / "recorded" / "queries.json"
    known = {} if "--all" in sys.argv else json.loads(target.read_text("utf-8"))
    queries = (FOLDER / "queries.sql").read_text("utf-8").splitlines()
    recorded = {query: known.get(query) or _outcome(environment, query) for query in queries}
    lines = (f" {json.dumps(query)}: {json.dumps(found, ensure_ascii=False)}" for query, found in recorded.items())
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _outcome(environment: TableEnvironment, query: str) -> dict[str, Any]:
    try:
        table = environment.sql_query(query)
        columns = table._j_table.getResolvedSchema().getColumns()
    except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
        reasons = re.findall(r"Exception: (.*)", str(error))
        return {"error": reasons[-1] if reasons else str(error).splitlines()[0]}
    outcome: dict[str, Any] = {"type": ", ".join(map(_column_text, columns))}
    try:
        with table.execute().collect() as results:
            outcome["rows"] = [[_value(value) for value in row] for row in results]
    except Exception as error:  # noqa: BLE001 - some correlated queries cannot be run
        print(f"{query}: {str(error).splitlines()[0]}")  # noqa: T201
    return outcome


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _column_text(column: Any) -> str:
    return f"`{column.getName()}` {column.getDataType().getLogicalType().asSummaryString()}"


if __name__ == "__main__":
    main()
