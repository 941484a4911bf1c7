"""The format ``avro``: one binary record a message, without a header, with the schema that Flink derives of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.config.option import ConfigOptions
from firesteel.formats.avro.schema import import_fastavro
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import Decoded, Decoder, DecodingFormat, Encoder, EncodingFormat, FormatFactory
from firesteel.table.connector.options import option_of
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, from_column, to_column

__all__ = ["FACTORY", "AvroDecodingFormat", "AvroEncodingFormat", "avro_schema", "from_avro", "to_avro"]

CODEC = ConfigOptions.key("codec").string_type().no_default_value()
ENCODING = ConfigOptions.key("encoding").string_type().default_value("binary")
Convert = Callable[[Any], Any]
_SIMPLE: dict[type[t.LogicalType], str] = {
    t.BooleanType: "boolean",
    t.TinyIntType: "int",
    t.SmallIntType: "int",
    t.IntType: "int",
    t.BigIntType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.CharType: "string",
    t.VarCharType: "string",
    t.BinaryType: "bytes",
    t.VarBinaryType: "bytes",
    t.DateType: "int",
    t.DecimalType: "bytes",
}


def avro_schema(row_type: t.RowType, name: str = "record", *, logical_types: bool = False) -> dict[str, Any]:
    """The schema of records. Logical types do not change the bytes; readers of files want to know them."""
    fields: list[dict[str, Any]] = []
    for part in row_type.fields:
        type_ = _type(part.type, f"{name}_{part.name}", logical_types)
        fields.append({"name": part.name, "type": type_, **({"default": None} if part.type.nullable else {})})
    return {"type": "record", "name": name, "fields": fields}


def _type(type_: t.LogicalType, name: str, logical_types: bool) -> Any:
    found = _not_null(type_, name, logical_types)
    return ["null", found] if type_.nullable else found


def _not_null(type_: t.LogicalType, name: str, logical_types: bool) -> Any:
    match type_:
        case t.TimeType() | t.TimestampType():
            word = "TIME" if isinstance(type_, t.TimeType) else "TIMESTAMP"
            if type_.precision > 3:
                raise ValidationError(
                    f"Avro does not support {word} type with precision: {type_.precision}, it only supports precision "
                    "less than 3."
                )
            plain = "int" if word == "TIME" else "long"
            return {"type": plain, "logicalType": f"{word.lower()}-millis"} if logical_types else plain
        case t.DateType() if logical_types:
            return {"type": "int", "logicalType": "date"}
        case t.DecimalType() if logical_types:
            digits = {"precision": type_.precision, "scale": type_.scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case t.ArrayType():
            return {"type": "array", "items": _type(type_.element_type, name, logical_types)}
        case t.MapType() if isinstance(type_.key_type, (t.CharType, t.VarCharType)):
            return {"type": "map", "values": _type(type_.value_type, name, logical_types)}
        case t.RowType():
            return avro_schema(type_, name, logical_types=logical_types)
    if type(type_) not in _SIMPLE:
        raise ValidationError(f"Unsupported to derive Schema for type: {type_.as_summary_string()}")
    return _SIMPLE[type(type_)]


def from_avro(type_: t.LogicalType) -> Convert:
    """What makes of a value of Avro what a row holds; null stays null."""
    return _nullable(_reader(type_))


def to_avro(type_: t.LogicalType) -> Convert:
    """What makes of a value of a row what Avro takes; null stays null."""
    return _nullable(_writer(type_))


def _reader(type_: t.LogicalType) -> Convert:
    """From what Avro has to what a row holds."""
    match type_:
        case t.DecimalType():
            return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-(type_.scale or 0))
        case t.TimestampType():
            return lambda value: value * 1_000_000
        case t.ArrayType():
            element = from_avro(type_.element_type)
            return lambda values: [element(value) for value in values]
        case t.MapType():
            item = from_avro(type_.value_type)
            return lambda entries: {key: item(value) for key, value in entries.items()}
        case t.RowType():
            parts = [(part.name, from_avro(part.type)) for part in type_.fields]
            return lambda record: tuple(read(record[name]) for name, read in parts)
    return lambda value: value


def _writer(type_: t.LogicalType) -> Convert:
    """From what a row holds to what Avro takes."""
    match type_:
        case t.DecimalType():
            return lambda value: _unscaled(value, type_.scale or 0)
        case t.TimestampType():
            return lambda value: value // 1_000_000
        case t.ArrayType():
            element = to_avro(type_.element_type)
            return lambda values: [element(value) for value in values]
        case t.MapType():
            item = to_avro(type_.value_type)
            return lambda entries: {key: item(value) for key, value in entries.items()}
        case t.RowType():
            parts = [(part.name, to_avro(part.type)) for part in type_.fields]
            return lambda row: {name: write(value) for (name, write), value in zip(parts, row, strict=True)}
    return lambda value: value


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _unscaled(value: Decimal, scale: int) -> bytes:
    number = int(value.scaleb(scale))
    # as Java's BigInteger.toByteArray: as few bytes as hold the number and its sign
    length = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return number.to_bytes(length, "big", signed=True)


@dataclass(frozen=True)
class AvroDecodingFormat(DecodingFormat):
    """Records with all columns of a table."""

    row_type: t.RowType

    def create_decoder(self, row_type: t.RowType) -> Decoder:
        return _AvroDecoder(self.row_type, row_type)


class _AvroDecoder(Decoder):
    def __init__(self, written: t.RowType, wanted: t.RowType) -> None:
        fastavro = import_fastavro()
        self._read = fastavro.schemaless_reader
        self._schema = fastavro.parse_schema(avro_schema(written))
        self._wanted = wanted
        self._fields = [(part.name, part.type, from_avro(part.type)) for part in wanted.fields]

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        import numpy as np

        read, schema = self._read, self._schema
        places = [place for place, message in enumerate(messages) if message is not None]
        records = []
        for place in places:
            message = messages[place]
            assert message is not None
            try:
                records.append(read(BytesIO(message), schema, None))
            except Exception as error:  # fastavro may raise anything for invalid bytes
                raise FiresteelError(f"Failed to deserialize Avro record {message[:100]!r}: {error}.") from error
        arrays = [
            to_column([convert(record[name]) for record in records], type_) for name, type_, convert in self._fields
        ]
        data = require_pyarrow("SQL").RecordBatch.from_arrays(arrays, schema=columns_schema(self._wanted))
        return Decoded(data, None, None if len(places) == len(messages) else np.array(places, np.int64))


@dataclass(frozen=True)
class AvroEncodingFormat(EncodingFormat):
    """Records with all columns of a table."""

    def create_encoder(self, row_type: t.RowType) -> Encoder:
        return _AvroEncoder(row_type)


class _AvroEncoder(Encoder):
    def __init__(self, row_type: t.RowType) -> None:
        fastavro = import_fastavro()
        self._write = fastavro.schemaless_writer
        self._schema = fastavro.parse_schema(avro_schema(row_type))
        self._fields = [(part.name, part.type, to_avro(part.type)) for part in row_type.fields]

    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        columns = [
            [convert(value) for value in from_column(batch.data.column(index), type_)]
            for index, (_, type_, convert) in enumerate(self._fields)
        ]
        names = [name for name, _, _ in self._fields]
        messages: list[bytes | None] = []
        for row in zip(*columns, strict=True):
            stream = BytesIO()
            self._write(stream, self._schema, dict(zip(names, row, strict=True)))
            messages.append(stream.getvalue())
        return messages


class _Factory(FormatFactory):
    identifier = "avro"
    optional_options = (ENCODING.key, CODEC.key)

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> AvroDecodingFormat:
        self._check(context, options)
        return AvroDecodingFormat(context.physical_type)

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> AvroEncodingFormat:
        self._check(context, options)
        return AvroEncodingFormat()

    def _check(self, context: FactoryContext, options: Mapping[str, str]) -> None:
        if option_of(options, ENCODING) != "binary":
            raise ValidationError("The format 'avro' supports 'avro.encoding' = 'binary' only.")
        avro_schema(context.physical_type)  # raises an error for types that Avro lacks


FACTORY = _Factory()
