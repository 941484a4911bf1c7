"""Encoders of a FileSink: JSON lines, and any serialization schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from firesteel.common.serialization import Encoder, SerializationSchema
from firesteel.formats.csv.line_writer import CsvWriter
from firesteel.formats.csv.messages import CsvRowSerializationSchema
from firesteel.formats.csv.schema import CsvSchema
from firesteel.formats.json.messages import JsonSerializationSchema
from firesteel.formats.writers.bulk_writers import convert_records

__all__ = ["CsvEncoder", "JsonLinesEncoder", "SchemaEncoder"]


class SchemaEncoder(Encoder):
    """Writes what a serialization schema makes of each record, and a delimiter after it.

    Its header, if any, begins each file.
    """

    def __init__(self, schema: SerializationSchema, delimiter: bytes = b"\n", header: bytes = b"") -> None:
        self._schema = schema
        self._delimiter = delimiter
        self._header = header
        self._is_open = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_is_open": False}

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Writes one record."""
        self.encode_batch((element,), stream)

    def encode_batch(self, elements: Iterable[Any], stream: BinaryIO) -> None:
        """Writes records in order."""
        if not self._is_open:
            self._schema.open()
            self._is_open = True
        records = elements if isinstance(elements, Sequence) else list(elements)
        lines = convert_records(self._schema.serialize_batch, records)
        if self._header and stream.tell() == 0:
            stream.write(self._header)
        # the empty text at the end brings the last delimiter
        stream.write(self._delimiter.join([*lines, b""]))


class CsvEncoder(SchemaEncoder):
    """Writes each record as a line of CSV; each file begins with a header if the schema has one."""

    def __init__(self, schema: CsvSchema) -> None:
        header = CsvWriter(schema).header().encode() if schema.use_header else b""
        super().__init__(CsvRowSerializationSchema(schema), b"", header)


class JsonLinesEncoder(SchemaEncoder):
    """Writes each record as one line of JSON.

    Dicts, rows with names and dataclasses become objects, lists and tuples arrays. For fields of exact types, a
    ``SchemaEncoder`` of a ``JsonRowSerializationSchema``.
    """

    def __init__(self) -> None:
        super().__init__(JsonSerializationSchema())
