"""The built-in functions and those of Flink's page."""

from __future__ import annotations

import sys
from pathlib import Path

from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.registry import functions

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))

from sql_functions_page import FLINK_FUNCTIONS, exists

ABSENT = {
    *("GROUP_ID", "GROUPING", "GROUPING_ID"),  # of a GROUP BY
}
"""The functions of Flink's page that do not exist."""


def test_the_functions_of_flink() -> None:
    names = {name for text in FLINK_FUNCTIONS.values() for name in text.split()}
    assert {name for name in names if not exists(name)} == ABSENT


def test_scalar_functions_have_a_row_body() -> None:
    without = [
        name
        for name, definition in functions().items()
        if definition.kind is FunctionKind.SCALAR and definition.row is None and name not in ("AND", "OR")
    ]
    assert not without
