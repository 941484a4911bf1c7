from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from statistics import fmean

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.types import Row
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.generators import datagen_fields as fields
from firesteel.connectors.generators.datagen import DataGeneratorSource


def values(field, count=2000, seed=0):
    rows = fields.RowGenerator({"value": field}, seed)
    return [rows.map(index).value for index in range(count)]


def test_rows_have_names_and_are_the_same_for_the_same_seed():
    made = {"id": fields.sequence(10, 5), "who": fields.full_name(), "mail": fields.email(), "key": fields.uuid4()}
    first, again = fields.RowGenerator(made, seed=3), fields.RowGenerator(made, seed=3)
    assert [first.map(index) for index in range(20)] == [again.map(index) for index in range(20)]
    assert first.map(2).get_field_names() == ["id", "who", "mail", "key"]
    assert first.map(2).id == 20
    assert fields.RowGenerator(made, seed=4).map(2).who != first.map(2).who


def test_fields_of_a_row_do_not_depend_on_each_other():
    rows = fields.RowGenerator({"a": fields.integer(0, 9), "b": fields.integer(0, 9)})
    pairs = Counter((rows.map(index).a, rows.map(index).b) for index in range(5000))
    assert len(pairs) == 100


@pytest.mark.parametrize(
    ("field", "check"),
    [
        (fields.integer(3, 5), lambda made: set(made) == {3, 4, 5}),
        (fields.floating(1, 2), lambda made: min(made) >= 1 and max(made) < 2 and abs(fmean(made) - 1.5) < 0.05),
        (fields.normal(10, 2), lambda made: abs(fmean(made) - 10) < 0.2),
        (fields.boolean(0.1), lambda made: 100 < sum(made) < 300),
        (fields.choice("ab", [1, 9]), lambda made: made.count("b") > 5 * made.count("a") > 0),
        (fields.choice(["x"]), lambda made: set(made) == {"x"}),
        (fields.nullable(fields.integer(1, 1), 0.25), lambda made: 400 < made.count(None) < 600),
        (fields.hot_keys(100), lambda made: Counter(made).most_common(1)[0][0] == 0 and max(made) < 100),
        (fields.text(12), lambda made: {len(text) for text in made} == {12} and len(set(made)) == 2000),
        (fields.text(5, 2), lambda made: {len(text) for text in made} == {2, 3, 4, 5}),
        (fields.list_of(fields.integer(1, 2), 3, 1), lambda made: {len(each) for each in made} == {1, 2, 3}),
        (fields.ip_address(), lambda made: all(text.startswith("10.") for text in made)),
        (fields.url(), lambda made: all(text.startswith("https://example.") for text in made)),
        (fields.city(), lambda made: len(set(made)) > 20),
        (fields.country(), lambda made: all(len(text) == 2 for text in made)),
        (fields.sentence(4), lambda made: all(len(text.split()) == 4 for text in made)),
        (fields.uuid4(), lambda made: len(set(made)) == 2000),
    ],
)
def test_a_field(field, check):
    assert check(values(field))


def test_times_go_on_and_may_be_late():
    start = datetime(2025, 1, 1, tzinfo=timezone.utc)
    exact = values(fields.timestamp(start, timedelta(minutes=1)), 3)
    assert exact == [start, start + timedelta(minutes=1), start + timedelta(minutes=2)]
    late = values(fields.timestamp(start, timedelta(0), timedelta(seconds=5)), 500)
    assert start - timedelta(seconds=5) <= min(late) < start - timedelta(seconds=4)
    assert max(late) <= start


def test_rows_within_rows():
    [made] = values(fields.row({"city": fields.city(), "number": fields.integer(7, 7)}), 1)
    assert isinstance(made, Row)
    assert made.number == 7


def test_what_cannot_be():
    with pytest.raises(InvalidProgramError, match="there are no fields"):
        fields.RowGenerator({})
    with pytest.raises(InvalidProgramError, match="the field 'id' is 5, not a generator"):
        fields.RowGenerator({"id": 5})
    with pytest.raises(InvalidProgramError, match="no number from 5 to 4"):
        fields.integer(5, 4)
    with pytest.raises(InvalidProgramError, match="as many weights"):
        fields.choice("ab", [1])
    for weights in ([-1, 2], [0, 0]):
        with pytest.raises(InvalidProgramError, match="not valid weights"):
            fields.choice("ab", weights)
    for field in (fields.boolean, lambda rate: fields.nullable(fields.city(), rate)):
        for rate in (-0.1, 80, float("nan")):
            with pytest.raises(InvalidProgramError, match=f"{rate} is not a probability"):
                field(rate)
    with pytest.raises(InvalidProgramError, match="no length from 3 to 2"):
        fields.list_of(fields.city(), 2, 3)
    with pytest.raises(InvalidProgramError, match="at least one key"):
        fields.hot_keys(0)


def test_as_a_source(in_process_env):
    rows = fields.RowGenerator({"id": fields.sequence(), "city": fields.city()})
    env = in_process_env(2)
    stream = env.from_source(DataGeneratorSource(rows, 100), WatermarkStrategy.no_watermarks(), "rows")
    with stream.map(lambda row: row.id).execute_and_collect() as results:
        assert sorted(results) == list(range(100))
