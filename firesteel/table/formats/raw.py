"""The format ``raw``: a message is the value of the only column."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firesteel.common.errors import FiresteelError
from firesteel.config.option import ConfigOptions
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import (
    Decoded,
    Decoder,
    DecodingFormat,
    Encoder,
    EncodingFormat,
    FormatFactory,
)
from firesteel.table.connector.options import option_of
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, from_column, to_column

__all__ = ["FACTORY", "RawFormat"]

CHARSET = ConfigOptions.key("charset").string_type().default_value("UTF-8")
ENDIANNESS = ConfigOptions.key("endianness").string_type().default_value("big-endian")
_NUMBERS = {
    t.TinyIntType: "b",
    t.SmallIntType: "h",
    t.IntType: "i",
    t.BigIntType: "q",
    t.FloatType: "f",
    t.DoubleType: "d",
    t.BooleanType: "?",
}


@dataclass(frozen=True)
class RawFormat(DecodingFormat, EncodingFormat):
    """The bytes of a value."""

    charset: str = "UTF-8"
    is_big_endian: bool = True

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.insert_only()

    @property
    def line_delimited(self) -> bool:
        return True

    def create_decoder(self, row_type: t.RowType) -> Decoder:
        return _RawDecoder(row_type, self)

    def create_encoder(self, row_type: t.RowType) -> Encoder:
        return _RawEncoder(row_type, self)

    def struct_of(self, type_: t.LogicalType) -> struct.Struct | None:
        """The form of a number; None for text and bytes."""
        code = _NUMBERS.get(type(type_))
        return None if code is None else struct.Struct((">" if self.is_big_endian else "<") + code)


class _RawDecoder(Decoder):
    def __init__(self, row_type: t.RowType, raw: RawFormat) -> None:
        self._row_type = row_type
        self._read = _reader(row_type.fields[0].type, raw) if row_type.fields else None

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        pa = require_pyarrow("SQL")
        if self._read is None:
            return Decoded(pa.RecordBatch.from_struct_array(pa.array([{}] * len(messages), pa.struct([]))))
        places = None
        if None in messages:
            places = np.array([place for place, message in enumerate(messages) if message is not None], np.int64)
        values = [self._read(message) for message in messages if message is not None]
        column = to_column(values, self._row_type.fields[0].type)
        return Decoded(pa.RecordBatch.from_arrays([column], schema=columns_schema(self._row_type)), None, places)


def _reader(type_: t.LogicalType, raw: RawFormat) -> Callable[[bytes], Any]:
    form = raw.struct_of(type_)
    if form is None:
        if isinstance(type_, (t.CharType, t.VarCharType)):
            return lambda message: message.decode(raw.charset, "replace")
        return bytes

    def read(message: bytes) -> Any:
        if len(message) != form.size:
            raise FiresteelError(
                f"Size of data received for deserializing {type_.as_summary_string()} type is not {form.size}."
            )
        return form.unpack(message)[0]

    return read


class _RawEncoder(Encoder):
    def __init__(self, row_type: t.RowType, raw: RawFormat) -> None:
        self._type = row_type.fields[0].type
        self._form = raw.struct_of(self._type)
        self._charset = raw.charset

    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        values = from_column(batch.data.column(0), self._type)
        form = self._form
        if form is not None:
            return [None if value is None else form.pack(value) for value in values]
        if isinstance(self._type, (t.CharType, t.VarCharType)):
            return [None if value is None else value.encode(self._charset) for value in values]
        return [None if value is None else bytes(value) for value in values]


class _Factory(FormatFactory):
    identifier = "raw"
    optional_options = (CHARSET.key, ENDIANNESS.key)

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> RawFormat:
        return self._format(context, options)

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> RawFormat:
        return self._format(context, options)

    def _format(self, context: FactoryContext, options: Mapping[str, str]) -> RawFormat:
        fields = [part for part in context.physical_type.fields if part.name not in context.partition_keys]
        if len(fields) != 1:
            raise ValidationError(
                f"The 'raw' format only supports single physical column. However the defined schema contains multiple "
                f"physical columns: {context.physical_type.as_summary_string()}"
            )
        kinds = (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType)
        if type(fields[0].type) not in _NUMBERS and not isinstance(fields[0].type, kinds):
            raise ValidationError(
                f"The 'raw' format doesn't supports '{fields[0].type.as_summary_string()}' as column type."
            )
        charset, order = option_of(options, CHARSET), option_of(options, ENDIANNESS)
        if order not in ("big-endian", "little-endian"):
            raise ValidationError(
                f"Unsupported value '{order}' for 'raw.endianness'. "
                "Supported values are ['big-endian', 'little-endian']."
            )
        try:
            "".encode(charset)
        except LookupError:
            raise ValidationError(f"Unsupported 'raw.charset' name: {charset}.") from None
        return RawFormat(charset, order == "big-endian")


FACTORY = _Factory()
