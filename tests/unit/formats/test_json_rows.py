"""JSON as rows. The tables are what Flink 2.3 does, taken from running it; where we differ, it says so."""

# ruff: noqa: DTZ001 - timestamps without a zone are meant
from __future__ import annotations

import datetime as dt
import json
import math
import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.time import Instant
from firesteel.common.typeinfo import ExternalTypeInfo
from firesteel.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from firesteel.types.codec import SchemaMismatchError

pytestmark = pytest.mark.usefixtures("library")


def named(*types):
    return Types.ROW_NAMED(list("abcde"[: len(types)]), list(types))


def reader(*types, fail=False, ignore=False):
    builder = JsonRowDeserializationSchema.builder().type_info(named(*types))
    if fail:
        builder.fail_on_missing_field()
    if ignore:
        builder.ignore_parse_errors()
    return builder.build()


def writer(*types):
    return JsonRowSerializationSchema.builder().with_type_info(named(*types)).build()


def read(type_info, text):
    return reader(type_info).deserialize(f'{{"a":{text}}}'.encode()).a


ERROR = object()

FLINK = {
    Types.INT: {
        "1": 1, "-3": -3, "1e3": 1000, '"7"': 7, '" 8 "': 8, "null": None, "2147483647": 2147483647,
        "true": ERROR, '"x"': ERROR, '""': ERROR, "3000000000": ERROR, "99999999999999999999": ERROR, "[1]": ERROR,
        '{"x":1}': ERROR, '"NaN"': ERROR, '"1_0"': ERROR,
    },
    Types.LONG: {"3000000000": 3000000000, "9223372036854775807": 2**63 - 1, "9223372036854775808": ERROR,
                 "99999999999999999999": ERROR, "12345678901234567890.5": ERROR, '"-5"': -5},
    Types.SHORT: {"1": 1, "40000": ERROR, "-32768": -32768, '"7"': 7, "1.5": ERROR},
    Types.BYTE: {"127": 127, "128": ERROR},
    Types.DOUBLE: {
        "1": 1.0, "1.5": 1.5, "1e3": 1000.0, '" 8 "': 8.0, "99999999999999999999": 1e20, "null": None,
        '"Infinity"': math.inf, "true": ERROR, '"x"': ERROR, '""': ERROR, '"1_0"': ERROR, "[1]": ERROR,
    },
    Types.FLOAT: {"0.5": 0.5, "3": 3.0, '"x"': ERROR},
    Types.BOOLEAN: {"true": True, "false": False, '"TRUE"': True, '" false "': False, "null": None},
    Types.STRING: {
        '"x"': "x", '""': "", "1": "1", "1.5": "1.5", "true": "true", "false": "false", "null": None, "[1]": "[1]",
        '{"x": [1, 2.5, null]}': '{"x":[1,2.5,null]}', '"\\u00e9\\n"': "é\n",
        "18446744073709551617": "18446744073709551617",
        "-12345678901234567890123": "-12345678901234567890123", "0": "0", "9007199254740993": "9007199254740993",
    },
    Types.BIG_INT: {"99999999999999999999": 99999999999999999999, '"7"': 7, "1.5": ERROR, '""': ERROR, "true": ERROR},
    Types.BIG_DEC: {
        "1": Decimal(1), "12345678901234567890.123456789": Decimal("12345678901234567890.123456789"),
        "99999999999999999999": Decimal(99999999999999999999), '"1.5"': Decimal("1.5"), '"NaN"': ERROR, '""': ERROR,
        "true": ERROR, "[1]": ERROR,
    },
    Types.SQL_DATE: {'"2020-01-02"': dt.date(2020, 1, 2), "5": ERROR, '"20200102"': ERROR, '"2020-02-30"': ERROR,
                     '"2020-01-02T00:00:00"': ERROR},
    Types.SQL_TIME: {'"12:00:01Z"': dt.time(12, 0, 1), '"12:00:01.000Z"': dt.time(12, 0, 1), '"12:00:01+01"': ERROR,
                     '"12:00Z"': ERROR, '"25:00:00Z"': ERROR},
    Types.SQL_TIMESTAMP: {
        '"2020-01-02T12:00:01Z"': dt.datetime(2020, 1, 2, 12, 0, 1),
        '"2020-01-02T12:00:01.123Z"': dt.datetime(2020, 1, 2, 12, 0, 1, 123000),
        '"2020-01-02T12:00:01+02"': ERROR, "1": ERROR,
    },
    Types.INSTANT: {'"2020-01-02T12:00:01.123456789Z"': Instant(1577966401, 123456789), "5": ERROR},
    Types.CHAR: {'"x"': "x", '"xy"': ERROR},
    lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()): {'"aGk="': b"hi", '"aGk"': ERROR, '"a!"': ERROR, "null": None},
    lambda: named(Types.INT(), Types.STRING()): {
        '{"a":1,"b":"x"}': Row(a=1, b="x"), '{"b":"x"}': Row(a=None, b="x"), "5": ERROR, "[1,2]": ERROR, "null": None,
    },
    lambda: Types.OBJECT_ARRAY(Types.INT()): {"[1,2,null]": [1, 2, None], "5": ERROR, '[1,"x"]': ERROR, "[]": []},
    lambda: Types.BASIC_ARRAY(Types.STRING()): {'["1",2,null]': ["1", "2", None], "{}": ERROR},
    lambda: Types.PRIMITIVE_ARRAY(Types.INT()): {"[1,2]": [1, 2]},
    lambda: Types.LIST(Types.INT()): {"[1,2]": [1, 2], "5": ERROR},
    lambda: Types.MAP(Types.STRING(), Types.INT()): {
        '{"x":1,"y":null}': {"x": 1, "y": None}, '{"x":"q"}': ERROR, "{}": {}, "null": None,
    },
    lambda: Types.MAP(Types.INT(), Types.INT()): {'{"1":1}': {1: 1}, '{"q":1}': ERROR},
}  # fmt: skip

