"""The connector ``datagen``: values of all types within their options, and Flink's errors."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from tests.support.table_queries import plan_of, run_query, source_of

FAST = {"connector": "datagen", "rows-per-second": "1000000"}


def rows_of(columns, count=50, parallelism=1, **options):
    named = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    source = source_of(columns, {**FAST, "number-of-rows": str(count), **named})
    return run_query("SELECT * FROM t", {"t": source}, parallelism)


def values_of(type_, count=50, **options):
    return [row[0] for row in rows_of({"a": type_}, count, **{f"fields__a__{key}": v for key, v in options.items()})]


def test_numbers():
    for type_, bits in [(DataTypes.TINYINT(), 8), (DataTypes.SMALLINT(), 16), (DataTypes.INT(), 32)]:
        values = values_of(type_, 300)
        half = 1 << (bits - 1)
        assert min(values) < -half // 2
        assert half // 2 < max(values) < half
    assert set(values_of(DataTypes.BIGINT(), 200, min="-1", max="1")) == {-1, 0, 1}
    assert len(set(values_of(DataTypes.BIGINT()))) == 50
    assert set(values_of(DataTypes.BOOLEAN())) == {True, False}
    assert all(1.5 <= value < 2 for value in values_of(DataTypes.DOUBLE(), min="1.5", max="2"))
    assert all(value >= 0 for value in values_of(DataTypes.FLOAT()))
    decimals = values_of(DataTypes.DECIMAL(4, 2), min="1", max="2")
    assert all(Decimal(1) <= value <= 2 for value in decimals)
    assert len(set(decimals)) > 20
    assert max(values_of(DataTypes.DECIMAL(38, 10))) > 10**20


def test_texts_and_bytes():
    assert all(re.fullmatch("[0-9a-f]{100}", value) for value in values_of(DataTypes.STRING()))
    assert {len(value) for value in values_of(DataTypes.CHAR(5))} == {5}
    assert {len(value) for value in values_of(DataTypes.VARCHAR(9), length="3")} == {3}
    lengths = {len(value) for value in values_of(DataTypes.STRING(), 300, length="9", var_len="true")}
    assert lengths == set(range(1, 10))
    assert {len(value) for value in values_of(DataTypes.BINARY(7))} == {7}
    assert {len(value) for value in values_of(DataTypes.BYTES())} == {100}


def test_times():
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    dates, times = values_of(DataTypes.DATE(), 2), values_of(DataTypes.TIME(), 2)
    assert abs(dates[0] - now.date()) <= timedelta(days=1)
    assert len(set(times)) == 1
    assert all(abs(value - now) < timedelta(minutes=5) for value in values_of(DataTypes.TIMESTAMP(3)))
    past = values_of(DataTypes.TIMESTAMP(3), 50, max_past="10 d")
    assert all(timedelta() <= now + timedelta(minutes=5) - value < timedelta(days=11) for value in past)
    assert max(past) - min(past) > timedelta(days=3)


def test_nested_types():
    columns = {
        "a": DataTypes.ARRAY(DataTypes.INT()),
        "m": DataTypes.MAP(DataTypes.INT(), DataTypes.STRING()),
        "r": DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())]),
    }
    options = {
        "fields__a__length": "2",
        "fields__a__element__min": "1",
        "fields__a__element__max": "3",
        "fields__m__key__min": "1",
        "fields__m__key__max": "2",
        "fields__m__value__length": "4",
        "fields__r__x__min": "7",
        "fields__r__x__max": "7",
        "fields__r__y__length": "2",
    }
    rows = rows_of(columns, **options)
    assert {value for row in rows for value in row[0]} == {1, 2, 3}
    assert {len(row[0]) for row in rows} == {2}
    assert {len(row[1]) for row in rows} == {1, 2}
    assert {len(value) for row in rows for value in row[1].values()} == {4}
    assert {(row[2][0], len(row[2][1])) for row in rows} == {(7, 2)}


def test_nulls():
    values = values_of(DataTypes.INT(), 400, null_rate="0.5")
    assert 120 < sum(value is None for value in values) < 280
    assert None not in values_of(DataTypes.INT(False), 100, null_rate="0.5")


def test_sequences_end_the_table():
    options = {
        "fields.a.kind": "sequence",
        "fields.a.start": "3",
        "fields.a.end": "7",
        "fields.b.kind": "sequence",
        "fields.b.start": "10",
        "fields.b.end": "90",
    }
    source = source_of({"a": DataTypes.INT(), "b": DataTypes.STRING()}, {**FAST, **options})
    assert not source.is_bounded
    rows = run_query("SELECT * FROM t", {"t": source}, parallelism=3)
    assert sorted(map(tuple, rows)) == [(number, str(number + 7)) for number in range(3, 8)]


def test_a_row_does_not_depend_on_the_other_columns_or_the_parallelism():
    columns = {"a": DataTypes.INT(), "b": DataTypes.STRING()}
    source = source_of(columns, {**FAST, "number-of-rows": "100"})
    both = run_query("SELECT * FROM t", {"t": source}, 1)
    assert plan_of("SELECT b FROM t", {"t": source}).row_type.field_names == ("b",)
    assert sorted(row[0] for row in run_query("SELECT b FROM t", {"t": source}, 3)) == sorted(row[1] for row in both)


def test_words():
    values = values_of(DataTypes.STRING(), kind="email")
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+\d+@example\.(com|net|org)", value) for value in values)


@pytest.mark.parametrize(
    ("type_", "options", "message"),
    [
        (DataTypes.INT(), {"kind": "sequence", "start": "1"}, "required property 'fields.a.end' for sequence"),
        (DataTypes.TIMESTAMP(3), {"kind": "sequence", "start": "1", "end": "2"}, r"Unsupported type: TIMESTAMP\(3\)"),
        (DataTypes.INT(), {"kind": "xyz"}, "Unsupported generator kind: xyz"),
        (DataTypes.INT(), {"min": "x"}, "Could not parse value 'x' for key 'fields.a.min'"),
        (DataTypes.INT(), {"min": "5", "max": "4"}, "must not be greater than"),
        (DataTypes.INT(), {"length": "5"}, "Unsupported options:\n\nfields.a.length"),
        (DataTypes.DATE(), {"max-past": "5 d"}, "Unsupported options:\n\nfields.a.max-past"),
        (DataTypes.CHAR(5), {"length": "3"}, "Custom length for fixed-length type"),
        (DataTypes.CHAR(5), {"var-len": "true"}, "Only supports specifying 'fields.#.var-len'"),
        (DataTypes.VARCHAR(5), {"length": "9"}, "should be shorter than '5' defined in the schema"),
    ],
)
def test_wrong_options(type_, options, message):
    with pytest.raises(ValidationError, match=message):
        source_of({"a": type_}, {**FAST, **{f"fields.a.{key}": value for key, value in options.items()}})


def test_unknown_fields():
    with pytest.raises(ValidationError, match=r"Unsupported options:\n\nfields\.b\.min"):
        source_of({"a": DataTypes.INT()}, {**FAST, "fields.b.min": "1"})
