"""Avro: records as rows or dicts."""

from firesteel.formats.avro.file import AvroBulkFormat, AvroInputFormat
from firesteel.formats.avro.messages import (
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from firesteel.formats.writers.bulk_writers import AvroBulkWriters

__all__ = [
    "AvroBulkFormat",
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
