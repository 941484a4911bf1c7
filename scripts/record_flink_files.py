"""Records the files of tables from Flink: ``python scripts/record_flink_files.py``.

Runs with the Python of an installation of PyFlink 2.3. Executes the statements of
tests/integration/table/file_tables.sql in batch mode and writes recorded/file_tables.json: a statement, and the lines
of each directory of the tables afterwards, or the message with which Flink refuses it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parents[1] / "tests" / "integration" / "table"
COLUMNS = "a INT, b STRING, d STRING, h INT"
TABLES = {
    "plain": ("", ""),
    "part": ("PARTITIONED BY (d, h)", ""),
    "marked": ("PARTITIONED BY (d, h)", ", 'sink.partition-commit.policy.kind' = 'success-file'"),
}


def message(error: Exception) -> str:
    """The innermost message of Flink, on one line."""
    lines = [line for line in str(error).splitlines() if not line.lstrip().startswith(("at ", "... "))]
    causes = [line for line in lines if "Exception: " in line]
    return causes[-1].split("Exception: ", 1)[1].strip() if causes else lines[0]


def contents(root: Path) -> dict[str, list[str]]:
    """The lines of the files in each directory; markers by their name."""
    found: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not any(part.startswith(".") for part in parts):
            lines = [file.name] if file.name.startswith("_") else file.read_text().splitlines()
            found.setdefault("/".join(parts[:-1]), []).extend(lines)
    return {directory: sorted(lines) for directory, lines in found.items()}


def main() -> None:
    """Writes the recording."""
    recorded = []
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        environment.get_config().set("parallelism.default", "1")
        for name, (partition, others) in TABLES.items():
            options = f"'connector' = 'filesystem', 'path' = '{root}/{name}', 'format' = 'csv'{others}"
            environment.execute_sql(f"CREATE TABLE {name} ({COLUMNS}) {partition} WITH ({options})")
        environment.execute_sql("CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
        for sql in filter(None, map(str.strip, (HERE / "file_tables.sql").read_text().split(";\n"))):
            try:
                result = environment.execute_sql(sql.replace("$root", str(root)))
                if result.get_job_client() is not None:
                    result.wait()
                recorded.append({"sql": sql, "files": contents(root)})
            except Exception as error:  # noqa: BLE001 - whatever Flink says
                recorded.append({"sql": sql, "error": message(error)})
    text = ",\n".join(f"  {json.dumps(entry)}" for entry in recorded)
    (HERE / "recorded" / "file_tables.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
