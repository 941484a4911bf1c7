"""Avro records as rows, read and written by fastavro, and checked against it."""

# ruff: noqa: DTZ001 - timestamps without a zone are meant
from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import pickle
import sys
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.datastream.formats.avro import (
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from firesteel.types.codec import SchemaMismatchError

fastavro = pytest.importorskip("fastavro")


def record(*types, name="R"):
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": part} for i, part in enumerate(types)]}
    )


def logical(kind, logical_type, **more):
    return {"type": kind, "logicalType": logical_type, **more}


def schemas(*types):
    text = record(*types)
    return AvroRowDeserializationSchema(avro_schema_string=text), AvroRowSerializationSchema(avro_schema_string=text)


def row(*values):
    return Row(**{f"f{i}": value for i, value in enumerate(values)})


def fastavro_bytes(text, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(text)), value)
    return stream.getvalue()


INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
KINDS = [
    ("string", Types.STRING(), "é"),
    ("int", Types.INT(), -5),
    ("long", Types.LONG(), 2**62),
    ("float", Types.FLOAT(), 0.5),
    ("double", Types.DOUBLE(), 0.1),
    ("boolean", Types.BOOLEAN(), True),
    ("bytes", Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\0\xff"),
    (["null", "string"], Types.STRING(), None),
    (["int", "null"], Types.INT(), 7),
    (["null", "int", "string"], Types.PICKLED_BYTE_ARRAY(), "x"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, Types.STRING(), "B"),
    ({"type": "fixed", "name": "F", "size": 2}, Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab"),
    ({"type": "array", "items": ["null", "int"]}, Types.OBJECT_ARRAY(Types.INT()), [1, None]),
    ({"type": "map", "values": "long"}, Types.MAP(Types.STRING(), Types.LONG()), {"k": 1}),
    (INNER, Types.ROW_NAMED(["x"], [Types.INT()]), Row(x=1)),
    (["null", INNER], Types.ROW_NAMED(["x"], [Types.INT()]), None),
    ({"type": "array", "items": INNER}, Types.OBJECT_ARRAY(Types.ROW_NAMED(["x"], [Types.INT()])), [Row(x=2)]),
    (logical("int", "date"), Types.SQL_DATE(), dt.date(2020, 1, 2)),
    (logical("int", "time-millis"), Types.SQL_TIME(), dt.time(1, 2, 3, 4000)),
    (logical("long", "time-micros"), Types.SQL_TIME(), dt.time(1, 2, 3, 4)),
    (logical("long", "timestamp-millis"), Types.SQL_TIMESTAMP(), dt.datetime(2020, 7, 2, 3, 4, 5, 6000)),
    (["null", logical("long", "timestamp-micros")], Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 2, 3, 4, 5, 6)),
    (logical("long", "local-timestamp-micros"), Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 2, 3, 4, 5, 6)),
    (logical("bytes", "decimal", precision=6, scale=2), Types.BIG_DEC(), Decimal("-12.50")),
    (logical("fixed", "decimal", precision=6, scale=2, name="D", size=4), Types.BIG_DEC(), Decimal("1.25")),
    (logical("string", "uuid"), Types.STRING(), "00000000-0000-0000-0000-000000000005"),
    ("null", Types.PICKLED_BYTE_ARRAY(), None),
]


def test_each_type_has_flinks_type_and_makes_the_way_there_and_back():
    for avro_type, type_info, value in KINDS:
        source, sink = schemas(avro_type, "int")
        assert source.get_produced_type().get_field_types() == [type_info, Types.INT()], avro_type
        message = sink.serialize(row(value, 5))
        assert source.deserialize(message) == row(value, 5)
        as_others = [(value, 5), {"f0": value, "f1": 5}, row(value, 5)]
        assert sink.serialize_batch(as_others) == [message] * 3
        assert source.deserialize_batch([message, message]) == [row(value, 5)] * 2
    assert source.deserialize_batch([None, message]) == [None, row(None, 5)]


