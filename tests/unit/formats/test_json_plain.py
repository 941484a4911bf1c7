"""JSON as what it is in Python, with both libraries."""

# ruff: noqa: DTZ001 - timestamps without a zone are meant
from __future__ import annotations

import datetime as dt
import json
import math
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row
from firesteel.common.errors import RecordSerializationError
from firesteel.common.time import Instant
from firesteel.datastream.formats.json import JsonDeserializationSchema, JsonSerializationSchema
from firesteel.formats.json.library import JsonCodec

pytestmark = pytest.mark.usefixtures("library")


@dataclass
class Point:
    x: int
    y: float


class Color(Enum):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: tuple


def test_the_library_is_the_one_that_is_tested(library):
    assert JsonCodec().library == library
    assert JsonCodec(exact=True).library == "json"


READ = [
    (b'{"a":[1,2.5,null,true,"x"]}', {"a": [1, 2.5, None, True, "x"]}),
    (b' \t\r\n{"a" : 1}\n', {"a": 1}),
    (b'"x"', "x"),
    (b"-0", 0),
    (b"18446744073709551615", 18446744073709551615),
    (b"18446744073709551616", 18446744073709551616.0),
    (b"-9223372036854775808", -9223372036854775808),
    (b"-9223372036854775809", -9223372036854775809.0),
    (b"9" * 300, float("9" * 300)),
    (b"0.1", 0.1),
    (b'{"a":1,"a":2}', {"a": 2}),
    (b'"\\u0000\\ud83d\\ude00"', "\0😀"),
    (b"\xef\xbb\xbf[]", []),
    (b"null", None),
]


def test_reading():
    schema = JsonDeserializationSchema()
    for message, value in READ:
        got = schema.deserialize(message)
        assert (got, type(got)) == (value, type(value))
        assert schema.deserialize_batch([message, bytearray(message)]) == [value, value]


NO_JSON = [
    b"", b"{", b"NaN", b"-Infinity", b"1e400", b"9" * 400, b'"\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b"[1] x",
    b'"a\nb"', b"\x0b1", b"01", b"{'a':1}", b'{"a":1}{"a":1}', b"[" * 100_000,
]  # fmt: skip


def test_what_is_no_json():
    ignoring = JsonDeserializationSchema(ignore_parse_errors=True)
    for message in NO_JSON:
        with pytest.raises(RecordSerializationError, match="not JSON"):
            JsonDeserializationSchema().deserialize_batch([b"1", message])
        assert ignoring.deserialize_batch([b"1", message, b"2"]) == [1, None, 2]


WRITTEN = [
    ({"a": [1, 2.5, None, True, "é\n"]}, '{"a":[1,2.5,null,true,"é\\n"]}'),
    ({"x": math.nan, "y": [math.inf, {"z": -math.inf}]}, '{"x":null,"y":[null,{"z":null}]}'),
    ({"n": 2**70}, '{"n":1180591620717411303424}'),
    ({"n": 2**70, "x": math.nan}, '{"n":1180591620717411303424,"x":null}'),
    ({1: "a", None: "c", 2.5: "d"}, '{"1":"a","null":"c","2.5":"d"}'),
    (Row(name="Alice", inner=Row(1, "x")), '{"name":"Alice","inner":[1,"x"]}'),
    (Row(1, 2), "[1,2]"),
    (Point(1, math.nan), '{"x":1,"y":null}'),
    (Pair(1, (2, 3)), "[1,[2,3]]"),
    (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    (dt.datetime(2020, 1, 2, 3, 4, 5), '"2020-01-02T03:04:05"'),
    (dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), '"2020-01-02T00:00:00+00:00"'),
    ([dt.date(2020, 1, 2), dt.time(3, 4)], '["2020-01-02","03:04:00"]'),
    (Decimal("1.10"), '"1.10"'),
    (UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    (Color.RED, '"red"'),
    (b"hi", '"aGk="'),
    ({1}, "[1]"),
    (Instant(0, 5), '"1970-01-01T00:00:00.000000005Z"'),
]


def test_writing():
    schema = JsonSerializationSchema()
    for value, message in WRITTEN:
        assert schema.serialize(value) == message.encode()
        assert schema.serialize_batch([value, value]) == [message.encode()] * 2


def test_numpy():
    numpy = pytest.importorskip("numpy")
    record = {"n": numpy.int64(5), "x": numpy.float32(0.5), "v": numpy.array([1, 2])}
    assert JsonSerializationSchema().serialize(record) == b'{"n":5,"x":0.5,"v":[1,2]}'


def test_what_cannot_be_written():
    itself: list = []
    itself.append(itself)
    for value in (object(), {"a": object()}, {(1, 2): 3}, "\ud800", itself):
        with pytest.raises(RecordSerializationError, match="cannot be written as JSON"):
            JsonSerializationSchema().serialize_batch([1, value])


def test_schemas_are_pickled():
    schemas = JsonDeserializationSchema(ignore_parse_errors=True), JsonSerializationSchema()
    for schema in schemas:
        schema.open()
    source, sink = pickle.loads(pickle.dumps(schemas))
    assert source.deserialize(sink.serialize({"a": 1})) == {"a": 1}
    assert source.deserialize(b"{") is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_what_is_written_can_be_read_again(value):
    message = JsonSerializationSchema().serialize(value)
    assert JsonDeserializationSchema().deserialize(message) == value
    assert json.loads(message) == value


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=12) | st.text('{}[]":,0123456789.eE+-\\utrnfalse ', max_size=12).map(str.encode))
def test_any_bytes_are_read_or_refused_alike(message):
    pytest.importorskip("orjson")
    outcomes = []
    for name in ("json", None):
        try:
            outcomes.append(repr(JsonCodec(library=name).load(message)))
        except ValueError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]
