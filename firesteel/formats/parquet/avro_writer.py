"""Bulk writers of Parquet files whose columns an Avro schema names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.formats.avro.conversion import record_writer
from firesteel.formats.avro.schema import AvroSchema, row_type_of
from firesteel.formats.parquet.writer import ParquetWriterFactory
from firesteel.formats.writers.bulk_writers import convert_records
from firesteel.types.arrow import require_pyarrow, to_arrow_schema
from firesteel.types.avro import from_avro

__all__ = ["AvroParquetWriters", "to_arrow_schema_of_avro"]


class AvroParquetWriters:
    """Makes factories of writers of Parquet files from records of an Avro schema."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, *, compression: str = "snappy") -> BulkWriterFactory:
        """For dicts, rows or tuples with the fields of a schema."""
        if not isinstance(schema, AvroSchema):
            raise InvalidProgramError(f"AvroParquetWriters.for_generic_record needs an AvroSchema, not {schema!r}.")
        return _AvroParquetWriterFactory(schema, compression)


class _AvroParquetWriterFactory(ParquetWriterFactory):
    def __init__(self, schema: AvroSchema, compression: str) -> None:
        super().__init__(to_arrow_schema_of_avro(schema), compression)
        self._avro_schema = schema

    def create(self, stream: BinaryIO) -> BulkWriter:
        """A writer into that stream."""
        return _AvroParquetWriter(self._avro_schema, super().create(stream))


class _AvroParquetWriter(BulkWriter):
    def __init__(self, schema: AvroSchema, columns: BulkWriter) -> None:
        self._convert = record_writer(schema)
        self._columns = columns

    def add_element(self, element: Any) -> None:
        self.add_elements((element,))

    def add_elements(self, elements: Sequence[Any]) -> None:
        self._columns.add_elements(convert_records(self._convert, elements))

    def flush(self) -> None:
        self._columns.flush()

    def finish(self) -> None:
        self._columns.finish()


def to_arrow_schema_of_avro(schema: AvroSchema) -> Any:
    """The Arrow schema for the records of an Avro schema."""
    require_pyarrow("AvroParquetWriters")
    row_type_of(schema)  # refuses what is no record, and one that holds itself
    type_ = from_avro(schema, schema.parsed, union=_refuse_union)
    return to_arrow_schema(type_, element_name="element", keeps_not_null=True)


def _refuse_union(path: str) -> NoReturn:
    raise InvalidProgramError(
        f"The field '{path}' of the Avro schema is a union of several types, which Parquet has no column for.",
        hint="Use one type, or a union of one type and null.",
    )
