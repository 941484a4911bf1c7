"""JSON serialization and deserialization schemas: rows of a type, or plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.formats.compiled_schema import CompiledSchema, require_row_type
from firesteel.formats.json.library import JsonCodec
from firesteel.formats.json.row_reader import NumberIsTextError, RowReader, needs_exact_numbers
from firesteel.formats.json.row_writer import row_writer
from firesteel.formats.json.schema import row_type_of_json_schema
from firesteel.types.codec import SchemaMismatchError, describe

__all__ = [
    "JsonDeserializationSchema",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "JsonSerializationSchema",
]


_CodecAndReader = tuple[JsonCodec, Callable[[list[Any]], list[Any]]]


class JsonDeserializationSchema(CompiledSchema[JsonCodec], DeserializationSchema):
    """Messages as what they are in JSON: objects as dicts, arrays as lists.

    >>> JsonDeserializationSchema().deserialize(b'{"name": "Alice", "age": 11}')
    {'name': 'Alice', 'age': 11}

    A message that is ``null`` is skipped. Integers beyond 64 bits become floats; see :mod:`json_library` for what
    else is decided. ``ignore_parse_errors`` skips messages that are no JSON, silently; a source's
    ``set_bad_records`` counts them or sends them to a side output.
    """

    def __init__(self, *, ignore_parse_errors: bool = False):
        self._ignore_parse_errors = ignore_parse_errors

    def deserialize(self, message: bytes | None) -> Any:
        """The value of one message."""
        if message is None:
            return None
        try:
            return self._compiled.load(message)
        except ValueError as error:
            if self._ignore_parse_errors:
                return None
            raise _not_json(error) from error

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The value of each message."""
        loads = self._compiled.loads
        try:
            return [loads(message) for message in messages]
        except (ValueError, TypeError, RecursionError):
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """Anything."""
        return Types.PICKLED_BYTE_ARRAY()

    def _build(self) -> JsonCodec:
        return JsonCodec()


