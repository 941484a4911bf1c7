"""Names that SQL does not know, and arguments that functions do not take; the messages are those of Flink 2.3."""

from __future__ import annotations

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.functions.registry import OPERATORS, functions

ROWS = "(VALUES (1, CAST(10 AS BIGINT), 'a'), (2, CAST(20 AS BIGINT), 'bcd')) AS v(i, n, s)"


def _types(query: str, mode: str = "streaming") -> list[str]:
    tables = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
    schema = tables.sql_query(query).get_resolved_schema()
    return [column.data_type.as_summary_string() for column in schema.columns]


def test_operators_have_no_names() -> None:
    assert functions().keys() >= OPERATORS
    for name in OPERATORS - {"||"}:
        with pytest.raises(ValidationError, match=f"No match found for function signature {name}"):
            _types(f"SELECT `{name}`(1, 2)")
    assert _types("SELECT 1 + 2, NOT (1 = 2 AND 'a' LIKE 'b'), ARRAY[1][1], 'a' IS JSON")[0] == "INT NOT NULL"


def test_user_is_a_column() -> None:
    assert _types("SELECT user FROM (VALUES (1)) AS t(`user`)") == ["INT NOT NULL"]
    for name in ("user", "USER", "current_user", "session_user"):
        with pytest.raises(ValidationError, match=f"Column '{name}' not found"):
            _types(f"SELECT {name} FROM {ROWS}")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("LAG(i, 1, 'x')", r"Please explicitly cast default value CHAR\(1\) NOT NULL to INT NOT NULL"),
        ("LAG(i, 1, 1.5)", r"Please explicitly cast default value DECIMAL\(2, 1\) NOT NULL to INT NOT NULL"),
        ("LAG(i, 1, n)", "Please explicitly cast default value BIGINT NOT NULL to INT NOT NULL"),
        ("LAG(i, 1, NULL)", "Illegal use of 'NULL'"),
        ("LAG(i, 1, TRUE)", "Cannot apply 'LAG'"),
        ("LAG(i, 1, DATE '2020-01-01')", "Cannot apply 'LAG'"),
        ("LAG(n, 1, INTERVAL '1' SECOND)", "Cannot apply 'LAG'"),
    ],
)
def test_default_value_of_lag(call: str, error: str) -> None:
    query = f"SELECT {call} OVER (PARTITION BY 1 ORDER BY p) FROM (SELECT *, PROCTIME() AS p FROM {ROWS})"
    with pytest.raises(ValidationError, match=error):
        _types(query)


def test_default_values_of_lag_that_fit() -> None:
    over = "OVER (PARTITION BY 1 ORDER BY p)"
    rows = f"(SELECT *, PROCTIME() AS p FROM {ROWS})"
    query = f"SELECT LAG(n, 1, CAST(NULL AS BIGINT)) {over}, LAG(s, 1, 'zzzz') {over} FROM {rows}"
    assert _types(query) == ["BIGINT", "VARCHAR(3) NOT NULL"]
    batch = f"SELECT LAG(i, 1, 1.5) OVER (ORDER BY i), LAG(i, 1, n) OVER (ORDER BY i) FROM {ROWS}"
    assert _types(batch, "batch") == ["INT NOT NULL", "INT NOT NULL"]
