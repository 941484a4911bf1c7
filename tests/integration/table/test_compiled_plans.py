"""Compiled plans: they are read again, run as the statement does, and keep the names of their operators."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.time import Duration
from firesteel.config import checkpointing_options
from firesteel.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    PlanReference,
    Schema,
    TableDescriptor,
    TableEnvironment,
)
from firesteel.table.bound.errors import ValidationError
from firesteel.table.compiled.document import encode_document
from firesteel.table.compiled.names import NODES
from firesteel.table.environment.planning.plan_tables import PlanTables
from firesteel.table.expressions import col
from firesteel.table.parser import split_script
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.translate.translator import _TRANSLATIONS
from firesteel.table.udf import udf
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor

RECORDED = Path(__file__).parent / "recorded" / "compiled_plan_1.json"
"""A plan of the first version. It is never made again: later versions have to read it."""

ORDERS = """CREATE TABLE orders (
  id INT, item STRING, price DECIMAL(10, 2), tags ARRAY<STRING>, part ROW<a INT, b STRING>,
  ts TIMESTAMP(3), k AS MOD(id, 3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"""
ROWS = [
    {"id": n, "item": "abc"[n % 3], "price": n * 1.25, "tags": ["x", "y"][: n % 3], "ts": f"2024-01-01 00:00:{n:02}"}
    | {"part": {"a": n, "b": None}}
    for n in range(1, 13)
]
PRINTED = "WITH ('connector' = 'print')"


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders"
    path.mkdir()
    (path / "rows.json").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return ORDERS.format(path=path)


def environment(*statements: str, **settings: str) -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", "2")
    created.get_config().set_local_timezone("UTC")
    for key, value in settings.items():
        created.get_config().set(key.replace("__", ".").replace("_", "-"), value)
    for statement in statements:
        created.execute_sql(statement)
    return created


SCRIPT = (Path(__file__).parent / "compiled_plans.sql").read_text()
TABLES, STATEMENTS = [], []
for _statement in split_script(SCRIPT):
    (STATEMENTS if _statement.text.startswith("INSERT") else TABLES).append(_statement.text)
QUERIES = [
    "SELECT item, COUNT(*) FILTER (WHERE price > 2.50) FROM orders WHERE id > 2 GROUP BY item",
    """SELECT item, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4' SECOND))
    GROUP BY item, window_start, window_end""",
    "SELECT a.item, CAST(b.id AS BIGINT) FROM orders a LEFT JOIN orders b ON a.id = b.id + 1 AND a.price > b.price",
]
OUT = "CREATE TABLE out_ (a STRING, b BIGINT) WITH ('connector' = 'blackhole')"


def test_plans_of_all_nodes_are_read_as_they_were_written(orders: str) -> None:
    table_env = environment(orders, *TABLES)
    splitting = environment(orders, *TABLES, table__optimizer__distinct_agg__split__enabled="true")
    names = set()
    for statement in STATEMENTS:
        chosen = splitting if "DISTINCT" in statement else table_env
        plan = chosen.compile_plan_sql(statement)
        names |= {node["type"] for node in plan._content["nodes"]}
        text = plan.as_json_string()
        read = chosen.load_plan(PlanReference.from_json_string(text))
        assert read.explain() == plan.explain()
        assert encode_document(read._document, PlanTables(chosen._session).encode) == json.loads(text), statement
        translator = read._translator()
        for root in read._document.roots:
            translator.translate(root)
        assert translator.uids == {node: uids for node, uids in read._document.uids.items() if uids}
    assert set(NODES) - names == {"changelog-normalize_1"}  # no connector here has upserts that are not normalized


def test_every_node_of_plans_runs() -> None:
    running: set[type[LogicalNode]] = set(_TRANSLATIONS)
    assert set(NODES.values()) - running == set()


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return sorted(re.findall(r"[+-][IUD]\[.*\]", capsys.readouterr().out))


def _final(capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """The rows that are left of the changes, whose order depends on what comes first."""
    found: Counter[str] = Counter()
    for change in _printed(capsys):
        found[change[2:]] += 1 if change[0] == "+" else -1
    return Counter({row: count for row, count in found.items() if count})


@pytest.mark.parametrize("query", QUERIES)
def test_a_plan_has_the_results_of_its_statement(
    query: str, orders: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table_env = environment(orders, f"CREATE TABLE shown (a STRING, b BIGINT) {PRINTED}")
    table_env.execute_sql(f"INSERT INTO shown {query}").wait()
    expected = _final(capsys)
    file = tmp_path / "plans" / "plan.json"
    table_env.execute_sql(f"COMPILE PLAN '{file}' FOR INSERT INTO shown {query}")
    assert not _final(capsys)
    # tables are in the plan
    environment().execute_sql(f"EXECUTE PLAN '{file}'").wait()
    assert _final(capsys) == expected != {}


def test_statements(orders: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table_env = environment(orders, f"CREATE TABLE shown (a STRING, b BIGINT) {PRINTED}")
    file = tmp_path / "plan.json"
    one = "INSERT INTO shown SELECT item, id FROM orders WHERE id = 1"
    both = f"STATEMENT SET BEGIN {one}; INSERT INTO shown SELECT item, id FROM orders WHERE id = 2; END"
    table_env.execute_sql(f"COMPILE PLAN '{file}' FOR {both}")
    with pytest.raises(ValidationError, match="Cannot overwrite the plan file"):
        table_env.execute_sql(f"COMPILE PLAN '{file}' FOR {one}")
    written = file.read_text()
    table_env.execute_sql(f"COMPILE PLAN '{file}' IF NOT EXISTS FOR {one}")
    assert file.read_text() == written
    table_env.execute_sql(f"COMPILE AND EXECUTE PLAN '{file}' FOR {one}").wait()
    assert _printed(capsys) == ["+I[b, 1]", "+I[c, 2]"]
    table_env.get_config().set("table.plan.force-recompile", "true")
    table_env.execute_sql(f"COMPILE AND EXECUTE PLAN '{file}' FOR {one}").wait()
    assert _printed(capsys) == ["+I[b, 1]"]
    assert len(file.read_text()) < len(written)
    with pytest.raises(ValidationError, match="Cannot load the plan file"):
        table_env.execute_sql("EXECUTE PLAN '/nowhere/plan.json'")


def test_the_api(orders: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table_env = environment(orders)
    schema = Schema.new_builder().column("a", "STRING").column("b", "INT").build()
    unnamed = TableDescriptor.for_connector("print").schema(schema).build()
    table = table_env.from_path("orders").where(col("id") <= 2).select(col("item"), col("id"))
    plan = table.insert_into(unnamed).compile_plan()
    plan.write_to_file(tmp_path / "plan.json")
    plan.write_to_file(tmp_path / "plan.json", ignore_if_exists=True)
    plan.print_json_string()
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "plan.json").read_text())
    read = environment().load_plan(PlanReference.from_file(tmp_path / "plan.json"))
    assert "default_catalog.default_database.orders" in read.explain()
    assert "changelogMode" in read.explain(ExplainDetail.CHANGELOG_MODE)
    assert '"nodes"' in read.explain(ExplainDetail.JSON_EXECUTION_PLAN)
    capsys.readouterr()
    environment().execute_plan(PlanReference.from_file(tmp_path / "plan.json")).wait()
    assert _printed(capsys) == ["+I[b, 1]", "+I[c, 2]"]
    statements = table_env.create_statement_set().add_insert(unnamed, table)
    statements.compile_plan().execute().wait()
    assert _printed(capsys) == ["+I[b, 1]", "+I[c, 2]"]


NUMBERS = """CREATE TABLE numbers (n BIGINT, k AS n - n / 3 * 3) WITH ('connector' = 'datagen',
  'rows-per-second' = '500', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000')"""
COUNTS = f"CREATE TABLE counts (k BIGINT, c BIGINT) {PRINTED}"


def test_a_plan_finds_the_state_of_operators_that_this_version_would_name_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table_env = environment(NUMBERS, COUNTS)
    text = table_env.compile_plan_sql("INSERT INTO counts SELECT k, COUNT(*) FROM numbers GROUP BY k").as_json_string()
    content = json.loads(text)
    for node in content["nodes"]:
        for number, operator in enumerate(node.get("operators", ())):
            operator["uid"] = f"old-{node['id']}-{number}"
    reference = PlanReference.from_json_string(json.dumps(content))
    table_env.get_config().get_configuration().set(checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(50))
    client = table_env.execute_plan(reference).get_job_client()
    assert client is not None
    counts = _until(capsys, lambda found: sum(found.values()) >= 30)
    savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()
    counts |= _counts(capsys.readouterr().out)
    restored = environment(execution__state_recovery__path=savepoint, parallelism__default="3")
    client = restored.execute_plan(reference).get_job_client()
    assert client is not None
    later = _until(capsys, lambda found: len(found) == 3)
    client.cancel().result()
    assert all(later[key] > count for key, count in counts.items())
    direct = environment(NUMBERS, COUNTS, execution__state_recovery__path=savepoint)
    with pytest.raises(Exception, match="old-"):
        direct.execute_sql("INSERT INTO counts SELECT k, COUNT(*) FROM numbers GROUP BY k").wait()


def _until(capsys: pytest.CaptureFixture[str], is_enough: Any) -> dict[int, int]:
    found: dict[int, int] = {}

    def check() -> None:
        found.update(_counts(capsys.readouterr().out))
        assert is_enough(found)

    eventually(check)
    return found


def _counts(text: str) -> dict[int, int]:
    return {int(key): int(count) for key, count in re.findall(r"\+[IU]\[(\d), (\d+)\]", text)}


def test_a_recorded_plan_is_still_read_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    plan = environment().load_plan(PlanReference.from_file(RECORDED))
    assert plan.get_flink_version() == "0.1.0"
    plan.execute().wait()
    rows = re.findall(r"\+[IU]\[(\d), (\d), (.*)\]", capsys.readouterr().out)
    assert {key: (count, total) for key, count, total in rows} == {
        "0": ("2", "9.00"),
        "1": ("2", "5.00"),
        "2": ("2", "7.00"),
    }


def _refused(table_env: TableEnvironment, content: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(ValidationError) as error:
        table_env.load_plan(PlanReference.from_json_string(text))
    return str(error.value)


def test_plans_that_cannot_be_read(orders: str) -> None:
    table_env = environment(orders, OUT)
    content = json.loads(table_env.compile_plan_sql("INSERT INTO out_ SELECT item, id FROM orders").as_json_string())
    assert "is not JSON" in _refused(table_env, "{")
    assert "not a compiled plan" in _refused(table_env, {"flinkVersion": "2.3", "nodes": []})
    assert "has version 2" in _refused(table_env, {**content, "planVersion": 2})
    first, *others = content["nodes"]
    changed = {**first, "type": "guess_1"}
    assert "Node 1 of the plan (guess_1) cannot be read" in _refused(table_env, {**content, "nodes": [changed]})
    changed = {**first, "fields": {**first["fields"], "new": 1}}
    assert "has no 'new'" in _refused(table_env, {**content, "nodes": [changed, *others]})
    last = {**others[-1], "outputType": "ROW<`a` STRING> NOT NULL"}
    assert "would have the type" in _refused(table_env, {**content, "nodes": [first, *others[:-1], last]})
    table_env.execute_sql("DROP TABLE out_")
    table_env.execute_sql("CREATE TABLE out_ (a STRING, b BIGINT, c INT) WITH ('connector' = 'blackhole')")
    assert "does not match the schema loaded from the catalog" in _refused(table_env, content)
    table_env.get_config().set("table.plan.restore.catalog-objects", "ALL_ENFORCED")
    table_env.load_plan(PlanReference.from_json_string(json.dumps(content)))


def test_what_plans_keep_of_tables(orders: str) -> None:
    statement = "INSERT INTO out_ SELECT item, id FROM orders"
    temporary = orders.replace("CREATE TABLE", "CREATE TEMPORARY TABLE")
    text = environment(temporary, OUT).compile_plan_sql(statement).as_json_string()
    assert "filesystem" not in text
    assert "Cannot resolve table" in _refused(environment(), text)
    environment(orders).load_plan(PlanReference.from_json_string(text))
    table_env = environment(orders, OUT, table__plan__compile__catalog_objects="SCHEMA")
    text = table_env.compile_plan_sql(statement).as_json_string()
    assert "filesystem" not in text
    assert "no options of the table" in _refused(environment(), text)
    table_env.load_plan(PlanReference.from_json_string(text))
    elements = table_env.from_elements([("a", 1)], ["a", "b"])
    with pytest.raises(ValidationError, match="its rows are those of the program"):
        elements.insert_into("out_").compile_plan()
    with pytest.raises(ValidationError, match="only accepts a single SQL statement of type INSERT"):
        table_env.compile_plan_sql("SELECT 1")
    table_env.get_config().set("execution.runtime-mode", "BATCH")
    with pytest.raises(ValidationError, match="streaming mode only"):
        table_env.compile_plan_sql(statement)


def test_functions_of_the_program_are_refused(orders: str) -> None:
    table_env = environment(orders, OUT)
    table_env.create_temporary_function("own", udf(lambda number: number + 1, result_type=DataTypes.BIGINT()))
    with pytest.raises(ValidationError, match="A compiled plan cannot contain"):
        table_env.compile_plan_sql("INSERT INTO out_ SELECT item, own(id) FROM orders")
