"""The built-in functions and those of Flink's page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from firesteel.table.binder.queries import QueryBinder
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.registry import functions
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import TableScan
from firesteel.types.logical import IntType, RowType, TimestampKind, TimestampType, VarCharType

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))

from sql_functions_page import FLINK_FUNCTIONS, examples, exists

ABSENT: set[str] = set()
"""The functions of Flink's page that do not exist."""


def test_the_functions_of_flink() -> None:
    names = {name for text in FLINK_FUNCTIONS.values() for name in text.split()}
    assert {name for name in names if not exists(name)} == ABSENT


def test_each_function_has_an_example_that_binds() -> None:
    """Examples with a value are evaluated with the recorded expressions."""
    names = {name for text in FLINK_FUNCTIONS.values() for name in text.split()}
    assert names == examples().keys()
    table = RowType.of(
        ["k", "x", "s", "r", "ts"],
        [IntType(), IntType(), VarCharType(), RowType.of(["a"], [IntType()]), TimestampType(3, TimestampKind.ROWTIME)],
    )

    def resolve(path: Sequence[str], _: tuple[tuple[str, str], ...]) -> TableScan:
        return TableScan(ObjectIdentifier("c", "d", path[-1]), table, ())

    for name, (sql, value) in examples().items():
        if value is None and not name.startswith("GROUP"):  # those need GROUPING SETS
            is_condition = "SELECT" in sql
            query = f"SELECT k FROM t WHERE {sql}" if is_condition else f"SELECT {sql} FROM t"
            assert QueryBinder(resolve, query).bind(parse_query(query)).row_type.fields, sql


def test_scalar_functions_have_a_row_body() -> None:
    without = [
        name
        for name, definition in functions().items()
        if definition.kind is FunctionKind.SCALAR and definition.row is None and name not in ("AND", "OR")
    ]
    assert not without
