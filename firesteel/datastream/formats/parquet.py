"""Parquet files."""

from firesteel.connectors.avro_parquet import AvroParquetWriters
from firesteel.connectors.file_formats.parquet_file import (
    AvroParquetReaders,
    ParquetColumnarRowInputFormat,
    ParquetFormat,
)
from firesteel.connectors.parquet_writer import ParquetBulkWriters

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
    "ParquetFormat",
]
