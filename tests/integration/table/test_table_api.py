"""The Table API: what programs with PyFlink cannot show, and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.table import DataTypes, Expression, Table, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.expression import JsonOnNull
from firesteel.table.expressions import (
    array,
    call,
    col,
    json,
    json_array,
    json_object,
    lit,
    range_,
    row_interval,
    with_all_columns,
    with_columns,
)
from firesteel.table.window import Over, Tumble


@pytest.fixture
def table(table_env: TableEnvironment) -> Table:
    return table_env.from_elements([(1, "a", 2.5), (2, None, None)], ["i", "s", "x"])


def values(table: Table, *expressions: Expression[Any]) -> list[tuple[Any, ...]]:
    named = [expression.alias(f"c{index}") for index, expression in enumerate(expressions)]
    with table.select(*named).execute().collect() as rows:
        return [tuple(row) for row in rows]


def test_functions_that_pyflink_cannot_call(table: Table) -> None:
    found = values(
        table,
        array(3, 1, 3).array_distinct(),
        array(1, 2).array_reverse(),
        json_object(JsonOnNull.ABSENT, "i", col("i"), "s", col("s"), "j", json("[1]")),
        json_array(JsonOnNull.NULL, col("i"), col("s")),
        col("s").ascii,
        col("i").bin,
    )
    assert found == [
        ([3, 1], [2, 1], '{"i":1,"j":[1],"s":"a"}', '[1,"a"]', 97, "1"),
        ([3, 1], [2, 1], '{"i":2,"j":[1]}', "[2,null]", None, "10"),
    ]


def test_literals_of_python(table: Table) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000)  # noqa: DTZ001
    found = values(
        table.where(col("i") == 1),
        lit(moment),
        lit(moment.date()),
        lit(dt.time(12, 30)),
        lit(moment) + dt.timedelta(minutes=90),
        lit(b"\x01\x02"),
        lit(Decimal(12)),
        lit(-5),
        lit(-0.25),
        lit(1e300),
        lit(float("inf")),
        lit(3, DataTypes.BIGINT()),
        lit(None, DataTypes.STRING()),
    )
    assert found == [
        (
            moment,
            moment.date(),
            dt.time(12, 30),
            moment + dt.timedelta(minutes=90),
            b"\x01\x02",
            Decimal(12),
            -5,
            -0.25,
            1e300,
            float("inf"),
            3,
            None,
        )
    ]


def test_a_sum_of_nothing_is_zero(table: Table) -> None:
    totals = table.where(col("i") == 2).select(col("x").sum.alias("sum"), col("x").sum0.alias("sum0"))
    with totals.execute().collect() as rows:
        assert list(rows) == [Row(None, 0.0)]


def test_all_columns_and_more(table: Table) -> None:
    chosen = table.select(with_all_columns(), (col("i") + 1).alias("next"))
    assert chosen.get_schema().get_field_names() == ["i", "s", "x", "next"]


def test_an_expression_is_no_condition_of_python() -> None:
    with pytest.raises(TypeError, match=r"Write &, \| and ~"):
        bool(col("a") == 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda table: table.select("i"), r"select takes expressions, not 'i': write col\('i'\)"),
        (lambda table: table.select(col("j")), "Column 'j' not found"),
        (lambda table: table.select(col("i"), col("i")), "Ambiguous column name: i"),
        (lambda table: table.select(call("NOPE", col("i"))), "No match found for function signature NOPE"),
        (lambda table: table.where(col("i")), "must be a condition"),
        (lambda table: table.alias("a", "b", "c", "d"), "more fields than we actually have"),
        (lambda table: table.drop_columns(col("j")), r"Cannot resolve field \[j\]"),
        (lambda table: table.rename_columns(col("i")), "columns with an alias"),
        (lambda table: table.select(with_columns(range_("x", "i"))), "ends before it begins"),
        (lambda table: table.select(with_columns(range_(2, 9))), "There is no column 9"),
        (lambda table: table.join(table), "Ambiguous column name: i"),
        (lambda table: table.union_all(table.select(col("s"), col("i"), col("x"))), "Type mismatch in column 1"),
        (lambda table: table.group_by(col("s")).select(col("i")), "is not being grouped"),
        (lambda table: table.select(col("i").distinct), "needs an aggregate function"),
        (lambda table: table.select(col("i").days), "Invalid constant for day-time interval"),
        (lambda table: table.select(lit([1])), "The data type must be specified explicitly"),
        (lambda table: table.fetch(2).fetch(1), "FETCH is already defined"),
        (lambda table: table.fetch(2).offset(1), "OFFSET should be called before FETCH"),
        (lambda table: table.fetch(-1), "not negative"),
        (lambda table: table.order_by(col("i")).execute(), "Sort on a non-time-attribute field"),
        (lambda table: table.window(Tumble.over(lit(1).day).on(col("i"))), "a window with an alias"),
        (
            lambda table: table.window(Tumble.over(lit(1).day).on(col("i")).alias("w")).group_by(col("s")),
            "exactly one window alias",
        ),
        (
            lambda table: (
                table.window(Tumble.over(row_interval(3)).on(col("i")).alias("w"))
                .group_by(col("w"))
                .select(col("i").sum)
            ),
            "Windows of a number of rows are not supported",
        ),
        (lambda table: table.over_window(Over.order_by(col("i"))), "windows with an alias"),
        (lambda table: table.select(col("i").sum.over(col("w"))), "Window 'w' not found"),
    ],
)
def test_what_is_refused(table: Table, build: Callable[[Table], object], message: str) -> None:
    with pytest.raises((ValidationError, TypeError), match=message):
        build(table)


def test_tables_of_two_environments(table: Table) -> None:
    from firesteel.table import EnvironmentSettings

    other = TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).from_elements([(1,)], ["k"])
    with pytest.raises(ValidationError, match="same TableEnvironment"):
        table.join(other, col("i") == col("k"))


def test_columns_are_attributes(table: Table) -> None:
    assert str(table.i + 1) == "plus(i, 1)"
    with pytest.raises(AttributeError, match="no column named 'zz'"):
        _ = table.zz


def test_text_of_expressions() -> None:
    window = col("a").sum.over(col("w"))
    assert str((col("a") > 1) & (col("b") == "x")) == "and(greaterThan(a, 1), equals(b, 'x'))"
    assert str(col("a").sum.distinct.alias("s")) == "as(sum(distinct a), 's')"
    assert str(col("a").desc) == "desc(a)"
    assert str(window).startswith("over(sum(a)")
