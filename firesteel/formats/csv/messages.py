"""CSV serialization and deserialization schemas, and the parts that CSV files are read and written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from firesteel.common.errors import RecordSerializationError
from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.formats.compiled_schema import CompiledSchema, require_row_type
from firesteel.formats.csv.line_parser import BYTE_ORDER_MARK, CsvParser
from firesteel.formats.csv.line_writer import CsvWriter
from firesteel.formats.csv.schema import CsvSchema, CsvSchemaBuilder
from firesteel.types.codec import describe

__all__ = [
    "CsvParser",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
    "CsvWriter",
]


class CsvRowDeserializationSchema(CompiledSchema[CsvParser], DeserializationSchema):
    """Messages of one CSV line each as rows; made with ``CsvRowDeserializationSchema.Builder(type_info)``.

    Differs from Flink where Flink loses data in silence: a boolean is ``true`` or ``false``, where Flink takes all else
    for False; a message of several lines is an error, where Flink reads the first. A comment is skipped.
    """

    def __init__(self, schema: CsvSchema, *, ignore_parse_errors: bool = False):
        self._schema = schema
        self._ignore_parse_errors = ignore_parse_errors

    class Builder:
        """Builds a CsvRowDeserializationSchema."""

        def __init__(self, type_info: TypeInformation):
            self._schema = CsvSchema(require_row_type(type_info, "CsvRowDeserializationSchema"))
            self._ignore_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Sets the separator of columns. The default is a comma."""
            return self._set(column_separator=delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Skips messages that begin with #."""
            return self._set(allow_comments=allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Sets the separator of array elements and of the fields of a nested row. The default is ``;``."""
            return self._set(array_separators=(delimiter,))

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Sets the quote character. The default is ``"``."""
            return self._set(quote_char=c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            r"""Sets the escape character. With one, ``\n`` is a line end and ``\t`` a tab."""
            return self._set(escape_char=c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Sets the text that is read and written for None. The default is no such text."""
            return self._set(null_value=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Skips messages that are not CSV, and reads missing and invalid columns as None, without an error."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(self._schema, ignore_parse_errors=self._ignore_parse_errors)

        def _set(self, **settings: Any) -> CsvRowDeserializationSchema.Builder:
            self._schema = replace(self._schema, **settings)
            return self

    def deserialize(self, message: bytes | None) -> Any:
        """The row of one message."""
        if message is None:
            return None
        try:
            return self._compiled.parse_line(str(message, "utf-8").removeprefix(BYTE_ORDER_MARK))
        except RecordSerializationError:
            if self._ignore_parse_errors:
                return None
            raise
        except UnicodeDecodeError as error:
            if self._ignore_parse_errors:
                return None
            raise RecordSerializationError(f"The message is not UTF-8 text: {error}") from error

    def deserialize_batch(self, messages: Sequence[bytes]) -> list[Any]:
        """The row of each message."""
        parser = self._compiled
        try:
            return parser.parse([str(message, "utf-8").removeprefix(BYTE_ORDER_MARK) for message in messages])
        except (RecordSerializationError, UnicodeDecodeError, TypeError):
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return self._schema.row_type

    def _build(self) -> CsvParser:
        return CsvParser(self._schema, ignore_parse_errors=self._ignore_parse_errors)


class CsvRowSerializationSchema(CompiledSchema[CsvWriter], SerializationSchema):
    """Rows of a type as lines of CSV; made with ``CsvRowSerializationSchema.Builder(type_info)``."""

    def __init__(self, schema: CsvSchema):
        self._schema = schema

    class Builder:
        """Builds a CsvRowSerializationSchema."""

        def __init__(self, type_info: TypeInformation):
            self._schema = CsvSchema(require_row_type(type_info, "CsvRowSerializationSchema"))

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets the separator of columns. The default is a comma."""
            return self._set(column_separator=c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            r"""Sets the end of a line: ``\n``, the default, ``\r\n``, ``\r`` or an empty text."""
            return self._set(line_separator=delimiter)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Sets the separator of array elements and of the fields of a nested row. The default is ``;``."""
            return self._set(array_separators=(delimiter,))

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Disables quotes. A value that needs quotes is an error."""
            return self._set(quote_char=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets the quote character. The default is ``"``."""
            return self._set(quote_char=c)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets the escape character. The default is none."""
            return self._set(escape_char=c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Sets the text that is written for None. The default is an empty column."""
            return self._set(null_value=s)

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._schema)

        def _set(self, **settings: Any) -> CsvRowSerializationSchema.Builder:
            self._schema = replace(self._schema, **settings)
            return self

    def serialize(self, element: Any) -> bytes:
        """The line of one row."""
        try:
            return self._compiled.write((element,))[0].encode("utf-8")
        except UnicodeEncodeError as error:
            raise RecordSerializationError(
                f"A record holds a string that cannot be encoded, {error.reason}: {describe(element)}"
            ) from error

    def serialize_batch(self, elements: Sequence[Any]) -> list[bytes]:
        """The line of each row."""
        try:
            return [line.encode("utf-8") for line in self._compiled.write(elements)]
        except UnicodeEncodeError:
            return [self.serialize(element) for element in elements]

    def _build(self) -> CsvWriter:
        return CsvWriter(self._schema)