def test_the_bytes_are_avros_own():
    text = record("string", logical("long", "timestamp-millis"), ["null", INNER])
    at = dt.datetime(2020, 1, 2, 3, 4, 5)
    sink = AvroRowSerializationSchema(avro_schema_string=text)
    expected = fastavro_bytes(text, {"f0": "x", "f1": at.replace(tzinfo=dt.timezone.utc), "f2": {"x": 1}})

    assert sink.serialize(row("x", at, Row(x=1))) == expected
    east = dt.timezone(dt.timedelta(hours=5))
    assert sink.serialize(row("x", at.replace(tzinfo=dt.timezone.utc).astimezone(east), {"x": 1})) == expected


def test_a_named_type_is_used_again():
    source, sink = schemas(INNER, "Inner", {"type": "array", "items": "Inner"})
    value = row(Row(x=1), Row(x=2), [Row(x=3)])
    assert source.deserialize(sink.serialize(value)) == value


def test_records_that_do_not_fit_are_not_written():
    for avro_type, value, expected in [
        ("int", "x", "an integer of 32 bits"),
        ("int", 1 << 31, "an integer of 32 bits"),
        ("int", 1.5, "an integer of 32 bits"),
        ("int", True, "an integer of 32 bits"),
        ("int", None, "an integer of 32 bits"),
        ("string", 5, "a str"),
        ("double", "1", "a number"),
        ("boolean", 1, "a bool"),
        ("bytes", "x", "bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "C", "one of A, B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", "2 bytes"),
        ({"type": "array", "items": "int"}, 5, "a list"),
        ({"type": "array", "items": "int"}, "ab", "a list"),
        ({"type": "map", "values": "int"}, {1: 2}, "a dict with strings as keys"),
        (logical("int", "date"), dt.datetime(2020, 1, 2), "a datetime.date"),
        (logical("long", "timestamp-millis"), 5, "a datetime.datetime"),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            Decimal("1.234"),
            "a decimal of up to 4 digits, 2 of them behind the point",
        ),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            Decimal(100),
            "a decimal of up to 4 digits, 2 of them behind the point",
        ),
        (["null", "string"], 5, "a str"),
    ]:
        _, sink = schemas("int", avro_type)
        with pytest.raises(SchemaMismatchError) as raised:
            sink.serialize_batch([row(1, value)])
        assert (raised.value.field, raised.value.expected) == ("f1", expected)
        assert value is None or repr(value) in str(raised.value)
    _, sink = schemas(INNER, ["int", "string"])
    with pytest.raises(SchemaMismatchError, match=r"Field 'f0\.x': expected an integer of 32 bits, got str 'q'"):
        sink.serialize(row(Row(x="q"), 5))
    for wrong in (5, None, Row(x=1), (1, 2, 3)):
        with pytest.raises(SchemaMismatchError):
            sink.serialize(wrong)
    with pytest.raises(RecordSerializationError, match="cannot be written as R"):
        sink.serialize_batch([row(Row(x=1), 2.5)])  # none of the union


def test_messages_that_are_no_record_of_the_schema():
    source, sink = schemas("int", "string")
    good = sink.serialize(row(1, "abc"))
    for message, problem in [
        (b"", "EOFError"),
        (good[:-1], "EOFError"),
        (good + b"x", "1 bytes are left over"),
        (b"\x02\x02\xff", "UnicodeDecodeError"),
        (b"\x80", "not an Avro record of R"),
        (b"\0\0\0\0\x07" + good, "schema registry"),
    ]:
        with pytest.raises(RecordSerializationError, match=problem):
            source.deserialize_batch([good, message])


def test_records_of_another_version_are_resolved():
    old_fields = [
        {"name": "id", "type": "int"},
        {"name": "gone", "type": "string"},
        {"name": "nom", "type": "string"},
    ]
    new_fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string", "aliases": ["nom"]},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "n", "type": "int", "default": 7},
    ]
    old = json.dumps({"type": "record", "name": "R", "fields": old_fields})
    new = json.dumps({"type": "record", "name": "R", "fields": new_fields})
    message = fastavro_bytes(old, {"id": 5, "gone": "x", "nom": "Alice"})
    source = AvroRowDeserializationSchema(avro_schema_string=new, writer_schema_string=old)
    source = pickle.loads(pickle.dumps(source))

    assert source.deserialize(message) == Row(id=5, name="Alice", city=None, n=7)

    bad = AvroRowDeserializationSchema(avro_schema_string=record("int"), writer_schema_string=record("string"))
    with pytest.raises(RecordSerializationError, match="SchemaResolutionError"):
        bad.deserialize(fastavro_bytes(record("string"), {"f0": "x"}))


