"""A batch gives what one by one gives, also when something is wrong with it."""

from __future__ import annotations

import pytest

from firesteel.common import ByteArraySchema, SimpleStringSchema
from firesteel.common.errors import RecordSerializationError
from firesteel.common.serialization import DeserializationSchema, SerializationSchema


class Upper(SerializationSchema, DeserializationSchema):
    def serialize(self, element):
        return element.upper().encode()

    def deserialize(self, message):
        return message.decode().lower() or None


def test_by_default_a_batch_is_handled_one_by_one():
    assert Upper().serialize_batch(["a", "b"]) == [b"A", b"B"]
    assert Upper().deserialize_batch([b"A", b"", b"C"]) == ["a", None, "c"]


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "utf-16"])
def test_strings(charset):
    schema = SimpleStringSchema(charset)
    texts = ["", "abc", "é\n"]
    messages = schema.serialize_batch(texts)

    assert messages == [schema.serialize(text) for text in texts]
    assert schema.deserialize_batch(messages) == texts
    assert schema.deserialize_batch([bytearray(messages[1]), memoryview(messages[2])]) == texts[1:]


def test_strings_that_are_wrong():
    with pytest.raises(RecordSerializationError, match="got int: 5"):
        SimpleStringSchema().serialize_batch(["a", 5])
    with pytest.raises(RecordSerializationError, match="not utf-8 text"):
        SimpleStringSchema().deserialize_batch([b"a", b"\xff"])


def test_bytes():
    schema = ByteArraySchema()

    assert schema.serialize_batch([b"a", bytearray(b"b"), memoryview(b"c")]) == [b"a", b"b", b"c"]
    assert schema.deserialize_batch([b"a", bytearray(b"b")]) == [b"a", b"b"]
    assert schema.serialize_batch([b"x"]) == [b"x"]
    with pytest.raises(RecordSerializationError, match="got int"):
        schema.serialize_batch([b"a", 5])
