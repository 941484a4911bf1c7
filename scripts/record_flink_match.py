"""Records what Flink makes of the queries with MATCH_RECOGNIZE of the tests: types and rows, or why it refuses them.

Run it with a Python that has PyFlink 2.3; it writes tests/integration/table/recorded/match.json. Each row brings its
watermark (an interval of 0), so which rows are late does not depend on the clock. Rows are in the order of Flink's
results at parallelism 1, and their values are texts. Queries that are recorded already are not run again.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, ExplainDetail, TableEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from record_flink_expressions import message  # type: ignore[import-not-found]

TESTS = Path(__file__).parents[1] / "tests"
RECORDED = TESTS / "integration" / "table" / "recorded" / "match.json"


AT_ONCE = 25
MAX_COLUMNS = 12
BATCH_EVERY = 4
"""Which part of the queries is run in batch mode too."""


def main() -> None:
    """Records all queries."""
    spec = importlib.util.spec_from_file_location("queries", TESTS / "support" / "sql_match" / "queries.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    recorded: dict[str, dict[str, Any]] = {query: known.get(query, {}) for query in module.QUERIES}
    with tempfile.TemporaryDirectory() as directory:
        for mode, every in (("streaming", 1), ("batch", BATCH_EVERY)):
            environment = _environment(mode, module.TABLES, directory)
            missing = [query for query in module.QUERIES[::every] if mode not in recorded[query]]
            for first in range(0, len(missing), AT_ONCE):
                for query, outcome in _outcomes(environment, missing[first : first + AT_ONCE]).items():
                    recorded[query][mode] = outcome
                sys.stdout.write(f"{mode}: {first + AT_ONCE} of {len(missing)}\n")
                sys.stdout.flush()
                lines = (f"{json.dumps(sql)}: {json.dumps(found)}" for sql, found in recorded.items())
                RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _environment(mode: str, tables: dict[str, Any], directory: str) -> TableEnvironment:
    settings = EnvironmentSettings.in_streaming_mode() if mode == "streaming" else EnvironmentSettings.in_batch_mode()
    environment = TableEnvironment.create(settings)
    config = environment.get_config()
    config.set("parallelism.default", "1")
    config.set("pipeline.auto-watermark-interval", "0 ms")
    config.set("table.local-time-zone", "UTC")
    for name, (columns, rows) in tables.items():
        path = Path(directory, f"{name}.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["" if value is None else value for value in row] for row in rows])
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', "
            "'format' = 'csv', 'csv.null-literal' = '')"
        )
    return environment


def _outcomes(environment: TableEnvironment, queries: list[str]) -> dict[str, Any]:
    """What each query gives; those that Flink accepts run in one job, as that is much faster."""
    outcomes: dict[str, dict[str, Any]] = {}
    accepted: dict[str, str] = {}
    for query in queries:
        outcome = outcomes[query] = {}
        try:
            table = environment.sql_query(_distinct(query))
            columns = [
                (column.getName(), column.getDataType().getLogicalType().asSummaryString())
                for column in table._j_table.getResolvedSchema().getColumns()
            ]
            outcome["type"] = columns
            table.explain(ExplainDetail.JSON_EXECUTION_PLAN)
        except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
            outcome["error"] = message(error)
            continue
        view = f"v{zlib.crc32(query.encode())}"
        environment.create_temporary_view(view, table)
        texts = [f"CAST(`{name}` AS STRING)" for name, _ in columns]
        texts += ["CAST(NULL AS STRING)"] * (MAX_COLUMNS - len(texts))
        accepted[query] = f"{', '.join(texts)} FROM {view}"
    _run_all(environment, list(accepted.items()), outcomes)
    return outcomes


def _run_all(environment: TableEnvironment, accepted: list[tuple[str, str]], outcomes: dict[str, Any]) -> None:
    """Runs queries in one job; if it fails, in two, and so on."""
    try:
        rows = _rows(environment, [f"SELECT {number} AS q, {text}" for number, (_, text) in enumerate(accepted)])
    except Exception as error:  # noqa: BLE001
        if len(accepted) == 1:
            outcomes[accepted[0][0]]["error"] = message(error)
            return
        middle = len(accepted) // 2
        _run_all(environment, accepted[:middle], outcomes)
        _run_all(environment, accepted[middle:], outcomes)
        return
    for (query, _), found in zip(accepted, rows, strict=True):
        outcomes[query]["rows"] = [row[: len(outcomes[query]["type"])] for row in found]


def _distinct(query: str) -> str:
    """The query with other names of variables: Flink takes matches for the same that differ in measures only."""
    return re.sub(r"\b([A-D])\b(?!')", rf"\g<1>{zlib.crc32(query.encode())}", query)


def _rows(environment: TableEnvironment, texts: list[str]) -> list[list[Any]]:
    """The rows of queries with a number and texts, in the order of the results."""
    found: list[list[Any]] = [[] for _ in texts]
    if not texts:
        return found
    results = environment.execute_sql(" UNION ALL ".join(texts))._j_table_result.collect()
    while results.hasNext():
        row = results.next()
        values = [row.getField(index) for index in range(1, row.getArity())]
        if row.getKind().shortString() in ("+I", "+U"):
            found[row.getField(0)].append(values)
        else:
            found[row.getField(0)].remove(values)
    results.close()
    return found


if __name__ == "__main__":
    main()