def test_schemas_and_their_types(tmp_path):
    path = tmp_path / "r.avsc"
    path.write_text(record("int"))
    schema = AvroSchema.parse_file(str(path))
    assert schema == AvroSchema.parse_string(record("int")) == pickle.loads(pickle.dumps(schema))
    assert json.loads(str(schema)) == json.loads(record("int"))
    assert schema.name == "R"
    assert GenericRecordAvroTypeInfo(schema) == GenericRecordAvroTypeInfo(schema)
    assert repr(GenericRecordAvroTypeInfo(schema)) == "GenericRecord<R>"
    for call, problem in [
        (lambda: AvroSchema.parse_string("{"), "not JSON"),
        (lambda: AvroSchema.parse_string('{"type":"recor"}'), "Not an Avro schema"),
        (lambda: AvroSchema.parse_string('{"type":"record"}'), "Not an Avro schema"),
        (lambda: AvroSchema.parse_file(str(tmp_path / "none")), "cannot be read"),
        (lambda: AvroRowDeserializationSchema(), "no schema"),
        (lambda: AvroRowSerializationSchema("com.example.User"), "Java class com.example.User"),
        (lambda: AvroRowDeserializationSchema(avro_schema_string='"int"'), "not a record"),
        (lambda: AvroRowDeserializationSchema(avro_schema_string=record(["null", "R"])), "holds itself"),
    ]:
        with pytest.raises(InvalidProgramError, match=problem):
            call()


def test_without_fastavro_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(InvalidProgramError, match=r"firesteel\[avro\]"):
        AvroSchema.parse_string(record("int"))


SERIAL = itertools.count()
SCALARS = [
    ("string", st.text(st.characters(codec="utf-8"))),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False)),
    ("float", st.floats(allow_nan=False, width=32)),
    ("boolean", st.booleans()),
    ("bytes", st.binary()),
    (logical("int", "date"), st.dates()),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-micros"), st.datetimes()),
    (logical("bytes", "decimal", precision=9, scale=3), st.decimals(-99999, 99999, places=3)),
    (logical("string", "uuid"), st.integers(0, 2**128 - 1).map(lambda n: str(UUID(int=n)))),
]


@st.composite
def types_and_values(draw, depth=2):
    kind = draw(st.sampled_from(["scalar", "scalar", "array", "map", "row", "nullable"] if depth else ["scalar"]))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "row":
        parts = draw(st.lists(types_and_values(depth=depth - 1), min_size=1, max_size=3))
        definition = json.loads(record(*[part for part, _ in parts], name=f"N{next(SERIAL)}"))
        return definition, st.tuples(*[values for _, values in parts]).map(lambda values: row(*values))
    part, values = draw(types_and_values(depth=depth - 1))
    if kind == "nullable":
        return (part if isinstance(part, list) else ["null", part]), st.none() | values
    if kind == "array":
        return {"type": "array", "items": part}, st.lists(values, max_size=3)
    return {"type": "map", "values": part}, st.dictionaries(st.text("abc"), values, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_written_can_be_read_again(data):
    parts = data.draw(st.lists(types_and_values(), min_size=1, max_size=3))
    source, sink = schemas(*[part for part, _ in parts])
    fields = st.tuples(*[values for _, values in parts])
    rows = [row(*values) for values in data.draw(st.lists(fields, max_size=3))]

    messages = sink.serialize_batch(rows)

    assert messages == [sink.serialize(record) for record in rows]
    assert source.deserialize_batch(messages) == rows == [source.deserialize(message) for message in messages]