OURS = {
    # Flink reads the first as 1, the others as false, an empty map, null
    Types.INT: {"1.5": ERROR},
    Types.BOOLEAN: {"1": ERROR, '"x"': ERROR, "[1]": ERROR, '""': ERROR},
    lambda: Types.MAP(Types.STRING(), Types.INT()): {"5": ERROR, "[1]": ERROR},
    lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()): {"5": ERROR},
    lambda: Types.PRIMITIVE_ARRAY(Types.INT()): {"[1,null]": ERROR},
    # Flink reads a double and writes it: 2.5, 100.0, 1.0E-7, 1.2345678901234568E16
    Types.STRING: {
        "2.50": "2.50", "1e2": "1e2", "0.0000001": "0.0000001", "-0.0": "-0.0", "1E+05": "1E+05",
        "12345678901234567.25": "12345678901234567.25", "100000000000000000000.5": "100000000000000000000.5",
        '{"x": [1, 2.50, "2.50", true], "é": {}}': '{"x":[1,2.50,"2.50",true],"é":{}}',
        "[12345678901234567890123]": "[12345678901234567890123]",
    },
    # Flink refuses these
    Types.SHORT: {"1e3": 1000},
    Types.SQL_TIME: {'"12:00:01"': dt.time(12, 0, 1), '"12:00:01.5Z"': dt.time(12, 0, 1, 500000)},
    Types.SQL_TIMESTAMP: {'"2020-01-02T12:00:01"': dt.datetime(2020, 1, 2, 12, 0, 1),
                          '"2020-01-02T12:00:01+00:00"': dt.datetime(2020, 1, 2, 12, 0, 1)},
    lambda: Types.LIST(Types.INT()): {'["x"]': ERROR},
    # Flink keeps nanoseconds, which Python's datetime has not
    lambda: Types.SQL_TIMESTAMP(): {'"2020-01-02T12:00:01.123456789Z"': dt.datetime(2020, 1, 2, 12, 0, 1, 123456)},
}  # fmt: skip


@pytest.mark.parametrize("table", [FLINK, OURS], ids=["as Flink", "otherwise"])
def test_each_type_reads_what_flink_reads(table):
    for make_type, row in table.items():
        for text, value in row.items():
            if value is ERROR:
                check_refused(make_type(), text)
            else:
                got = read(make_type(), text)
                assert (got, type(got)) == (value, type(value)), (make_type(), text)


