"""Records what Flink returns for windows in batch mode; run with PyFlink's Python.

Reads the queries of tests/integration/table/windows/batch.json and writes the file again, with Flink's rows as text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

FILE = Path(__file__).parents[1] / "tests/integration/table/windows/batch.json"


def main() -> None:
    """Runs each query."""
    recorded: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("table.local-time-zone", recorded["zone"])
    environment.execute_sql(recorded["view"])
    for query in recorded["queries"]:
        with environment.execute_sql(query["sql"]).collect() as rows:
            query["rows"] = sorted([str(value) for value in row] for row in rows)
    FILE.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
