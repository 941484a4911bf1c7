from __future__ import annotations

import pickle
from io import BytesIO

import pytest

from firesteel.common import ByteArraySchema, Encoder, Row, SimpleStringSchema, Types, TypeSerializer
from firesteel.common.errors import RecordSerializationError
from firesteel.common.serialization import RowFieldExtractorSchema
from firesteel.common.serializer import VoidNamespaceSerializer, void


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1", "UTF-16LE"])
def test_simple_string_schema(charset):
    schema = pickle.loads(pickle.dumps(SimpleStringSchema(charset)))
    assert schema.serialize("grün") == "grün".encode(charset)
    assert schema.deserialize("grün".encode(charset)) == "grün"
    assert schema.get_produced_type() == Types.STRING()
    assert schema.is_end_of_stream("x") is False


def test_simple_string_schema_refuses():
    with pytest.raises(RecordSerializationError, match="got int: 5"):
        SimpleStringSchema().serialize(5)
    with pytest.raises(RecordSerializationError, match="at byte 1"):
        SimpleStringSchema().deserialize(b"a\xff")
    with pytest.raises(ValueError, match="Unknown character set"):
        SimpleStringSchema("UTF-9")


def test_byte_array_schema():
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"ab")) == schema.deserialize(b"ab") == b"ab"
    assert schema.get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    with pytest.raises(RecordSerializationError):
        schema.serialize("ab")


def test_row_field_extractor_schema():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row(1, b"key")) == b"key"
    for element in (Row(1), Row(1, "text"), (1, b"key")):
        with pytest.raises(RecordSerializationError):
            schema.serialize(element)
    with pytest.raises(ValueError):
        RowFieldExtractorSchema(-1)


def test_simple_string_encoder():
    one_by_one, at_once = BytesIO(), BytesIO()
    encoder = Encoder.simple_string_encoder()
    for element in ("ü", 1, Row(1)):
        encoder.encode(element, one_by_one)
    encoder.encode_batch(["ü", 1, Row(1)], at_once)
    assert one_by_one.getvalue() == at_once.getvalue() == "ü\n1\n<Row(1)>\n".encode()


class Text(TypeSerializer[str]):
    def __init__(self, charset):
        self.charset = charset

    def serialize(self, element, stream):
        stream.write(element.encode(self.charset))

    def deserialize(self, stream):
        return stream.read().decode(self.charset)


def test_type_serializers():
    serializer = Text("utf-8")
    assert serializer.from_bytes(serializer.to_bytes("grün")) == "grün"
    assert serializer == Text("utf-8")
    assert hash(serializer) == hash(Text("utf-8"))
    assert serializer != Text("latin-1")
    assert VoidNamespaceSerializer().to_bytes(b"ignored") == b""
    assert VoidNamespaceSerializer().from_bytes(b"") == void