def check_refused(type_info, text):
    with pytest.raises(SchemaMismatchError) as raised:
        pytest.fail(f"{type_info} read {text} as {read(type_info, text)!r}")
    assert raised.value.field.startswith("a")
    ignoring = reader(type_info, ignore=True).deserialize(f'{{"a":{text}}}'.encode())
    assert ignoring.a is None or None in ignoring.a or None in ignoring.a.values() or ignoring.a == {}


def test_nan_is_read_from_a_string():
    assert math.isnan(read(Types.DOUBLE(), '"NaN"'))


MESSAGES = [
    (b'{"a":1,"b":"x"}', Row(a=1, b="x")),
    (b' {"a":1}\r\n', Row(a=1, b=None)),
    (b"null", None),
    (b'{"a":1,"a":2}', Row(a=2, b=None)),
    (b'{"A":1}', Row(a=None, b=None)),
    (b'\xef\xbb\xbf{"a":1}', Row(a=1, b=None)),
    (b'{"b":"\\u0000"}', Row(a=None, b="\0")),
    (b"", ERROR),
    (b"[]", ERROR),
    (b"5", ERROR),
    (b'"x"', ERROR),
    (b'{"a":1', ERROR),
    (b'{"a":NaN}', ERROR),
    (b'{"b":"\xff"}', ERROR),
    (b'{"b":"a\tb"}', ERROR),
    (b'{"a":01}', ERROR),
    (b'{"a":+1}', ERROR),
    (b'{"a":1,}', ERROR),
    (b'{"a":1e400}', ERROR),
    (b'{"a":1}x', ERROR),  # Flink reads {"a":1} and forgets the rest
    (b'{"a":1} {"a":2}', ERROR),
    (b'{"b":"\xed\xa0\x80"}', ERROR),  # Flink lets lone surrogates in
    (b'{"b":"\\ud800"}', ERROR),
]


def test_messages_as_a_whole():
    schema = reader(Types.INT(), Types.STRING())
    for message, row in MESSAGES:
        if row is ERROR:
            with pytest.raises(RecordSerializationError):
                pytest.fail(f"{message} was read as {schema.deserialize(message)}")
            with pytest.raises(RecordSerializationError):
                schema.deserialize_batch([b'{"a":1}', message])
            assert reader(Types.INT(), Types.STRING(), ignore=True).deserialize_batch([message]) == [None]
        else:
            assert schema.deserialize(message) == row
            assert schema.deserialize_batch([message, b"null", bytearray(message)]) == [row, None, row]


def test_a_message_without_bytes_is_skipped():
    assert reader(Types.INT()).deserialize_batch([None, b'{"a":1}']) == [None, Row(a=1)]


def test_missing_fields():
    assert reader(Types.INT(), Types.INT()).deserialize(b'{"b":1}') == Row(a=None, b=1)
    strict = reader(Types.INT(), Types.INT(), fail=True)
    assert strict.deserialize(b'{"a":null,"b":1}') == Row(a=None, b=1)
    with pytest.raises(SchemaMismatchError, match="Field 'b': expected a value, got an object without it"):
        strict.deserialize(b'{"a":1}')


def test_ignored_errors_become_none_where_they_are():
    schema = reader(Types.INT(), named(Types.INT()), ignore=True)

    assert schema.deserialize(b'{"a":"x"}') == Row(a=None, b=None)
    assert schema.deserialize(b'{"a":1,"b":{"a":"q"}}') == Row(a=1, b=Row(a=None))
    assert schema.deserialize(b'{"a":1,"b":5}') == Row(a=1, b=None)
    assert schema.deserialize_batch([b"nonsense", b'{"a":1}', b"[]"]) == [None, Row(a=1, b=None), None]


def test_a_mismatch_says_which_field_what_was_expected_and_what_came():
    schema = reader(Types.INT(), named(Types.STRING(), Types.OBJECT_ARRAY(named(Types.LONG()))))
    with pytest.raises(SchemaMismatchError) as raised:
        schema.deserialize_batch([b'{"a":1,"b":{"a":"x","b":[{"a":1},{"a":"no"}]}}'])
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.field == "b.b[].a"
    assert str(error) == "Field 'b.b[].a': expected an integer of 64 bits, got str 'no'."


