"""CSV: rows of a type, in messages and in files."""

from firesteel.connectors.bulk_writers import CsvBulkWriters
from firesteel.connectors.file_formats.csv_file import CsvReaderFormat
from firesteel.connectors.formats.csv_format import (
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
    CsvSchemaBuilder,
)

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
