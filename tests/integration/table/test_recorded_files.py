"""INSERT, INSERT OVERWRITE and CREATE OR REPLACE TABLE AS leave the files that Flink 2.3 leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor

RECORDED = json.loads((Path(__file__).parent / "recorded" / "file_tables.json").read_text())
COLUMNS = "a INT, b STRING, d STRING, h INT"
TABLES = {
    "plain": ("", ""),
    "part": ("PARTITIONED BY (d, h)", ""),
    "marked": ("PARTITIONED BY (d, h)", ", 'sink.partition-commit.policy.kind' = 'success-file'"),
}


def contents(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not any(part.startswith(".") for part in parts):
            lines = [file.name] if file.name.startswith("_") else file.read_text().splitlines()
            found.setdefault("/".join(parts[:-1]), []).extend(lines)
    return {directory: sorted(lines) for directory, lines in found.items()}


def test_files_are_those_of_flink(tmp_path: Path) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment._session.environment._executor = InProcessExecutor()
    for name, (partition, others) in TABLES.items():
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = 'csv'{others}"
        environment.execute_sql(f"CREATE TABLE {name} ({COLUMNS}) {partition} WITH ({options})")
    environment.execute_sql("CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
    for entry in RECORDED:
        sql = entry["sql"].replace("$root", str(tmp_path))
        if "error" in entry:
            with pytest.raises(ValidationError, match=re.escape(entry["error"])):
                environment.execute_sql(sql)
        else:
            environment.execute_sql(sql).wait()
            assert contents(tmp_path) == entry["files"], sql
