"""Records changelogs of aggregates from Flink: ``python scripts/record_flink_changelogs.py``.

Runs with the Python of an installation of PyFlink 2.3. Reads recorded/changelog_inputs.json of
tests/integration/table: the changes of a table ``t``, whose insertions alone are the table ``i``, and queries. Writes
recorded/changelogs.json: a query and its changes in order, without mini-batches and at parallelism 1. What is recorded
already is left as it is, unless the script runs with ``--all``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from record_flink_expressions import message, plain  # type: ignore[import-not-found]

HERE = Path(__file__).parents[1] / "tests" / "integration" / "table" / "recorded"


def run(environment: TableEnvironment, query: str) -> list | str:
    """The changes of a query, or a message."""
    try:
        rows = environment.execute_sql(query)._j_table_result.collect()
        found = []
        while rows.hasNext():
            row = rows.next()
            values = [plain(row.getField(index)) for index in range(row.getArity())]
            found.append([row.getKind().shortString(), *values])
        rows.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        return message(error)
    return found


def main() -> None:
    """Records all queries."""
    inputs = json.loads((HERE / "changelog_inputs.json").read_text())
    names = [name for name, _ in inputs["columns"]]
    listed = ", ".join(f"`{name}` {type_}" for name, type_ in inputs["columns"])
    changes = []
    for operation, *rows in inputs["changes"]:
        records = [dict(zip(names, row, strict=True)) for row in rows]
        before = records[0] if operation != "c" else None
        after = records[-1] if operation != "d" else None
        changes.append({"op": operation, "before": before, "after": after})
    inserted = [change["after"] for change in changes if change["op"] == "c"]
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", "UTC")
    with tempfile.TemporaryDirectory() as directory:
        for name, rows, format_ in (("t", changes, "debezium-json"), ("i", inserted, "json")):
            Path(directory, name).mkdir()
            Path(directory, name, "part.json").write_text("\n".join(map(json.dumps, rows)))
            environment.execute_sql(
                f"CREATE TEMPORARY TABLE {name} ({listed}) WITH ('connector' = 'filesystem', "
                f"'path' = 'file://{directory}/{name}', 'format' = '{format_}', "
                f"'{format_}.timestamp-format.standard' = 'SQL')"
            )
        target = HERE / "changelogs.json"
        known = {} if "--all" in sys.argv else dict(json.loads(target.read_text()))
        results = [[query, known.get(query) or run(environment, query)] for query in inputs["queries"]]
    lines = ",\n".join(json.dumps(result) for result in results)
    target.write_text(f"[{lines}]\n")


if __name__ == "__main__":
    main()
