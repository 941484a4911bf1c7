"""SQL expressions printed as Spark SQL have the values that Flink recorded: the third body of functions and casts."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from firesteel.table.bound.nodes import Call, Expression, InputRef, walk
from firesteel.table.evaluation.spark_text import spark_text, spark_type
from firesteel.table.functions.registry import functions
from firesteel.types.internal import arrow_type, from_column
from tests.support.sql_expressions import (
    DIFFERENCES,
    FAMILIES,
    Recorded,
    bind,
    expected_values,
    inputs,
    record_batch,
    recorded,
    same,
    session,
)

AT_ONCE = 200
WITHOUT = ("tm", "bi")
"""Columns of types that Spark does not take from Arrow."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Thousands of expressions over eight rows: to compile them takes longer than to interpret them."""
IN_UTC = [family for family in FAMILIES if session(family).local_time_zone == "UTC"]


class Printed(NamedTuple):
    """An expression that Spark can express, with its text."""

    entry: Recorded
    bound: Expression
    text: str


@cache
def printed(family: str) -> list[Printed]:
    found = []
    for entry in recorded(family):
        if entry.type is None or isinstance(entry.outcome, str) or entry.sql in DIFFERENCES[family]:
            continue
        bound = bind(entry.sql)
        text = spark_text(bound)
        used = {part.name for part in walk(bound) if isinstance(part, InputRef)}
        if text is not None and spark_type(bound.type) is not None and not used & set(WITHOUT):
            found.append(Printed(entry, bound, text))
    return found


@pytest.fixture(scope="module")
def frame(sql_session: Any) -> Any:
    for key, value in INTERPRETED.items():
        sql_session.conf.set(key, value)
    yield sql_session.createDataFrame(pa.Table.from_batches([record_batch()]).drop_columns(WITHOUT)).coalesce(1)
    for key in INTERPRETED:
        sql_session.conf.unset(key)


def on_spark(frame: Any, chosen: list[Printed]) -> list[list[Any]]:
    table = frame.selectExpr(*(f"{part.text} AS x{index}" for index, part in enumerate(chosen))).toArrow()
    return [
        from_column(table.column(index).combine_chunks().cast(arrow_type(part.bound.type)), part.bound.type)
        for index, part in enumerate(chosen)
    ]


def test_spark_has_the_values_of_flink(frame: Any) -> None:
    chosen = [part for family in IN_UTC for part in printed(family)]
    wrong = []
    for start in range(0, len(chosen), AT_ONCE):
        some = chosen[start : start + AT_ONCE]
        for part, values in zip(some, on_spark(frame, some), strict=True):
            expected = expected_values(part.entry, part.bound.type)
            if not same(values, expected):
                wrong.append(f"{part.entry.sql} as {part.text}: {values} instead of {expected}")
    assert not wrong, "\n".join(wrong)
    assert len(inputs().rows) == 8
    assert len(chosen) > 1900


def test_every_function_with_a_text_is_compared() -> None:
    compared = {
        call.function
        for family in IN_UTC
        for part in printed(family)
        for call in walk(part.bound)
        if isinstance(call, Call)
    }
    clocks = {"CURRENT_DATE", "CURRENT_TIMESTAMP", "NOW", "LOCALTIMESTAMP"}
    with_text = {name for name, definition in functions().items() if definition.spark is not None}
    assert with_text - compared <= clocks


FAILING = ["i / j", "n / 0", "p / 0", "i % j", "CAST(s AS INT)", "CAST(s AS DOUBLE)", "CAST(s AS BOOLEAN)"]


@pytest.mark.parametrize("sql", FAILING)
def test_what_fails_in_flink_fails_on_spark(frame: Any, sql: str) -> None:
    text = spark_text(bind(sql))
    assert text is not None
    with pytest.raises(Exception, match=r"by zero|Cannot cast"):
        frame.selectExpr(f"{text} AS x").collect()
