"""Records the rows of programs of several statements from Flink: ``python scripts/record_flink_programs.py``.

Runs with the Python of an installation of PyFlink 2.3. Reads recorded/program_inputs.json of tests/integration/table:
tables with their rows, and programs: statements that come before, the time zone of the session, and a query. Writes
recorded/programs.json: what is left of the changelog of each query at parallelism 1. Programs that are recorded
already are not run again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from record_flink_expressions import message, plain  # type: ignore[import-not-found]

HERE = Path(__file__).parents[1] / "tests" / "integration" / "table" / "recorded"


def run(inputs: dict[str, Any], program: dict[str, Any], directory: str) -> Any:
    """The rows of a program, or a message."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "1").set_local_timezone(program["zone"])
    try:
        for table in inputs["tables"]:
            path, format_ = Path(directory, f"{table['name']}.json"), table["format"]
            path.write_text("\n".join(map(json.dumps, table["rows"])))
            environment.execute_sql(
                f"CREATE TABLE {table['name']} ({table['columns']}) WITH ('connector' = 'filesystem', "
                f"'path' = 'file://{path}', 'format' = '{format_}')"
            )
        for statement in program["setup"]:
            environment.execute_sql(statement)
        changes = environment.execute_sql(program["query"])._j_table_result.collect()
        found: list[Any] = []
        while changes.hasNext():
            row = changes.next()
            values = [plain(row.getField(index)) for index in range(row.getArity())]
            if row.getKind().shortString() in ("+I", "+U"):
                found.append(values)
            else:
                found.remove(values)
        changes.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        return message(error)
    return sorted(found, key=json.dumps)


def main() -> None:
    """Records all programs."""
    inputs = json.loads((HERE / "program_inputs.json").read_text("utf-8"))
    path = HERE / "programs.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else []
    recorded = []
    with tempfile.TemporaryDirectory() as directory:
        for program in inputs["programs"]:
            same = [found for found in known if found["program"] == program]
            recorded.append(same[0] if same else {"program": program, "rows": run(inputs, program, directory)})
            lines = ",\n".join(json.dumps(found, ensure_ascii=False) for found in recorded)
            path.write_text(f"[{lines}]\n", "utf-8")


if __name__ == "__main__":
    main()
