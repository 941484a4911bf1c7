"""A table that has no rows does not hold back the windows of a query for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.table import TableEnvironment
from firesteel.table.bound.errors import ValidationError

QUERY = """SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end"""


def tables(table_env: TableEnvironment, directory: Path, idle_timeout: str | None) -> None:
    """A table with rows, one without, and both of them; all are unbounded."""
    extra = f", 'scan.watermark.idle-timeout' = '{idle_timeout}'" if idle_timeout else ""
    for name in ("full", "empty"):
        (directory / name).mkdir()
        table_env.execute_sql(
            f"CREATE TABLE {name}_rows (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', "
            f"'path' = '{directory / name}', 'format' = 'json', 'source.monitor-interval' = '1 s'{extra})"
        )
    (directory / "full" / "rows.json").write_text(
        "".join(f'{{"ts": "2020-01-01 00:00:{second:02}"}}\n' for second in (1, 2, 11))
    )
    table_env.execute_sql("CREATE VIEW both_rows AS SELECT * FROM full_rows UNION ALL SELECT * FROM empty_rows")


@pytest.mark.parametrize("by_table", [True, False])
def test_windows_of_a_query_with_an_idle_table_end(table_env: TableEnvironment, tmp_path: Path, by_table: bool) -> None:
    if not by_table:
        table_env.get_config().set("table.exec.source.idle-timeout", "100 ms")
    tables(table_env, tmp_path, "100 ms" if by_table else None)
    with table_env.execute_sql(QUERY.format("both_rows")).collect() as rows:
        assert next(rows)[1] == 2


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("'scan.watermark.idle-timeout' = 'soon'", r"scan\.watermark\.idle-timeout"),
        ("'scan.watermark.alignment.group' = 'g'", "must be set together"),
        ("'scan.watermark.alignment.update-interval' = '0 s'", "greater than zero"),
    ],
)
def test_options_that_cannot_be(table_env: TableEnvironment, tmp_path: Path, option: str, reason: str) -> None:
    tables(table_env, tmp_path, None)
    with pytest.raises(ValidationError, match=reason):
        table_env.execute_sql(f"SELECT * FROM full_rows /*+ OPTIONS({option.replace(' = ', '=')}) */")
