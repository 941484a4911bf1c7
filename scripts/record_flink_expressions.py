"""Records types and values of SQL expressions from Flink: ``python scripts/record_flink_expressions.py [FAMILY…]``.

Runs with the Python of an installation of PyFlink 2.3. Reads tests/unit/table/expressions/FAMILY.txt, one expression a
line over the columns of recorded/inputs.json, and writes recorded/FAMILY.json: [expression, type, values], or
[expression, null, message] for one that Flink rejects, or [expression, type, message] for one that fails when it runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parents[1] / "tests" / "unit" / "table"
AT_ONCE = 60


def create_environment(directory: str, zone: str) -> TableEnvironment:
    inputs = json.loads((HERE / "recorded" / "inputs.json").read_text())
    Path(directory, "rows.json").write_text("\n".join(map(json.dumps, inputs["rows"])))
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", zone)
    columns = ", ".join(f"`{name}` {type_}" for name, type_ in inputs["columns"])
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = 'file://{directory}', "
        "'format' = 'json', 'json.timestamp-format.standard' = 'SQL')"
    )
    return environment


def message(error: Exception) -> str:
    """The innermost cause in one line."""
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    text = str(error) if java is None else f"{java.getClass().getSimpleName()}: {java.getMessage()}"
    return " ".join(text.split())[:300]


def type_of(environment: TableEnvironment, expression: str) -> str:
    table = environment.sql_query(f"SELECT {expression} AS x FROM t")  # noqa: S608
    return str(table._j_table.getResolvedSchema().getColumnDataTypes()[0].getLogicalType().asSummaryString())


def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if not hasattr(value, "getClass"):
        if hasattr(value, "items"):
            return [[plain(key), plain(item)] for key, item in value.items()]
        return [plain(item) for item in value] if hasattr(value, "__len__") else str(value)
    kind = value.getClass().getName()
    if kind == "org.apache.flink.types.Row":
        return [plain(value.getField(index)) for index in range(value.getArity())]
    if kind == "java.time.Duration":
        return value.toMillis()
    if kind == "java.time.Period":
        return value.toTotalMonths()
    if kind.startswith("["):
        return [plain(item) for item in value]
    if value.getClass().getSimpleName().endswith("Map"):
        return [[plain(entry.getKey()), plain(entry.getValue())] for entry in value.entrySet()]
    return value.toString()


def run(environment: TableEnvironment, expressions: list[str]) -> list:
    """The values of each expression; a message for each that fails."""
    selected = ", ".join(f"{expression} AS x{index}" for index, expression in enumerate(expressions))
    try:
        rows = []
        found = environment.execute_sql(f"SELECT {selected} FROM t")._j_table_result.collect()  # noqa: S608
        while found.hasNext():
            rows.append(found.next())
        found.close()
    except Exception as error:  # noqa: BLE001 - whatever Flink says
        if len(expressions) == 1:
            return [message(error)]
        half = len(expressions) // 2
        return run(environment, expressions[:half]) + run(environment, expressions[half:])
    return [compact([plain(row.getField(index)) for row in rows]) for index in range(len(expressions))]


def compact(values: list) -> list:
    """One value stands for all rows if they are alike."""
    return values[:1] if all(value == values[0] and type(value) is type(values[0]) for value in values) else values


def record(family: str) -> None:
    lines = (HERE / "expressions" / f"{family}.txt").read_text().splitlines()
    zone = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("# zone:")), "UTC")
    expressions = list(dict.fromkeys(line for line in lines if line.strip() and not line.startswith("#")))
    results: dict[str, list] = {}
    with tempfile.TemporaryDirectory() as directory:
        environment = create_environment(directory, zone)
        valid = []
        for expression in expressions:
            try:
                results[expression] = [expression, type_of(environment, expression), None]
                valid.append(expression)
            except Exception as error:  # noqa: BLE001 - whatever Flink says
                results[expression] = [expression, None, message(error)]
        for start in range(0, len(valid), AT_ONCE):
            chosen = valid[start : start + AT_ONCE]
            for expression, values in zip(chosen, run(environment, chosen), strict=True):
                results[expression][2] = values
    text = ",\n".join(json.dumps(results[expression], ensure_ascii=False) for expression in expressions)
    (HERE / "recorded" / f"{family}.json").write_text(f"[\n{text}\n]\n")
    print(f"{family}: {len(expressions)} expressions, {len(valid)} valid")  # noqa: T201


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in (HERE / "expressions").glob("*.txt")):
        record(name)
