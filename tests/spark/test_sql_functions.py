"""SQL expressions printed as Spark SQL have the values that Flink recorded."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.table.evaluation.spark_text import spark_text
from firesteel.table.expressions.nodes import Expression, InputRef, walk
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type, from_column
from tests.support.sql_expressions import (
    DIFFERENCES,
    Recorded,
    bind,
    expected_values,
    inputs,
    record_batch,
    recorded,
    same,
)

AT_ONCE = 400
WITHOUT = ("tm", "bi")
"""Columns of types that Spark does not take from Arrow."""


def printable(family: str) -> list[tuple[Recorded, Expression, str]]:
    """The expressions of a family that Spark can express, with their text."""
    found = []
    for entry in recorded(family):
        if entry.type is None or isinstance(entry.outcome, str) or entry.sql in DIFFERENCES[family]:
            continue
        bound = bind(entry.sql)
        text = spark_text(bound)
        used = {part.name for part in walk(bound) if isinstance(part, InputRef)}
        if text is not None and not isinstance(bound.type, t.LocalZonedTimestampType) and not used & set(WITHOUT):
            found.append((entry, bound, text))
    return found


def on_spark(frame: Any, chosen: list[tuple[Recorded, Expression, str]]) -> dict[str, list[Any]]:
    table = frame.selectExpr(*(f"{text} AS x{index}" for index, (_, _, text) in enumerate(chosen))).toArrow()
    return {
        entry.sql: from_column(table.column(index).combine_chunks().cast(arrow_type(bound.type)), bound.type)
        for index, (entry, bound, _) in enumerate(chosen)
    }


@pytest.mark.parametrize("family", ["logical", "hash"])
def test_spark_has_the_values_of_flink(sql_session: Any, family: str) -> None:
    import pyarrow as pa

    frame = sql_session.createDataFrame(pa.Table.from_batches([record_batch()]).drop_columns(WITHOUT)).coalesce(1)
    chosen = printable(family)
    assert len(chosen) > 10
    wrong = {}
    for start in range(0, len(chosen), AT_ONCE):
        part = chosen[start : start + AT_ONCE]
        values = on_spark(frame, part)
        for entry, bound, text in part:
            expected = expected_values(entry, bound.type)
            if not same(values[entry.sql], expected):
                wrong[entry.sql] = f"{text}: {values[entry.sql]} instead of {expected}"
    assert not wrong, "\n".join(f"{sql} as {problem}" for sql, problem in wrong.items())
    assert len(inputs().rows) == 8
