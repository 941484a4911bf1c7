"""What becomes a column of a DataFrame comes back as it was, and of the same class, or is refused."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from firesteel.common import Row
from firesteel.common.time import Instant
from firesteel.spark.state_processor.shapes import LOSSY, Column, fit, infer, merge
from firesteel.spark.state_processor.spark_types import ConversionError
from firesteel.spark.state_processor.value_conversion import from_shape, to_column
from tests.support.state.values import KEYS, VALUES, Color, Order, Pair, same


def through(column: Column, value: Any) -> Any:
    """What PySpark makes of a value on its way to the JVM and back, as far as Python is concerned."""
    stored = to_column(column)(value)
    schema = t.StructType([t.StructField("value", column.type)])
    row = schema.fromInternal(schema.toInternal((stored,)))
    return from_shape(json.loads(json.dumps(column.shape)))(row["value"])


@pytest.mark.parametrize("value", [*VALUES, *KEYS], ids=repr)
def test_every_kind_of_value_comes_back(value: Any) -> None:
    assert same(through(infer(value).without_nulls(), value), value)


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(Color),
    st.builds(Instant, st.integers(-(10**10), 10**11), st.integers(0, 999_999_999)),
)
KEYS_OF_DICTS = st.one_of(st.text(max_size=3), st.integers(), st.uuids(), st.binary(max_size=2))
NAMES = st.sampled_from(["a", "b", "_1", "Größe"])
ANY = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Row(*parts)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda fields: Row(**fields)),
        st.builds(Pair, inner, inner),
        st.builds(Order, inner, st.lists(inner, max_size=2)),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.integers(), st.uuids(), st.binary(max_size=2)), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@given(st.lists(ANY, min_size=1, max_size=4))
def test_values_of_one_state_come_back_from_their_common_column(values: list[Any]) -> None:
    column = merge(map(infer, values)).without_nulls()
    assert column.shape != LOSSY
    for value in values:
        assert same(through(column, value), value), (value, column)


@given(st.lists(ANY, min_size=1, max_size=3), ANY)
def test_a_value_unlike_the_sample_comes_back_or_is_refused(sample: list[Any], later: Any) -> None:
    column = merge(map(infer, sample)).without_nulls()
    try:
        back = through(column, later)
    except ConversionError:
        return
    assert same(back, later), (later, column)


@pytest.mark.parametrize(
    ("given_type", "value"),
    [
        (t.LongType(), 5),
        (t.IntegerType(), 5),
        (t.DecimalType(38, 0), 5),
        (t.DecimalType(38, 0), 2**70),
        (t.StringType(), datetime.time(1, 2)),
        (t.StringType(), uuid.UUID(int=1)),
        (t.TimestampType(), Instant(5, 0)),
        (t.BinaryType(), {1, 2}),
        (t.BinaryType(), b"raw"),
        (t.ArrayType(t.ShortType()), [1, None]),
        (t.StructType([t.StructField("x", t.LongType()), t.StructField("y", t.StringType())]), (1, "a")),
        (t.MapType(t.StringType(), t.IntegerType()), {"a": 1}),
    ],
    ids=repr,
)
def test_a_type_that_fits_is_taken(given_type: t.DataType, value: Any) -> None:
    column = fit(given_type, infer(value))
    assert column.type == given_type
    assert same(through(column, value), value)


@pytest.mark.parametrize(
    ("given_type", "value"),
    [
        (t.DoubleType(), 5),
        (t.LongType(), 0.5),
        (t.FloatType(), 0.1),
        (t.StringType(), 5),
        (t.TimestampType(), Instant(0, 1)),
        (t.DecimalType(38, 18), decimal.Decimal("1E-19")),
        (t.StructType([t.StructField("x", t.LongType())]), Row(y=1)),
    ],
    ids=repr,
)
def test_a_type_that_changes_values_is_lossy(given_type: t.DataType, value: Any) -> None:
    assert fit(given_type, infer(value)).shape == LOSSY


def test_a_type_without_any_value_has_the_shape_that_is_usual_for_it() -> None:
    column = fit(t.MapType(t.StringType(), t.ArrayType(t.LongType())), Column(t.NullType(), "plain"))
    assert same(through(column, {"a": [1]}), {"a": [1]})
