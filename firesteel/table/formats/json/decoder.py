"""JSON messages to columns: msgspec reads what is plainly of the types, Flink's rules apply to the rest."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import numpy as np

from firesteel.common.errors import FiresteelError
from firesteel.formats.json.library import JsonNumber
from firesteel.table.connector.format import Decoded, Decoder
from firesteel.table.formats.json.values import JsonReading, row_converter
from firesteel.table.formats.texts import to_decimal
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import arrow_type, columns_schema, to_column

__all__ = ["JsonDecodeError", "JsonDecoder"]

_BITS = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}
_TEXTS = (t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)
_SCANNER = json.JSONDecoder(parse_float=JsonNumber)


class JsonDecodeError(FiresteelError):
    """A message that is not what a table says."""


class JsonDecoder(Decoder):
    """Decodes objects with the fields of a row type."""

    def __init__(self, row_type: t.RowType, reading: JsonReading) -> None:
        self._row_type = row_type
        self._reading = reading
        self._schema = columns_schema(row_type)
        self._convert = row_converter(row_type, reading)
        self._decode = msgspec.json.Decoder(_struct(row_type, reading.fails_on_missing)).decode
        self._fields = [operator.attrgetter(f"f{index}") for index in range(len(row_type.fields))]

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        """The rows of messages; of a message without text there is none."""
        decode = self._decode
        slow: list[tuple[int, Any]] = []
        try:
            structs = [decode(message) for message in messages]  # type: ignore[arg-type]
            places = None
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
            structs, places = [], []
            for place, message in enumerate(messages):
                if not message:
                    continue
                try:
                    structs.append(decode(message))
                    places.append(place)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    row = self._read(message)
                    if row is not None:
                        slow.append((place, row))
        return self._columns(structs, places, slow, messages)

    def _columns(self, structs: list[Any], places: list[int] | None, slow: list[Any], messages: Any) -> Decoded:
        pa = require_pyarrow("SQL")
        try:
            arrays = self._arrays(structs)
        except (ValueError, ArithmeticError):
            # a text that is no date or time: those rows are read one by one
            kept = range(len(messages)) if places is None else places
            read = [(place, self._read(messages[place])) for place in kept]
            slow = sorted([*slow, *((place, row) for place, row in read if row is not None)])
            structs, places = [], []
            arrays = self._arrays([])
        if slow:
            assert places is not None
            columns = zip(*(row for _, row in slow), strict=True)
            others = [to_column(column, part.type) for column, part in zip(columns, self._row_type.fields, strict=True)]
            together = np.array([*places, *(place for place, _ in slow)], np.int64)
            order = np.argsort(together, kind="stable")
            arrays = [
                pa.concat_arrays([one, other]).take(pa.array(order)) for one, other in zip(arrays, others, strict=True)
            ]
            places = together[order].tolist()
        data = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return Decoded(data, None, None if places is None else np.array(places, np.int64))

    def _arrays(self, structs: list[Any]) -> list[Any]:
        fields = self._row_type.fields
        if not structs or not fields:
            return [require_pyarrow("SQL").array([], arrow_type(part.type)) for part in fields]
        # column by column: a tuple for each row would cost as much as reading it
        return [self._array(list(map(get, structs)), part.type) for get, part in zip(self._fields, fields, strict=True)]

    def _array(self, values: list[Any], type_: t.LogicalType) -> Any:
        if isinstance(type_, _TEXTS):
            return self._reading.texts.to_column(values, type_)
        if _is_plain(type_):
            return require_pyarrow("SQL").array(values, arrow_type(type_))
        return to_column([None if value is None else self._value(value, type_) for value in values], type_)

    def _value(self, value: Any, type_: t.LogicalType) -> Any:
        """What a row holds for a value that msgspec made; nested values may be null."""
        if value is None:
            return None
        match type_:
            case t.DecimalType():
                return to_decimal(value, type_)
            case t.DateType() | t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
                return self._reading.texts.value(value, type_)
            case t.ArrayType():
                return [self._value(item, type_.element_type) for item in value]
            case t.MapType():
                return {key: self._value(item, type_.value_type) for key, item in value.items()}
            case t.RowType():
                return tuple(
                    self._value(getattr(value, f"f{index}"), part.type) for index, part in enumerate(type_.fields)
                )
        return value

    def _read(self, message: bytes) -> tuple[Any, ...] | None:
        """The row of a message by Flink's rules; None if it has none and that is ignored."""
        try:
            text = message.decode("utf-8").lstrip(" \t\r\n")
            # as in Flink, what follows the object is not looked at
            value, _ = _SCANNER.raw_decode(text)
            row: tuple[Any, ...] = self._convert(value)
        except (ValueError, ArithmeticError, RecursionError) as error:
            if self._reading.ignores_errors:
                return None
            shown = message[:200].decode("utf-8", "replace")
            raise JsonDecodeError(
                f"Failed to deserialize JSON '{shown}': {error}.",
                hint="Set 'json.ignore-parse-errors' = 'true' to leave out such messages.",
            ) from None
        return row


def _is_plain(type_: t.LogicalType) -> bool:
    """Whether the values that msgspec makes are those of a column."""
    if isinstance(type_, t.ArrayType):
        return _is_plain(type_.element_type)
    kinds = (t.FloatType, t.DoubleType, t.BooleanType, t.CharType, t.VarCharType)
    return type(type_) in _BITS or isinstance(type_, kinds)


def _struct(row_type: t.RowType, fails_on_missing: bool) -> Any:
    """The type of msgspec for objects with the fields."""
    fields: list[Any] = []
    for index, part in enumerate(row_type.fields):
        declared = _or_null(part.type, fails_on_missing)
        fields.append((f"f{index}", declared) if fails_on_missing else (f"f{index}", declared, None))
    names = {f"f{index}": part.name for index, part in enumerate(row_type.fields)}
    return msgspec.defstruct("Fields", fields, rename=names, gc=False)


def _or_null(type_: t.LogicalType, fails_on_missing: bool) -> Any:
    return _python_type(type_, fails_on_missing) | None


def _python_type(type_: t.LogicalType, fails_on_missing: bool) -> Any:
    match type_:
        case t.BooleanType():
            return bool
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            half = 1 << (_BITS[type(type_)] - 1)
            return Annotated[int, msgspec.Meta(ge=-half, le=half - 1)]
        case t.FloatType() | t.DoubleType():
            return float
        case t.DecimalType():
            return Decimal
        case t.ArrayType():
            return list[_or_null(type_.element_type, fails_on_missing)]  # type: ignore[misc]
        case t.MapType():
            return dict[str, _or_null(type_.value_type, fails_on_missing)]  # type: ignore[misc]
        case t.RowType():
            return _struct(type_, fails_on_missing)
        case t.CharType() | t.VarCharType() | t.DateType() | t.TimeType():
            return str
        case t.TimestampType() | t.LocalZonedTimestampType():
            return str
    return _Never


class _Never(msgspec.Struct):
    """What no message has: values of such types are read by the rules of Flink alone."""

    never_there: int
