"""Bulk writers of CSV and Avro files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.formats.avro.conversion import record_writer
from firesteel.formats.avro.schema import AvroSchema, import_fastavro, row_type_of
from firesteel.formats.csv.line_writer import CsvWriter
from firesteel.formats.csv.schema import CsvSchema
from firesteel.types.arrow_encoding import preview

__all__ = ["AvroBulkWriters", "CsvBulkWriters", "convert_records"]

AVRO_CODECS = ("null", "deflate", "bzip2", "xz")
"""Those that need no other package."""


def convert_records(convert: Callable[[Sequence[Any]], Any], records: Sequence[Any]) -> Any:
    """What a function makes of records; where it cannot, the record at fault is named."""
    try:
        return convert(records)
    except (RecordSerializationError, ValueError, TypeError):
        for record in records:
            try:
                convert([record])
            except (RecordSerializationError, ValueError, TypeError) as error:
                text = preview(record)
                said = error.message if isinstance(error, RecordSerializationError) else str(error)
                raise RecordSerializationError(
                    f"The record {text} cannot be written. {said}",
                    record=text,
                    hint="Map the records to the file's schema, or use another schema for the sink.",
                ) from error
        raise


class CsvBulkWriters:
    """Makes factories of writers of CSV files, for ``FileSink.for_bulk_format``."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """For rows, tuples or dicts with the columns of a schema; each file has a header if the schema has one."""
        if not isinstance(schema, CsvSchema):
            raise InvalidProgramError(f"CsvBulkWriters.for_schema needs a CsvSchema, not {schema!r}.")
        return _CsvWriterFactory(schema)


class _CsvWriterFactory(BulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _CsvBulkWriter(self._schema, stream)


class _CsvBulkWriter(BulkWriter):
    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._writer = CsvWriter(schema, strips_zeros=True)
        self._stream = stream
        if schema.use_header:
            stream.write(self._writer.header().encode())

    def add_element(self, element: Any) -> None:
        self.add_elements((element,))

    def add_elements(self, elements: Sequence[Any]) -> None:
        self._stream.write(convert_records(self._encode, elements))

    def flush(self) -> None:
        self._stream.flush()

    def finish(self) -> None:
        return

    def _encode(self, records: Sequence[Any]) -> bytes:
        return "".join(self._writer.write(records)).encode()


class AvroBulkWriters:
    """Makes factories of writers of Avro files, for ``FileSink.for_bulk_format``."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, *, codec: str = "null") -> BulkWriterFactory:
        """For dicts, rows or tuples with the fields of a schema, compressed by a codec such as ``deflate``."""
        if not isinstance(schema, AvroSchema):
            raise InvalidProgramError(f"AvroBulkWriters.for_generic_record needs an AvroSchema, not {schema!r}.")
        row_type_of(schema)
        if codec not in AVRO_CODECS:
            raise InvalidProgramError(
                f"AvroBulkWriters: there is no codec '{codec}'.", hint=f"There is {', '.join(AVRO_CODECS)}."
            )
        return _AvroWriterFactory(schema, codec)


class _AvroWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema, codec: str) -> None:
        self._schema = schema
        self._codec = codec

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _AvroBulkWriter(self._schema, self._codec, stream)


class _AvroBulkWriter(BulkWriter):
    """Writes block after block, each as it is full."""

    def __init__(self, schema: AvroSchema, codec: str, stream: BinaryIO) -> None:
        import_fastavro()
        import fastavro.write

        self._convert = record_writer(schema)
        self._writer = fastavro.write.Writer(stream, schema.parsed, codec)

    def add_element(self, element: Any) -> None:
        self.add_elements((element,))

    def add_elements(self, elements: Sequence[Any]) -> None:
        write = self._writer.write
        for record, element in zip(convert_records(self._convert, elements), elements, strict=True):
            try:
                write(record)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                # for example a union of several types, which takes anything until it is written
                text = preview(element)
                raise RecordSerializationError(
                    f"The record {text} cannot be written as Avro, {type(error).__name__}: {error}", record=text
                ) from error

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.flush()
