"""Records what Flink returns for queries in batch mode; run with PyFlink's Python.

Reads the queries of files in tests/integration/table and writes the files again, with Flink's rows as text. Arguments
are the names of files, without which all are recorded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

FOLDER = Path(__file__).parents[1] / "tests/integration/table"
FILES = ("windows/batch.json", "recorded/bounded_operators.json")


def record(file: Path) -> None:
    """Runs each query of a file."""
    recorded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("table.local-time-zone", recorded["zone"])
    for view in recorded["views"]:
        environment.execute_sql(view)
    for query in recorded["queries"]:
        try:
            with environment.execute_sql(query["sql"]).collect() as rows:
                query["rows"] = sorted([str(value) for value in row] for row in rows)
        except Exception as error:  # noqa: BLE001 - Flink fails on some
            query["error"] = str(error).splitlines()[1]
    file.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or FILES:
        record(FOLDER / name)
