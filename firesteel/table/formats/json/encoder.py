"""Columns to JSON messages, as Flink writes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.format import Encoder
from firesteel.table.formats.written_texts import date_text, stripped, time_text, timestamp_text
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import from_column
from firesteel.types.java_text import to_java_double, to_java_float

__all__ = ["JsonEncoder", "JsonWriting", "value_writer"]

_quote = json.encoder.encode_basestring
Write = Callable[[Any], str]
_ESCAPED = r'["\\\x00-\x1f]'
_ZEROS = r"(?:\.0*|(\.\d*[1-9])0+)$"
"""Zeros at the end of a fraction, and a fraction of zeros."""


@dataclass(frozen=True)
class JsonWriting:
    """The options by which values are written."""

    is_iso: bool = False
    plain_decimals: bool = False
    ignores_nulls: bool = False


class JsonEncoder(Encoder):
    """Writes each row as an object."""

    def __init__(self, row_type: t.RowType, writing: JsonWriting) -> None:
        self._row_type = row_type
        self._writers = [value_writer(part.type, writing) for part in row_type.fields]
        self._ignores_nulls = writing.ignores_nulls
        names = [_quote(part.name) for part in row_type.fields]
        self._names = names
        self._is_iso = writing.is_iso

    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        if self._ignores_nulls or not self._row_type.fields:
            return [text.encode("utf-8") for text in self.texts(batch.data)]
        found: list[bytes | None] = self._joined(batch.data).cast("binary").to_pylist()
        return found

    def texts(self, data: Any) -> list[str]:
        """The text of each row of a RecordBatch."""
        if not self._row_type.fields:
            return ["{}"] * data.num_rows
        if not self._ignores_nulls:
            found: list[str] = self._joined(data).to_pylist()
            return found
        columns = [self._column(data, index).to_pylist() for index in range(len(self._writers))]
        return [_without_nulls(self._names, row) for row in zip(*columns, strict=True)]

    def _joined(self, data: Any) -> Any:
        import pyarrow.compute as pc

        parts: list[Any] = []
        for index, name in enumerate(self._names):
            parts += [f"{',' if index else '{'}{name}:", self._column(data, index)]
        return pc.binary_join_element_wise(*parts, "}", "")

    def _column(self, data: Any, index: int) -> Any:
        """The texts of a column, without a loop over rows where Arrow writes the same."""
        import pyarrow.compute as pc

        column, type_ = data.column(index), self._row_type.fields[index].type
        if isinstance(type_, (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.BooleanType)):
            texts = column.cast("string")
        elif isinstance(type_, (t.CharType, t.VarCharType)) and not _has_escapes(column):
            texts = pc.binary_join_element_wise('"', column, '"', "")
        elif isinstance(type_, t.TimestampType) and not self._is_iso:
            texts = pc.replace_substring_regex(column.cast("string"), _ZEROS, r"\1")
            texts = pc.binary_join_element_wise('"', texts, '"', "")
        else:
            texts = require_pyarrow("SQL").array(_texts(from_column(column, type_), self._writers[index]), "string")
        return texts.fill_null("null")


def _has_escapes(column: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py())


def _texts(values: Sequence[Any], write: Write) -> list[str]:
    return ["null" if value is None else write(value) for value in values]


def _without_nulls(names: Sequence[str], row: Sequence[str]) -> str:
    parts = [f"{name}:{text}" for name, text in zip(names, row, strict=True) if text != "null"]
    return "{" + ",".join(parts) + "}"


def value_writer(type_: t.LogicalType, writing: JsonWriting) -> Write:
    """What writes the values of a type that are not null."""
    match type_:
        case t.BooleanType():
            return lambda value: "true" if value else "false"
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return str
        case t.FloatType():
            return lambda value: _number(to_java_float(value))
        case t.DoubleType():
            return lambda value: _number(to_java_double(value))
        case t.DecimalType():
            return lambda value: _decimal(value, writing.plain_decimals)
        case t.CharType() | t.VarCharType():
            return _quote
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: f'"{base64.b64encode(value).decode("ascii")}"'
        case t.DateType():
            return lambda value: f'"{date_text(value)}"'
        case t.TimeType():
            return lambda value: f'"{time_text(value)}"'
        case t.TimestampType():
            return lambda value: f'"{timestamp_text(value, writing.is_iso)}"'
        case t.LocalZonedTimestampType():
            return lambda value: f'"{timestamp_text(value, writing.is_iso)}Z"'
    return _nested(type_, writing)


def _nested(type_: t.LogicalType, writing: JsonWriting) -> Write:
    match type_:
        case t.ArrayType():
            element = value_writer(type_.element_type, writing)
            return lambda values: f"[{','.join(_texts(values, element))}]"
        case t.MapType() | t.MultisetType():
            return _map_writer(type_, writing)
        case t.RowType():
            names = [_quote(name) for name in type_.field_names]
            parts = [value_writer(part, writing) for part in type_.children()]

            def write(row: Any) -> str:
                texts = ["null" if value is None else part(value) for value, part in zip(row, parts, strict=True)]
                if writing.ignores_nulls:
                    return _without_nulls(names, texts)
                return "{" + ",".join(f"{name}:{text}" for name, text in zip(names, texts, strict=True)) + "}"

            return write
    raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")


def _map_writer(type_: t.MapType | t.MultisetType, writing: JsonWriting) -> Write:
    key_type = type_.key_type if isinstance(type_, t.MapType) else type_.element_type
    if not isinstance(key_type, (t.CharType, t.VarCharType)):
        raise ValidationError(
            f"JSON format doesn't support non-string as key type of map. The type is: {type_.as_summary_string()}"
        )
    item = value_writer(type_.value_type if isinstance(type_, t.MapType) else t.IntType(), writing)

    def write(entries: Any) -> str:
        texts = (f"{_quote(key)}:{'null' if value is None else item(value)}" for key, value in entries.items())
        return "{" + ",".join(texts) + "}"

    return write


def _number(text: str) -> str:
    return f'"{text}"' if text in ("NaN", "Infinity", "-Infinity") else text


def _decimal(value: Decimal, plain: bool) -> str:
    if plain:
        return f"{value:f}"
    return stripped(value)
