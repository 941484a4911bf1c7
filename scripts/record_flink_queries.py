"""Records what Flink makes of the queries of the tests: the type of their rows, or the reason why they are refused.

Run it with a Python that has PyFlink 2.3; it writes tests/unit/table/recorded/queries.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

TABLES = {
    "t": "k INT, i INT, bi BIGINT, s STRING, inn INT NOT NULL",
    "o": "id BIGINT NOT NULL, k INT, price DECIMAL(10, 2)",
}
FOLDER = Path(__file__).parents[1] / "tests" / "unit" / "table"


def main() -> None:
    """Records all queries."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, columns in TABLES.items():
        environment.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'datagen')")
    recorded = {
        query: _outcome(environment, query) for query in (FOLDER / "queries.sql").read_text("utf-8").splitlines()
    }
    target = FOLDER / "recorded" / "queries.json"
    target.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _outcome(environment: TableEnvironment, query: str) -> dict[str, str]:
    try:
        columns = environment.sql_query(query)._j_table.getResolvedSchema().getColumns()
    except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
        reasons = re.findall(r"Exception: (.*)", str(error))
        return {"error": reasons[-1] if reasons else str(error).splitlines()[0]}
    return {"type": ", ".join(map(_column_text, columns))}


def _column_text(column: Any) -> str:
    return f"`{column.getName()}` {column.getDataType().getLogicalType().asSummaryString()}"


if __name__ == "__main__":
    main()
