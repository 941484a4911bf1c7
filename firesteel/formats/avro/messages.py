"""Avro messages as rows: one binary datum each, without a header, as Flink's AvroRow schemas have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.formats.avro.conversion import record_reader, record_writer
from firesteel.formats.avro.schema import (
    AvroSchema,
    GenericRecordAvroTypeInfo,
    import_fastavro,
    row_type_of,
)
from firesteel.formats.compiled_schema import CompiledSchema
from firesteel.types.codec import describe

__all__ = [
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]


class AvroRowDeserializationSchema(
    CompiledSchema[tuple[Callable[[bytes], Any], Callable[[list[Any]], list[Any]]]], DeserializationSchema
):
    """Messages of one Avro record each as rows with the fields of the schema.

    Where messages were written with an older or newer schema, give it as ``writer_schema_string``: the records are
    then read with it and resolved to ``avro_schema_string`` by Avro's rules (defaults, aliases, wider numbers).
    Messages of a schema registry, which begin with the schema's id, are not read.
    """

    def __init__(
        self,
        record_class: str | None = None,
        avro_schema_string: str | None = None,
        *,
        writer_schema_string: str | None = None,
    ):
        self._schema = _schema(record_class, avro_schema_string, "AvroRowDeserializationSchema")
        self._row_type = row_type_of(self._schema)
        self._writer_schema = None if writer_schema_string is None else AvroSchema.parse_string(writer_schema_string)

    def deserialize(self, message: bytes | None) -> Any:
        """The row of one message."""
        if message is None:
            return None
        load, read = self._compiled
        try:
            return read([load(message)])[0]
        except RecordSerializationError:
            raise
        except Exception as error:  # fastavro may raise anything for invalid bytes
            raise _not_avro(message, (self._writer_schema or self._schema).name, error) from error

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The row of each message."""
        load, read = self._compiled
        try:
            return read([load(message) for message in messages])
        except Exception:  # noqa: BLE001 - see deserialize, which raises the error of each message
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return self._row_type

    def _build(self) -> tuple[Callable[[bytes], Any], Callable[[list[Any]], list[Any]]]:
        read_datum = import_fastavro().schemaless_reader
        reader = self._schema.parsed
        writer = reader if self._writer_schema is None else self._writer_schema.parsed
        resolved = None if self._writer_schema is None else reader

        def load(message: bytes) -> Any:
            stream = BytesIO(message)
            value = read_datum(stream, writer, resolved)
            if stream.tell() < len(message):
                raise ValueError(f"{len(message) - stream.tell()} bytes are left over")
            return value

        return load, record_reader(self._schema)


class AvroRowSerializationSchema(
    CompiledSchema[tuple[Callable[[Any], bytes], Callable[[Any], list[Any]]]], SerializationSchema
):
    """Rows, tuples or dicts as Avro records of a schema, one binary datum each."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None):
        self._schema = _schema(record_class, avro_schema_string, "AvroRowSerializationSchema")
        row_type_of(self._schema)

    def serialize(self, element: Any) -> bytes:
        """The Avro record of one row."""
        dump, convert = self._compiled
        (record,) = convert((element,))
        try:
            return dump(record)
        except Exception as error:
            raise RecordSerializationError(
                f"A record cannot be written as {self._schema.name}, {type(error).__name__}: {error}: "
                f"{describe(element)}",
                record=describe(element),
            ) from error

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The Avro record of each row."""
        dump, convert = self._compiled
        records = convert(elements)
        try:
            return [dump(record) for record in records]
        except Exception:  # noqa: BLE001 - see serialize, which raises the error of each row
            return [self.serialize(element) for element in elements]

    def _build(self) -> tuple[Callable[[Any], bytes], Callable[[Any], list[Any]]]:
        write_datum = import_fastavro().schemaless_writer
        schema = self._schema.parsed

        def dump(record: Any) -> bytes:
            stream = BytesIO()
            write_datum(stream, schema, record)
            return stream.getvalue()

        return dump, record_writer(self._schema)


def _schema(record_class: str | None, avro_schema_string: str | None, who: str) -> AvroSchema:
    if record_class is not None:
        raise InvalidProgramError(
            f"{who} cannot use the Java class {record_class}.", hint="Give its schema: avro_schema_string=..."
        )
    if avro_schema_string is None:
        raise InvalidProgramError(f"{who} has no schema.", hint="Give it as text: avro_schema_string=...")
    return AvroSchema.parse_string(avro_schema_string)


def _not_avro(message: bytes, name: str, error: Exception) -> RecordSerializationError:
    reason = str(error) if type(error) is ValueError else f"{type(error).__name__} {error}".strip()
    registry = ""
    if len(message) > 5 and message[0] == 0:
        registry = ". It begins like one of a schema registry, with a zero byte and an id: those are not read"
    return RecordSerializationError(
        f"The message is not an Avro record of {name}: {reason}{registry}.",
        hint="If it was written with another version of the schema, give that as writer_schema_string.",
    )
