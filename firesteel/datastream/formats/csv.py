"""CSV: rows of a type, in messages and in files."""

from firesteel.formats.csv.file import CsvReaderFormat
from firesteel.formats.csv.messages import (
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
    CsvSchemaBuilder,
)
from firesteel.formats.writers.bulk_writers import CsvBulkWriters

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
