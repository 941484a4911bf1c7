"""Bulk writers of Parquet files whose columns an Avro schema names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.formats.avro.conversion import record_writer
from firesteel.formats.avro.schema import AvroSchema, actual_type, row_type_of
from firesteel.formats.parquet.writer import ParquetWriterFactory
from firesteel.formats.writers.bulk_writers import convert_records
from firesteel.types.arrow import require_pyarrow

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
    pa = require_pyarrow("AvroParquetWriters")
    row_type_of(schema)  # refuses what is no record, and one that holds itself
    return pa.schema(_fields(pa, schema, schema.resolve(schema.parsed), ""))


def _fields(pa: Any, schema: AvroSchema, record: dict[str, Any], within: str) -> list[Any]:
    return [_field(pa, schema, field["name"], field["type"], f"{within}{field['name']}") for field in record["fields"]]


def _field(pa: Any, schema: AvroSchema, name: str, node: Any, place: str) -> Any:
    actual = actual_type(schema, node)
    if actual is None:
        raise InvalidProgramError(
            f"The field '{place}' of the Avro schema is a union of several types, which Parquet has no column for.",
            hint="Use one type, or a union of one type and null.",
        )
    found, nullable = actual
    return pa.field(name, _type(pa, schema, found, place), nullable)


def _type(pa: Any, schema: AvroSchema, found: dict[str, Any], place: str) -> Any:
    kind = found["type"]
    if kind in ("record", "error"):
        return pa.struct(_fields(pa, schema, found, f"{place}."))
    if kind == "array":
        return pa.list_(_field(pa, schema, "element", found["items"], f"{place}[]"))
    if kind == "map":
        return pa.map_(pa.string(), _field(pa, schema, "value", found["values"], f"{place}{{}}"))
    logical = found.get("logicalType", "")
    if logical == "decimal":
        make = pa.decimal128 if found["precision"] <= 38 else pa.decimal256
        return make(found["precision"], found.get("scale", 0))
    if kind == "fixed":
        return pa.binary(found["size"])
    return {
        ("int", "date"): pa.date32(),
        ("int", "time-millis"): pa.time32("ms"),
        ("long", "time-micros"): pa.time64("us"),
        ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
        ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms"),
        ("long", "local-timestamp-micros"): pa.timestamp("us"),
    }.get((kind, logical)) or {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
        "enum": pa.string(),
    }[kind]
