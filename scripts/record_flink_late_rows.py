"""Records from Flink which rows are late, and the early and late results of group windows.

Runs with the Python of an installation of PyFlink 2.3. Reads recorded/late_rows_inputs.json of
tests/integration/table/windows: rows, watermarks, and programs with options and a query. Writes
recorded/late_rows.json: the changes of each program at parallelism 1 in order, or why it is refused.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from record_flink_expressions import message, plain  # type: ignore[import-not-found]

HERE = Path(__file__).parents[1] / "tests" / "integration" / "table" / "windows" / "recorded"


def run(inputs: dict[str, Any], program: dict[str, Any], directory: str) -> Any:
    """The changes of a program, or a message."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": "1", **program["options"]}.items():
        environment.get_config().set(key, value)
    path = Path(directory, "rows.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["" if value is None else value for value in row] for row in inputs["rows"]])
    try:
        environment.execute_sql(
            f"CREATE TABLE s ({inputs['columns']}, WATERMARK FOR ts AS {program['watermark']}) WITH ("
            f"'connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv', 'csv.null-literal' = '')"
        )
        changes = environment.execute_sql(program["query"])._j_table_result.collect()
        found: list[Any] = []
        while changes.hasNext():
            row = changes.next()
            values = [plain(row.getField(index)) for index in range(row.getArity())]
            found.append([row.getKind().shortString(), *values])
        changes.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        return message(error)
    return found


def main() -> None:
    """Records all programs."""
    inputs = json.loads((HERE / "late_rows_inputs.json").read_text("utf-8"))
    recorded = []
    with tempfile.TemporaryDirectory() as directory:
        for program in inputs["programs"]:
            recorded.append({"program": program, "changes": run(inputs, program, directory)})
            lines = ",\n".join(json.dumps(found, ensure_ascii=False) for found in recorded)
            (HERE / "late_rows.json").write_text(f"[{lines}]\n", "utf-8")


if __name__ == "__main__":
    main()
