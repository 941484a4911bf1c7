"""Parquet files."""

from firesteel.formats.parquet.avro_writer import AvroParquetWriters
from firesteel.formats.parquet.file import (
    AvroParquetReaders,
    ParquetColumnarRowInputFormat,
    ParquetFormat,
)
from firesteel.formats.parquet.writer import ParquetBulkWriters

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
    "ParquetFormat",
]
