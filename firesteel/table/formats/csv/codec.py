"""CSV messages to columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firesteel.common.errors import FiresteelError
from firesteel.common.typeinfo import Types
from firesteel.formats.csv.line_parser import CsvParser, is_comment
from firesteel.formats.csv.line_writer import CsvWriter
from firesteel.formats.csv.schema import CsvSchema
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.connector.format import Decoded, Decoder, Encoder
from firesteel.table.formats.csv.values import Read, reader_of, writer_of
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.codec import SchemaMismatchError
from firesteel.types.internal import columns_schema, from_column, to_column

__all__ = ["CsvDecodeError", "CsvDecoder", "CsvEncoder", "CsvOptions"]


class CsvDecodeError(FiresteelError):
    """A line that is not what a table says."""


@dataclass(frozen=True)
class CsvOptions:
    """How lines are read and written."""

    names: tuple[str, ...]
    """All columns of a line."""
    separator: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_literal: str | None = None
    array_separator: str = ";"
    allows_comments: bool = False
    ignores_errors: bool = False
    plain_decimals: bool = False

    @property
    def schema(self) -> CsvSchema:
        """The lines as texts."""
        row_type = Types.ROW_NAMED(list(self.names), [Types.STRING()] * len(self.names))
        return CsvSchema.of(
            row_type,
            column_separator=self.separator,
            quote_char=self.quote,
            escape_char=self.escape,
            allow_comments=self.allows_comments,
            line_separator="",
        )


class CsvDecoder(Decoder):
    """Decodes some of the columns of lines."""

    def __init__(self, row_type: t.RowType, options: CsvOptions) -> None:
        self._options = options
        self._row_type = row_type
        self._parser = CsvParser(options.schema)
        self._columns = [(options.names.index(part.name), part.type) for part in row_type.fields]
        self._readers = [self._reader(part.type) for part in row_type.fields]

    def _reader(self, type_: t.LogicalType) -> Read:
        null, read = self._options.null_literal, reader_of(type_, self._options.array_separator)
        return read if null is None else lambda text: None if text == null else read(text)

    def decode(self, messages: Sequence[Any]) -> Decoded:
        """The rows of lines, which are bytes or text."""
        try:
            lines = [line if isinstance(line, str) else line.decode("utf-8") for line in messages]
            rows = self._parser.split_all(lines)
            width = len(self._options.names)
            if rows is not None and all(len(row) == width for row in rows):
                columns = list(zip(*rows, strict=True)) if rows else [()] * width
                pairs = zip(self._columns, self._readers, strict=True)
                arrays = [self._array(columns[place], type_, read) for (place, type_), read in pairs]
                return Decoded(self._batch(arrays, len(lines)))
        except (ValueError, AttributeError, ArithmeticError):
            pass
        return self._one_by_one(messages)

    def _batch(self, arrays: list[Any], count: int) -> Any:
        pa = require_pyarrow("SQL")
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=columns_schema(self._row_type))

    def _array(self, texts: Sequence[str], type_: t.LogicalType, read: Read) -> Any:
        pa = require_pyarrow("SQL")
        if isinstance(type_, (t.CharType, t.VarCharType)) and self._options.null_literal is None:
            return pa.array(texts, "string")
        return to_column([read(text) for text in texts], type_)

    def _one_by_one(self, messages: Sequence[Any]) -> Decoded:
        rows, places = [], []
        for place, message in enumerate(messages):
            row = self._row(message)
            if row is not None:
                rows.append(row)
                places.append(place)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._columns)
        arrays = [to_column(column, type_) for column, (_, type_) in zip(columns, self._columns, strict=True)]
        return Decoded(self._batch(arrays, len(rows)), None, np.array(places, np.int64))

    def _row(self, message: Any) -> tuple[Any, ...] | None:
        if message is None:
            return None
        options = self._options
        try:
            line = message if isinstance(message, str) else message.decode("utf-8")
            if options.allows_comments and is_comment(line):
                if options.ignores_errors:
                    return None
                raise ValueError("it is a comment")
            texts = self._parser.split(line) if line else []
            if (
                not texts
                or len(texts) > len(options.names)
                or (len(texts) < len(options.names) and not options.ignores_errors)
            ):
                raise ValueError(f"Row length mismatch. {len(options.names)} fields expected but was {len(texts)}")
            return tuple(
                self._value(texts[place] if place < len(texts) else None, read)
                for (place, _), read in zip(self._columns, self._readers, strict=True)
            )
        except (ValueError, ArithmeticError, SchemaMismatchError) as error:
            if options.ignores_errors:
                return None
            raise CsvDecodeError(
                f"Failed to deserialize CSV row '{message!r}': {error}.",
                hint="Set 'csv.ignore-parse-errors' = 'true' to leave out such lines.",
            ) from None

    def _value(self, text: str | None, read: Read) -> Any:
        if text is None:
            return None
        try:
            return read(text)
        except (ValueError, ArithmeticError):
            if self._options.ignores_errors:
                return None
            raise


class CsvEncoder(Encoder):
    """Writes each row as a line, without its end."""

    def __init__(self, row_type: t.RowType, options: CsvOptions) -> None:
        self._row_type = row_type
        self._separator = options.separator
        self._null = options.null_literal or ""
        writer = CsvWriter(options.schema)
        self._writers = [
            writer_of(
                part.type,
                writer.text_writer(part.name),
                options.array_separator,
                self._null,
                plain_decimals=options.plain_decimals,
            )
            for part in row_type.fields
        ]

    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        columns = []
        null = self._null
        for index, (part, write) in enumerate(zip(self._row_type.fields, self._writers, strict=True)):
            values = from_column(batch.data.column(index), part.type)
            columns.append([null if value is None else write(value) for value in values])
        join = self._separator.join
        return [join(row).encode("utf-8") for row in zip(*columns, strict=True)]