def test_exact_numbers_beside_others():
    schema = reader(Types.BIG_DEC(), Types.DOUBLE(), Types.STRING())
    row = schema.deserialize(b'{"a":0.10,"b":0.25,"c":1.5}')
    assert [repr(value) for value in row] == ["Decimal('0.10')", "0.25", "'1.5'"]


def test_a_row_of_positions_is_also_read_from_an_array():
    pair = Types.ROW([Types.INT(), Types.STRING()])
    assert list(read(pair, '[1,"x"]')) == [1, "x"]
    assert list(read(pair, '{"f0":1,"f1":"x"}')) == [1, "x"]


def test_rows_without_fields_and_with_many():
    empty = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED([], [])).build()
    assert [list(row) for row in empty.deserialize_batch([b'{"a":1}', b"{}"])] == [[], []]
    names = [f"field '{i}' \"{{}}\\" for i in range(300)]
    wide = Types.ROW_NAMED(names, [Types.INT()] * 300)
    row = Row(*range(300))
    row.set_field_names(names)
    message = JsonRowSerializationSchema.builder().with_type_info(wide).build().serialize(row)
    assert json.loads(message) == dict(zip(names, range(300), strict=True))
    assert JsonRowDeserializationSchema.builder().type_info(wide).build().deserialize(message) == row


