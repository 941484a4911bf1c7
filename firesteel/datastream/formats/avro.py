"""Avro: records as rows or dicts."""

from firesteel.connectors.bulk_writers import AvroBulkWriters
from firesteel.connectors.file_formats.avro_file import AvroBulkFormat, AvroInputFormat
from firesteel.connectors.formats.avro_format import (
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)

__all__ = [
    "AvroBulkFormat",
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
