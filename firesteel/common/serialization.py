"""Serialization schemas, encoders and bulk writers for sources and sinks."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import RecordSerializationError
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.types import Row

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Serializes records for a sink; picklable."""

    def open(self) -> None:  # noqa: B027 - optional
        """Called once in the task, before the first record."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """The bytes of one record."""

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The bytes of each record: what ``serialize`` gives, faster where a schema can do many at once."""
        return [self.serialize(element) for element in elements]


class DeserializationSchema(ABC):
    """Deserializes messages of a source; picklable."""

    def open(self) -> None:  # noqa: B027 - optional
        """Called once in the task, before the first message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The record of one message; None if the message is to be skipped."""

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The record of each message, None for those to be skipped: what ``deserialize`` gives.

        If it raises an error, all messages are passed to ``deserialize`` one by one to find the faulty one.
        """
        return [self.deserialize(message) for message in messages]

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this record says that no other follows."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a character set.

    Bytes that are invalid in the character set are an error; Flink replaces them silently.
    """

    def __init__(self, charset: str = "UTF-8"):
        self._charset = _charset(charset)

    def serialize(self, element: Any) -> bytes:
        """The text's bytes."""
        if not isinstance(element, str):
            raise RecordSerializationError(
                f"SimpleStringSchema serializes str, got {type(element).__name__}: {_preview(element)}",
                hint="Map the stream to str first, for example with .map(str, Types.STRING()).",
            )
        return element.encode(self._charset)

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The bytes of each text."""
        charset = self._charset
        try:
            return [str.encode(element, charset) for element in elements]
        except TypeError:
            return [self.serialize(element) for element in elements]

    def deserialize(self, message: bytes) -> str:
        """The text of those bytes."""
        try:
            return bytes(message).decode(self._charset)
        except UnicodeDecodeError as error:
            raise RecordSerializationError(
                f"A message is not {self._charset} text, {error.reason} at byte {error.start}: {_preview(message)}",
                hint="Specify the character set of the text: SimpleStringSchema(charset).",
            ) from error

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The text of each message."""
        charset = self._charset
        try:
            return [bytes.decode(message, charset) for message in messages]
        except (TypeError, UnicodeDecodeError):
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """Strings."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, element: Any) -> bytes:
        """The bytes themselves."""
        return _require_bytes(element, "ByteArraySchema serializes bytes")

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The bytes themselves."""
        # bytes(5) would be five zeros, so only what has no elements that are not bytes goes this way.
        if set(map(type, elements)) <= {bytes}:
            return list(elements)
        return [self.serialize(element) for element in elements]

    def deserialize(self, message: bytes) -> bytes:
        """The bytes themselves."""
        return bytes(message)

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The bytes themselves."""
        if set(map(type, messages)) <= {bytes}:
            return list(messages)
        return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """Byte arrays."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Writes one field of a Row, which must hold bytes: a message key, for instance."""

    def __init__(self, field_index: int):
        if field_index < 0:
            raise ValueError(f"A field index cannot be negative: {field_index}")
        self._field_index = field_index

    def serialize(self, element: Any) -> bytes:
        """The bytes of the field."""
        if not isinstance(element, Row):
            raise RecordSerializationError(f"RowFieldExtractorSchema needs a Row, got {type(element).__name__}")
        if self._field_index >= len(element):
            raise RecordSerializationError(
                f"RowFieldExtractorSchema needs field {self._field_index} of a Row with {len(element)} fields"
            )
        return _require_bytes(element[self._field_index], f"Field {self._field_index} must hold bytes")


class Encoder(ABC):
    """Writes records one after the other into a file of a file sink."""

    @abstractmethod
    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Writes one record."""

    def encode_batch(self, elements: Iterable[Any], stream: BinaryIO) -> None:
        """Writes records in order."""
        for element in elements:
            self.encode(element, stream)

    def with_text(self, to_text: Callable[[Any], str]) -> Encoder:
        """Returns the encoder for records of a declared type, whose text the function gives."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Writes the text of each record and a line feed.

        Records with a declared type are written as Flink writes them (``(1,1.0E20)``), others by Python's ``str``.
        """
        return _SimpleStringEncoder(charset_name)


class _SimpleStringEncoder(Encoder):
    def __init__(self, charset_name: str, to_text: Callable[[Any], str] = str):
        self._charset = _charset(charset_name)
        self._to_text = to_text

    def with_text(self, to_text: Callable[[Any], str]) -> Encoder:
        return _SimpleStringEncoder(self._charset, to_text)

    def encode(self, element: Any, stream: BinaryIO) -> None:
        stream.write(f"{self._to_text(element)}\n".encode(self._charset))

    def encode_batch(self, elements: Iterable[Any], stream: BinaryIO) -> None:
        to_text = self._to_text
        stream.write("".join([f"{to_text(element)}\n" for element in elements]).encode(self._charset))


class BulkWriter(ABC):
    """Writes the records of one file, in a format that is complete only when the file is."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Takes one record."""

    def add_elements(self, elements: Sequence[Any]) -> None:
        """Takes records in order: what ``add_element`` does, faster where a format can do many at once."""
        for element in elements:
            self.add_element(element)

    @abstractmethod
    def flush(self) -> None:
        """Writes buffered data, as far as the format allows."""

    @abstractmethod
    def finish(self) -> None:
        """Completes the file; the stream stays open."""


class BulkWriterFactory(ABC):
    """Creates a bulk writer for each file; picklable."""

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter:
        """A writer into that stream."""


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A bulk writer factory for rows of one type."""

    def __init__(self, row_type: Any):
        self._row_type = row_type

    def get_row_type(self) -> Any:
        """The type of the rows."""
        return self._row_type


def _charset(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(f"Unknown character set {name!r}") from None


def _require_bytes(value: Any, requirement: str) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise RecordSerializationError(f"{requirement}, got {type(value).__name__}: {_preview(value)}")
    return bytes(value)


def _preview(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
