"""The row type of a JSON schema."""

from __future__ import annotations

import pytest

from firesteel.common import Row, Types
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.formats.json import JsonRowDeserializationSchema
from firesteel.formats.json.schema import row_type_of_json_schema

SCHEMA = """{
  "type": "object",
  "properties": {
    "a": {"type": "integer"},
    "b": {"type": ["string", "null"], "format": "date-time"},
    "c": {"type": "array", "items": {"type": "string"}},
    "d": {"type": "array", "items": [{"type": "number"}, {"type": "boolean"}]},
    "e": {"type": "string", "contentEncoding": "base64"},
    "f": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "string"}}}]},
    "g": {"$ref": "#/definitions/q"},
    "h": {"type": "string", "format": "email"},
    "i": {"type": "string", "format": "time"}
  },
  "definitions": {"q": {"type": "string", "format": "date"}}
}"""


def test_the_types_are_those_of_flink():
    row_type = row_type_of_json_schema(SCHEMA)

    assert row_type.get_field_names() == list("abcdefghi")
    assert row_type.get_field_types() == [
        Types.BIG_DEC(),
        Types.SQL_TIMESTAMP(),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.ROW([Types.BIG_DEC(), Types.BOOLEAN()]),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.ROW_NAMED(["x"], [Types.STRING()]),
        Types.SQL_DATE(),
        Types.STRING(),
        Types.SQL_TIME(),
    ]


def test_messages_are_read_by_it():
    schema = JsonRowDeserializationSchema.builder().json_schema(SCHEMA).build()
    row = schema.deserialize(b'{"a":1,"c":["x"],"d":[1.5,true],"e":"aGk=","f":{"x":"y"}}')
    assert (row.a, row.c, list(row.d), row.e, row.f) == (1, ["x"], [1.5, True], b"hi", Row(x="y"))


def prop(text):
    return f'{{"type":"object","properties":{{"p":{text}}}}}'


REFUSED = [
    ("{", "is not JSON"),
    ('{"type":"string"}', "not an object"),
    (prop('{"type":"thing"}'), "unsupported type 'thing'"),
    (prop("{}"), "no type"),
    (prop("5"), "expected an object"),
    (prop('{"type":["string","integer"]}'), "union"),
    (prop('{"anyOf":[]}'), "'anyOf'"),
    (prop('{"type":"array"}'), "'items'"),
    (prop('{"type":"string","contentEncoding":"base32"}'), "base32"),
    (prop('{"$ref":"other.json"}'), "other.json"),
    (prop('{"$ref":"#/nowhere"}'), "could not find"),
    (prop('{"$ref":"#/properties/p"}'), "cyclic"),
    ('{"type":"object","properties":{"p":{"$ref":"#"}}}', "cyclic"),
    ('{"type":"object","additionalProperties":true,"properties":{}}', "additional properties"),
]


def test_what_has_no_row_type():
    for text, problem in REFUSED:
        with pytest.raises(InvalidProgramError, match=problem):
            row_type_of_json_schema(text)


def test_null_alone_is_anything():
    assert row_type_of_json_schema(prop('{"type":"null"}')).get_field_types() == [Types.PICKLED_BYTE_ARRAY()]
