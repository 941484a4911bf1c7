"""Records the rows of the programs of tests/support/sql/shop.py from Flink: ``python scripts/record_flink_shop.py``.

Runs with the Python of an installation of PyFlink 2.3. Writes recorded/shop.json of tests/integration/table: the rows
that are left of each query, or of each table that is written. Given names of programs, it records only these.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "support" / "sql")]

from record_flink_expressions import message, plain  # type: ignore[import-not-found]  # noqa: E402
from shop import PROGRAMS, TABLES, statements, write_files  # type: ignore[import-not-found]  # noqa: E402

RECORDED = ROOT / "tests" / "integration" / "table" / "recorded" / "shop.json"

UPSERTS = {"the last order of each customer"}
"""Programs for which Flink emits no rows before updates; the first column is the key."""


def run(name: str, script: str, path: str, out: str) -> Any:
    """The rows of a program, or a message."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "1").set_local_timezone("UTC")
    try:
        for statement in statements(TABLES.replace("{path}", path)):
            environment.execute_sql(statement)
        *first, last = statements(script.replace("{out}", out))
        for statement in first:
            environment.execute_sql(statement)
        if last.startswith("EXECUTE"):
            environment.execute_sql(last).wait()
            tables = sorted(Path(out).iterdir())
            lines = {
                table.name: [x for file in table.iterdir() for x in file.read_text().splitlines()] for table in tables
            }
            return {name: sorted(found, key=json.dumps) for name, found in lines.items()}
        changes = environment.execute_sql(last)._j_table_result.collect()
        left: list[Any] = []
        while changes.hasNext():
            row = changes.next()
            values = [plain(row.getField(index)) for index in range(row.getArity())]
            if name in UPSERTS:
                left = [known for known in left if known[0] != values[0]]
            if row.getKind().shortString() in ("+I", "+U"):
                left.append(values)
            elif name not in UPSERTS:
                left.remove(values)
        changes.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        return message(error)
    return sorted(left, key=json.dumps)


def main(names: list[str]) -> None:
    """Records programs."""
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory))
        for name, script in PROGRAMS.items():
            if names and name not in names:
                continue
            with tempfile.TemporaryDirectory() as out:
                recorded[name] = run(name, script, f"file://{directory}", out)
            sys.stderr.write(f"{name}: {recorded[name] if isinstance(recorded[name], str) else len(recorded[name])}\n")
            known = {each: recorded[each] for each in PROGRAMS if each in recorded}
            lines = ",\n".join(
                f"{json.dumps(each)}: {json.dumps(rows, ensure_ascii=False)}" for each, rows in known.items()
            )
            RECORDED.write_text(f"{{{lines}}}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