WRITTEN = [
    ([Types.STRING()] * 3, Row("x", 'é\n"/\u2028', None), '{"a":"x","b":"é\\n\\"/\u2028","c":null}'),
    ([Types.INT(), Types.DOUBLE(), Types.BOOLEAN()], Row(1, 1.5, True), '{"a":1,"b":1.5,"c":true}'),
    ([Types.INT(), Types.DOUBLE(), Types.BOOLEAN()], Row(1, math.nan, None), '{"a":1,"b":"NaN","c":null}'),
    ([Types.DOUBLE(), Types.DOUBLE()], Row(math.inf, -math.inf), '{"a":"Infinity","b":"-Infinity"}'),
    ([Types.DOUBLE()], Row(3), '{"a":3.0}'),
    (
        [Types.BIG_DEC(), Types.BIG_INT()],
        Row(Decimal("1.10"), 99999999999999999999),
        '{"a":1.10,"b":99999999999999999999}',
    ),
    (
        [Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()],
        Row(dt.date(2020, 1, 2), dt.time(12, 0, 1), dt.datetime(2020, 1, 2, 12, 0, 1, 500000)),
        '{"a":"2020-01-02","b":"12:00:01Z","c":"2020-01-02T12:00:01.5Z"}',
    ),
    (
        [Types.SQL_TIMESTAMP()],
        Row(dt.datetime(2020, 1, 2, 14, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        '{"a":"2020-01-02T12:00:00Z"}',
    ),
    (
        [Types.INT(), Types.OBJECT_ARRAY(Types.STRING()), Types.MAP(Types.STRING(), Types.INT())],
        Row(1, ["a", None], {"x": 1}),
        '{"a":1,"b":["a",null],"c":{"x":1}}',
    ),
    (
        [Types.INT(), named(Types.INT(), Types.STRING()), Types.PRIMITIVE_ARRAY(Types.BYTE())],
        Row(1, Row(2, "q"), b"hi"),
        '{"a":1,"b":{"a":2,"b":"q"},"c":"aGk="}',
    ),
    ([Types.MAP(Types.INT(), Types.BOOLEAN())], Row({1: True}), '{"a":{"1":true}}'),
    ([Types.INSTANT()], Row(Instant(1577966401, 5)), '{"a":"2020-01-02T12:00:01.000000005Z"}'),
]


def test_rows_are_written_as_flink_writes_them():
    for types, record, message in WRITTEN:
        schema = writer(*types)
        assert schema.serialize(record) == message.encode()
        named_record = Row(*record)
        named_record.set_field_names(["a", "b", "c"][: len(record)])
        as_dict = dict(zip("abc", record, strict=False))
        assert schema.serialize_batch([tuple(record), list(record), named_record, as_dict]) == [message.encode()] * 4


MISFITS = [
    (Types.INT(), "x", "an integer of 32 bits"),
    (Types.INT(), 1 << 40, "an integer of 32 bits"),
    (Types.INT(), True, "an integer of 32 bits"),
    (Types.INT(), 1.5, "an integer of 32 bits"),
    (Types.STRING(), 5, "a string"),
    (Types.DOUBLE(), "1", "a number"),
    (Types.BOOLEAN(), 1, "a boolean"),
    (Types.BIG_DEC(), 1.5, "a decimal"),
    (Types.SQL_DATE(), dt.datetime(2020, 1, 1), "a date like 2020-01-31"),
    (Types.SQL_TIMESTAMP(), "2020", "a timestamp in UTC like 2020-01-31T12:30:00Z"),
    (Types.OBJECT_ARRAY(Types.INT()), 5, "an array"),
    (Types.OBJECT_ARRAY(Types.INT()), "ab", "an array"),
    (Types.MAP(Types.STRING(), Types.INT()), [1], "a map"),
]


def test_a_record_that_does_not_fit_is_not_written():
    for type_info, value, expected in MISFITS:
        schema = writer(Types.STRING(), type_info)
        with pytest.raises(SchemaMismatchError) as raised:
            schema.serialize_batch([Row(a="x", b=None), Row(a="x", b=value)])
        assert (raised.value.field, raised.value.expected) == ("b", expected)
        assert repr(value) in str(raised.value)


def test_records_that_are_no_rows_or_have_other_fields():
    schema = writer(Types.STRING(), Types.INT())
    for record in (5, None, Row("x"), ("x", 1, 2), Row(a="x", z=1)):
        with pytest.raises(SchemaMismatchError):
            schema.serialize(record)
    assert schema.serialize(Row(b=1, a="x")) == b'{"a":"x","b":1}'
    with pytest.raises(RecordSerializationError, match="cannot be encoded"):
        schema.serialize_batch([("\ud800", 1)])


def test_builders_refuse():
    with pytest.raises(InvalidProgramError, match="needs the type of a row"):
        JsonRowDeserializationSchema.builder().type_info(Types.INT())
    with pytest.raises(InvalidProgramError, match="no type"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(InvalidProgramError, match="no type"):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(InvalidProgramError, match="cannot both"):
        reader(Types.INT(), fail=True, ignore=True)
    for make in (reader, writer):
        with pytest.raises(InvalidProgramError, match="field 'a'"):
            make(Types.TUPLE([Types.INT()]))


def test_schemas_are_pickled_without_what_they_compiled():
    source, sink = reader(Types.INT()), writer(Types.INT())
    for schema in (source, sink):
        schema.open()
        assert b"<firesteel codec" not in pickle.dumps(schema)
    source, sink = pickle.loads(pickle.dumps((source, sink)))
    assert source.deserialize(sink.serialize(Row(a=1))) == Row(a=1)
    assert source.get_produced_type() == named(Types.INT())


TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = [
    (Types.STRING(), TEXT),
    (Types.BOOLEAN(), st.booleans()),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BIG_INT(), st.integers()),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates(min_value=dt.date(1000, 1, 1))),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes(min_value=dt.datetime(1000, 1, 1))),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary()),
    (Types.INSTANT(), st.builds(Instant, st.integers(0, 2**34), st.integers(0, 10**9 - 1))),
]