class JsonSerializationSchema(CompiledSchema[JsonCodec], SerializationSchema):
    """Dicts, lists, strings, numbers, booleans and None as JSON.

    >>> JsonSerializationSchema().serialize({"name": "Alice", "age": 11})
    b'{"name":"Alice","age":11}'

    Rows with names and dataclasses become objects; dates and times their ISO text, decimals and UUIDs their text, bytes
    base64. NaN and infinite numbers become null.
    """

    def serialize(self, element: Any) -> bytes:
        """The JSON of one record."""
        try:
            return self._compiled.dumps(element)
        except (TypeError, ValueError) as error:
            raise RecordSerializationError(
                f"A record cannot be written as JSON, {error}: {describe(element)}",
                record=describe(element),
                hint="Map the stream to dicts of strings, numbers, booleans, lists and dicts first.",
            ) from error

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The JSON of each record."""
        dumps = self._compiled.dumps
        try:
            return [dumps(element) for element in elements]
        except (TypeError, ValueError):
            return [self.serialize(element) for element in elements]

    def _build(self) -> JsonCodec:
        return JsonCodec()


class JsonRowDeserializationSchema(CompiledSchema[_CodecAndReader], DeserializationSchema):
    """JSON objects as rows of a type; made with ``JsonRowDeserializationSchema.builder()``.

    Differs from Flink where Flink loses data in silence: a value that is not of its field's type is an error, where
    Flink reads any text as the boolean False, cuts 1.5 down to 1, takes 5 for an empty map and passes over what
    follows an object. Timestamps and times may lack their ``Z``. A number in a field of type STRING is read as the text
    it has in the message.
    """

    _built_verbatim: _CodecAndReader | None = None

    def __init__(self, row_type: RowTypeInfo, *, fail_on_missing_field: bool, ignore_parse_errors: bool):
        self._row_type = row_type
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self.open()  # a type that JSON cannot hold is refused where the schema is built

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """A builder."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Builds a JsonRowDeserializationSchema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Sets the type of the rows. Its field names are the keys in JSON."""
            self._row_type = require_row_type(type_info, "JsonRowDeserializationSchema.type_info")
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Sets the type of the rows by a JSON schema."""
            self._row_type = row_type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Fails if an object lacks a field. By default the field is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skips messages that are not JSON, and reads values that do not fit as None, without an error."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema."""
            if self._row_type is None:
                raise InvalidProgramError(
                    "JsonRowDeserializationSchema has no type.", hint="Call type_info(...) or json_schema(...)."
                )
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise InvalidProgramError(
                    "JsonRowDeserializationSchema cannot both fail on missing fields and ignore parse errors.",
                    hint="Choose one. To skip bad records, call set_bad_records(...) on the source.",
                )
            return JsonRowDeserializationSchema(
                self._row_type,
                fail_on_missing_field=self._fail_on_missing_field,
                ignore_parse_errors=self._ignore_parse_errors,
            )

    def deserialize(self, message: bytes | None) -> Any:
        """The row of one message, None for ``null``."""
        if message is None:
            return None
        codec, read = self._compiled
        try:
            try:
                return read([codec.load(message)])[0]
            except NumberIsTextError:
                codec, read = self._verbatim
                return read([codec.load(message)])[0]
        except SchemaMismatchError:
            if self._ignore_parse_errors:
                return None
            raise
        except ValueError as error:
            if self._ignore_parse_errors:
                return None
            raise _not_json(error) from error

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The row of each message."""
        codec, read = self._compiled
        loads = codec.loads
        try:
            try:
                return read([loads(message) for message in messages])
            except NumberIsTextError:
                codec, read = self._verbatim
                return read([codec.loads(message) for message in messages])
        except (ValueError, TypeError, RecursionError, RecordSerializationError):
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return self._row_type

    @property
    def _verbatim(self) -> _CodecAndReader:
        """For messages with numbers that are text."""
        if self._built_verbatim is None:
            self._built_verbatim = JsonCodec(verbatim=True), self._reader(verbatim=True)
        return self._built_verbatim

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_built_verbatim": None}

    def _build(self) -> _CodecAndReader:
        read = self._reader(verbatim=False)  # first: it names the field whose type JSON cannot hold
        return JsonCodec(exact=needs_exact_numbers(self._row_type.to_logical())), read

    def _reader(self, *, verbatim: bool) -> Callable[[list[Any]], list[Any]]:
        return RowReader(
            self._row_type.to_logical(),
            fail_on_missing_field=self._fail_on_missing_field,
            ignore_parse_errors=self._ignore_parse_errors,
            verbatim=verbatim,
        ).read


class JsonRowSerializationSchema(CompiledSchema[Callable[[Any], list[str]]], SerializationSchema):
    """Rows of a type as JSON objects; made with ``JsonRowSerializationSchema.builder()``.

    Takes tuples, lists in the order of the fields, and dicts too. Numbers that are NaN or infinite are written as the
    strings ``"NaN"`` and ``"Infinity"``, which can be read again, as Flink does.
    """

    def __init__(self, row_type: RowTypeInfo):
        self._row_type = row_type
        self.open()

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """A builder."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Builds a JsonRowSerializationSchema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Sets the type of the rows. Its field names become the keys in JSON."""
            self._row_type = require_row_type(type_info, "JsonRowSerializationSchema.with_type_info")
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema."""
            if self._row_type is None:
                raise InvalidProgramError("JsonRowSerializationSchema has no type.", hint="Call with_type_info(...).")
            return JsonRowSerializationSchema(self._row_type)

    def serialize(self, element: Any) -> bytes:
        """The JSON object of one row."""
        try:
            text: str = self._compiled((element,))[0]
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            _no_text(error, element)

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The JSON object of each row."""
        try:
            return [text.encode("utf-8") for text in self._compiled(elements)]
        except UnicodeEncodeError:
            return [self.serialize(element) for element in elements]

    def _build(self) -> Callable[[Any], list[str]]:
        return row_writer(self._row_type.to_logical())


def _not_json(error: Exception) -> RecordSerializationError:
    return RecordSerializationError(f"The message is not JSON: {error}")


def _no_text(error: UnicodeEncodeError, element: Any) -> NoReturn:
    raise RecordSerializationError(
        f"A record holds a string that cannot be encoded, {error.reason}: {describe(element)}"
    ) from error
