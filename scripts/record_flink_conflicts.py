"""Records what Flink writes with each ON CONFLICT clause, and which statements it refuses.

Run it with a Python that has PyFlink 2.3; it writes tests/unit/table/conflicts.json. Rows go to a stream that takes
upserts. Every row has a watermark behind it.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

RECORDED = Path(__file__).parents[1] / "tests" / "unit" / "table" / "conflicts.json"
CHANGES: list[tuple[str, list[Any] | None, list[Any] | None]] = [
    ("c", None, [1, "a", 1, 1]),
    ("c", None, [2, "b", 2, 2]),
    ("u", [1, "a", 1, 1], [1, "a", 10, 3]),
    ("u", [1, "a", 10, 3], [1, "c", 10, 4]),
    ("c", None, [3, "a", 3, 5]),
    ("d", [2, "b", 2, 2], None),
    ("c", None, [4, "b", 4, 7]),
]
CONFLICTS = [
    ("c", None, [5, "a", 5, 8]),
    ("c", None, [6, "z", 6, 20]),
    ("d", [3, "a", 3, 5], None),
    ("c", None, [7, "z", 7, 30]),
    ("u", [7, "z", 7, 30], [7, "y", 7, 31]),
]
TABLES = {
    "changes": (CHANGES, True),
    "conflicts": (CHANGES + CONFLICTS, True),
    "keyless": (CHANGES + CONFLICTS, False),
    "appended": ([change for change in CHANGES + CONFLICTS if change[0] == "c"], False),
}
QUERIES = {
    "SELECT k, v FROM {}": (["k", "v"], ["STRING", "INT"], 0),
    "SELECT id, k FROM {}": (["id", "k"], ["INT", "STRING"], 0),
    "SELECT id, k, v FROM {}": (["id", "k", "v"], ["INT", "STRING", "INT"], 1),
    "SELECT k, COUNT(*) AS n FROM {} GROUP BY k": (["k", "n"], ["STRING", "BIGINT"], 0),
    "SELECT COUNT(*) AS n, k FROM {} GROUP BY k": (["n", "k"], ["BIGINT", "STRING"], 0),
}


def _image(row: list[Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    number, key, value, second = row
    return {"id": number, "k": key, "v": value, "ts": f"1970-01-01 00:00:{second:02d}"}


def _environment(folder: Path) -> StreamTableEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    tables = StreamTableEnvironment.create(environment)
    tables.get_config().set("pipeline.auto-watermark-interval", "0 ms")
    for name, (changes, has_key) in TABLES.items():
        lines = [json.dumps({"op": op, "before": _image(old), "after": _image(new)}) for op, old, new in changes]
        path = folder / f"{name}.json"
        is_appended = name == "appended"
        if is_appended:
            lines = [json.dumps(_image(new)) for _, _, new in changes]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        key = ", PRIMARY KEY (id) NOT ENFORCED" if has_key else ""
        tables.execute_sql(
            f"CREATE TABLE {name} (id INT, k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts{key}) WITH "
            f"('connector' = 'filesystem', 'path' = '{path}', "
            f"'format' = '{'json' if is_appended else 'debezium-json'}')"
        )
    return tables


def _written(tables: StreamTableEnvironment, query: str, sink: tuple[Any, Any, int], clause: str | None) -> Any:
    jvm = get_gateway().jvm
    api = jvm.org.apache.flink.table.api
    names, types, key = sink
    schema = api.Schema.newBuilder()
    for index, (name, type_) in enumerate(zip(names, types, strict=True)):
        schema = schema.column(name, type_ + (" NOT NULL" if index == key else ""))
    schema = schema.primaryKey([names[key]]).build()
    strategy = None if clause is None else getattr(api.InsertConflictStrategy, clause.lower())()
    mode = jvm.org.apache.flink.table.connector.ChangelogMode.upsert()
    table = tables.sql_query(query)._j_table
    try:
        stream = tables._j_tenv.toChangelogStream(table, schema, mode, strategy)
        rows, results = [], stream.executeAndCollect()
        while results.hasNext():
            rows.append(results.next().toString())
    except Py4JJavaError as error:
        reasons = re.findall(r"(?:ValidationException|TableRuntimeException): (.*)", str(error))
        return {"error": reasons[-1]}
    return {"rows": rows}


def main() -> None:
    """Writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        tables = _environment(Path(folder))
        tables.get_config().set("table.exec.sink.not-null-enforcer", "DROP")
        cases = [
            {
                "table": name,
                "query": query.format(name),
                "key": sink[2],
                "clause": clause,
                **_written(tables, query.format(name), sink, clause),
            }
            for name in TABLES
            for query, sink in QUERIES.items()
            for clause in (None, "ERROR", "NOTHING", "DEDUPLICATE")
        ]
    sources = {name: changes for name, (changes, _) in TABLES.items()}
    lines = ",\n".join(json.dumps(case) for case in cases)
    changes = ",\n".join(f"{json.dumps(name)}: {json.dumps(changes)}" for name, changes in sources.items())
    RECORDED.write_text(f'{{"tables": {{\n{changes}\n}}, "cases": [\n{lines}\n]}}\n', "utf-8")


if __name__ == "__main__":
    main()