@st.composite
def types_and_values(draw, depth=2):
    kind = draw(st.sampled_from(["scalar", "scalar", "scalar", "array", "map", "row"] if depth else ["scalar"]))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "row":
        parts = draw(st.lists(types_and_values(depth=depth - 1), min_size=1, max_size=3))
        names = [f"n{i}" for i in range(len(parts))]
        values = st.tuples(*[st.none() | part for _, part in parts])
        make = lambda fields: Row(**dict(zip(names, fields, strict=True)))
        return Types.ROW_NAMED(names, [part for part, _ in parts]), values.map(make)
    part, values = draw(types_and_values(depth=depth - 1))
    if kind == "array":
        return Types.OBJECT_ARRAY(part), st.lists(st.none() | values, max_size=4)
    return Types.MAP(Types.STRING(), part), st.dictionaries(TEXT, st.none() | values, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_written_can_be_read_again(data):
    parts = data.draw(st.lists(types_and_values(), min_size=1, max_size=3))
    row_type = named(*[part for part, _ in parts])
    fields = st.tuples(*[st.none() | values for _, values in parts])
    rows = [Row(**dict(zip("abc", values, strict=False))) for values in data.draw(st.lists(fields, max_size=3))]
    sink = JsonRowSerializationSchema.builder().with_type_info(row_type).build()
    source = JsonRowDeserializationSchema.builder().type_info(row_type).fail_on_missing_field().build()

    messages = sink.serialize_batch(rows)

    assert messages == [sink.serialize(row) for row in rows]
    assert source.deserialize_batch(messages) == rows == [source.deserialize(message) for message in messages]
    for message in messages:
        json.loads(message)


@pytest.mark.parametrize("other", [Types.INT(), Types.BIG_DEC(), Types.PICKLED_BYTE_ARRAY()], ids=str)
def test_numbers_in_strings_keep_their_digits_whatever_the_other_fields_are(other):
    source = reader(Types.STRING(), other, Types.MAP(Types.STRING(), Types.STRING()), Types.LIST(Types.STRING()))
    assert pickle.loads(pickle.dumps(source)) is not None
    texts = ["1", "12345678901234567890123", "12345678901234567890124", "1.10", "1e2", "12345678901234567.25"]
    messages = [f'{{"a":{n},"b":7,"c":{{"x":{n}}},"d":["y",{n}]}}'.encode() for n in texts]
    rows = source.deserialize_batch(messages)
    assert [row.a for row in rows] == [row.c["x"] for row in rows] == [row.d[1] for row in rows] == texts
    assert rows == [source.deserialize(message) for message in messages]
    assert pickle.loads(pickle.dumps(source)).deserialize(messages[1]) == rows[1]


@pytest.mark.parametrize("others", [(), (Types.BIG_DEC(),)], ids=["floats", "exact"])
def test_a_field_without_type_does_not_depend_on_a_number_in_a_string(others):
    source = reader(Types.PICKLED_BYTE_ARRAY(), Types.STRING(), Types.DOUBLE(), Types.LONG(), *others)
    rest = '"b":{},"c":1.5,"d":1e3,"e":2.50}'
    values = ["1.25", '[1.5, {"x": 2.5}]', "12345678901234567890123", "18446744073709551615", "-0.0"]
    for value in values:
        plain, odd = [source.deserialize((f'{{"a":{value},' + rest).replace("{}", b).encode()) for b in ('"x"', "1.10")]
        assert repr(plain.a) == repr(odd.a)
        assert [type(field) for field in plain] == [type(field) for field in odd]
        assert (odd.b, odd.c, odd.d) == ("1.10", 1.5, 1000)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_comes_is_read_or_refused_the_same_in_batches_and_one_by_one(data):
    json_values = st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    )
    part, _ = data.draw(types_and_values())
    source = reader(part, Types.STRING())
    ignoring = reader(part, Types.STRING(), ignore=True)
    message = json.dumps({"a": data.draw(json_values), "b": data.draw(json_values)}).encode()
    try:
        expected = source.deserialize(message)
    except SchemaMismatchError:
        with pytest.raises(SchemaMismatchError):
            source.deserialize_batch([message])
    else:
        assert source.deserialize_batch([message, message]) == [expected, expected]
        assert ignoring.deserialize(message) == expected
    assert ignoring.deserialize_batch([message]) == [ignoring.deserialize(message)]


@pytest.mark.parametrize("key", [Types.PICKLED_BYTE_ARRAY(), Types.LIST(Types.INT()), Types.ROW([]), Types.TUPLE([])])
def test_keys_of_maps_that_are_no_text_are_refused_when_writing(key):
    row_type = Types.ROW_NAMED(["m"], [Types.MAP(key, Types.INT())])
    with pytest.raises(InvalidProgramError, match=r"JSON cannot hold field 'm\{key\}' of type"):
        JsonRowSerializationSchema.builder().with_type_info(row_type).build()


def test_a_declared_type_of_the_table_api_is_the_type_inside():
    row_type = Types.ROW_NAMED(["r"], [ExternalTypeInfo(Types.ROW_NAMED(["a"], [ExternalTypeInfo(Types.INT())]))])
    written = JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row(r=Row(a=1)))
    assert written == b'{"r":{"a":1}}'
    assert JsonRowDeserializationSchema.builder().type_info(row_type).build().deserialize(written) == Row(r=Row(a=1))
