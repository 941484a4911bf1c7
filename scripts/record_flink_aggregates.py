"""Records types and results of aggregate functions from Flink: ``python scripts/record_flink_aggregates.py``.

Runs with the Python of an installation of PyFlink 2.3. Reads tests/unit/table/aggregates.txt, one call a line over the
columns of recorded/aggregate_inputs.json, and writes recorded/aggregates.json: a call, its type, and its results by
group for four inputs: the rows in batch mode, the rows as a stream, the rows followed by deletions as a stream, and
these followed by changes after which groups have one row, or NULL only, or begin anew. A message takes the place of
what Flink refuses. What is recorded already is left as it is, unless the script runs with ``--all``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from record_flink_expressions import message, plain  # type: ignore[import-not-found]

HERE = Path(__file__).parents[1] / "tests" / "unit" / "table"
AT_ONCE = 12


def create_environment(directory: Path, settings: EnvironmentSettings, columns: list, format_: str) -> TableEnvironment:
    environment = TableEnvironment.create(settings)
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", "UTC")
    listed = ", ".join(f"`{name}` {type_}" for name, type_ in columns)
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE a ({listed}) WITH ('connector' = 'filesystem', 'path' = 'file://{directory}', "
        f"'format' = '{format_}', '{format_}.timestamp-format.standard' = 'SQL')"
    )
    return environment


def run(environment: TableEnvironment, calls: list[str]) -> list:
    """The results of each call by group, or a message."""
    selected = ", ".join(f"{call} AS x{index}" for index, call in enumerate(calls))
    found: dict = {}
    try:
        rows = environment.execute_sql(f"SELECT g, {selected} FROM a GROUP BY g")._j_table_result.collect()  # noqa: S608
        while rows.hasNext():
            row = rows.next()
            values = [plain(row.getField(index)) for index in range(row.getArity())]
            if row.getKind().shortString() in ("+I", "+U"):
                found[values[0]] = values[1:]
            elif row.getKind().shortString() == "-D":
                del found[values[0]]
        rows.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        if len(calls) == 1:
            return [message(error)]
        half = len(calls) // 2
        return run(environment, calls[:half]) + run(environment, calls[half:])
    groups = sorted(found, key=lambda key: (key is not None, key))
    return [[[key, found[key][index]] for key in groups] for index in range(len(calls))]


def type_of(environment: TableEnvironment, call: str) -> str:
    table = environment.sql_query(f"SELECT {call} AS x FROM a GROUP BY g")  # noqa: S608
    return str(table._j_table.getResolvedSchema().getColumnDataTypes()[0].getLogicalType().asSummaryString())


def main() -> None:
    """Records all calls."""
    inputs = json.loads((HERE / "recorded" / "aggregate_inputs.json").read_text())
    calls = [line for line in (HERE / "aggregates.txt").read_text().splitlines() if line and not line.startswith("#")]
    changes = [{"op": "c", "before": None, "after": row} for row in inputs["rows"]]
    changes += [{"op": "d", "before": inputs["rows"][index], "after": None} for index in inputs["deleted"]]
    further = [
        {"op": "c", "before": None, "after": inputs["rows"][index]}
        if operation == "c"
        else {"op": "d", "before": inputs["rows"][index], "after": None}
        for operation, index in inputs["emptied"]
    ]
    target = HERE / "recorded" / "aggregates.json"
    known = {} if "--all" in sys.argv else {entry[0]: entry for entry in json.loads(target.read_text())}
    with tempfile.TemporaryDirectory() as directory:
        for name, rows in (("rows", inputs["rows"]), ("changes", changes), ("emptied", changes + further)):
            Path(directory, name).mkdir()
            Path(directory, name, "part.json").write_text("\n".join(map(json.dumps, rows)))
        batch, stream = EnvironmentSettings.in_batch_mode(), EnvironmentSettings.in_streaming_mode()
        environments = [
            create_environment(Path(directory, folder), settings, inputs["columns"], format_)
            for folder, settings, format_ in (
                ("rows", batch, "json"),
                ("rows", stream, "json"),
                ("changes", stream, "debezium-json"),
                ("emptied", stream, "debezium-json"),
            )
        ]
        recorded: dict[str, list] = {}
        for call in calls:
            if call in known:
                recorded[call] = known[call]
                continue
            try:
                recorded[call] = [call, type_of(environments[0], call)]
            except Exception as error:  # noqa: BLE001 - whatever Flink says
                recorded[call] = [call, None, message(error)]
        valid = [call for call in calls if recorded[call][1] is not None]
        for number, environment in enumerate(environments):
            missing = [call for call in valid if len(recorded[call]) == 2 + number]
            for start in range(0, len(missing), AT_ONCE):
                chosen = missing[start : start + AT_ONCE]
                for call, results in zip(chosen, run(environment, chosen), strict=True):
                    recorded[call].append(results)
    text = ",\n".join(json.dumps(recorded[call], ensure_ascii=False) for call in calls)
    target.write_text(f"[\n{text}\n]\n")
    print(f"{len(calls)} calls, {len(valid)} valid")  # noqa: T201


if __name__ == "__main__":
    main()
