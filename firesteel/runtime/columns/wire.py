"""Column batches as bytes: Arrow IPC, with the schema in the first batch of a channel only.

A payload is a header of 24 bytes, the schema (or nothing), the record batch, and the row kinds (or nothing). The
record batch is written once, into memory that the socket reads from, and is read in place. Schema and record batch are
messages of the IPC format, whose lengths are multiples of 8, so that columns stay aligned.

A batch with dictionaries is an IPC stream of its own, with the schema and the dictionaries: those may differ between
any two batches.
"""

from __future__ import annotations

import struct
from typing import Any

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.types.arrow import require_pyarrow

__all__ = ["COLUMNS", "ColumnDecoder", "ColumnEncoder", "EncodedColumns", "decode_columns", "encode_columns"]

COLUMNS = 0xFC
"""The first byte of a payload, by which it differs from pickled records. It also is the version of the format."""

_HEADER = struct.Struct("<BBhIQQ")
"""First byte, flags, rowtime, and the lengths of schema, record batch and row kinds."""
_IS_STREAM = 1
_NO_ROWTIME = -1


class EncodedColumns:
    """A batch as it is sent."""

    __slots__ = ("_data", "_flags", "_kinds", "_rowtime", "_schema", "_sends_schema", "length")

    def __init__(self, schema: bytes, sends_schema: bool, flags: int, data: Any, kinds: bytes, rowtime: int):
        self._schema = schema
        self._sends_schema = sends_schema
        self._flags = flags
        self._data = data
        self._kinds = kinds
        self._rowtime = rowtime
        self.length: int = _HEADER.size + (len(schema) if sends_schema else 0) + data.size + len(kinds)

    def __len__(self) -> int:
        return self.length

    def parts(self) -> list[bytes | memoryview]:
        """What to write to a socket, one after the other."""
        parts: list[bytes | memoryview] = [self._head(self._sends_schema), memoryview(self._data)]
        if self._kinds:
            parts.append(self._kinds)
        return parts

    def to_bytes(self, *, with_schema: bool) -> bytes:
        """The payload in one piece; with the schema it can be read by itself."""
        return b"".join((self._head(with_schema or self._sends_schema), memoryview(self._data), self._kinds))

    def _head(self, with_schema: bool) -> bytes:
        schema = self._schema if with_schema else b""
        return (
            _HEADER.pack(COLUMNS, self._flags, self._rowtime, len(schema), self._data.size, len(self._kinds)) + schema
        )


class ColumnEncoder:
    """Encodes the batches of one channel."""

    __slots__ = ("_encoded_schema", "_schema")

    def __init__(self) -> None:
        self._schema: Any = None
        self._encoded_schema = b""

    def encode(self, batch: ColumnBatch) -> EncodedColumns:
        """The batch as it is sent after those before it."""
        data = batch.data
        schema = data.schema
        kinds = b"" if batch.kinds is None else batch.kinds.tobytes()
        rowtime = _NO_ROWTIME if batch.rowtime is None else batch.rowtime
        is_new = self._schema is not schema and (
            self._schema is None or not schema.equals(self._schema, check_metadata=True)
        )
        if is_new:
            self._encoded_schema = b"" if _has_dictionaries(schema) else schema.serialize().to_pybytes()
        self._schema = schema
        if not self._encoded_schema:
            return EncodedColumns(b"", False, _IS_STREAM, _write_stream(data), kinds, rowtime)
        return EncodedColumns(self._encoded_schema, is_new, 0, data.serialize(), kinds, rowtime)


class ColumnDecoder:
    """Decodes the batches of one channel."""

    __slots__ = ("_schema",)

    def __init__(self) -> None:
        self._schema: Any = None

    def decode(self, payload: bytes | bytearray) -> ColumnBatch:
        """The batch, whose columns are where the payload is."""
        pa = require_pyarrow("Columns")
        _, flags, rowtime, schema_length, data_length, kinds_length = _HEADER.unpack_from(payload)
        buffer = pa.py_buffer(payload)
        at = _HEADER.size
        if schema_length:
            self._schema = pa.ipc.read_schema(buffer.slice(at, schema_length))
            at += schema_length
        message = buffer.slice(at, data_length)
        if flags & _IS_STREAM:
            data = pa.ipc.open_stream(message).read_next_batch()
        elif self._schema is None:
            raise RecordSerializationError("A batch of columns came before the schema of its channel.")
        else:
            data = pa.ipc.read_record_batch(message, self._schema)
        kinds = None
        if kinds_length:
            import numpy as np

            kinds = np.frombuffer(payload, np.int8, kinds_length, at + data_length)
        return ColumnBatch(data, kinds, None if rowtime == _NO_ROWTIME else rowtime)


def encode_columns(batch: ColumnBatch) -> bytes:
    """The batch as a payload that can be read by itself."""
    return ColumnEncoder().encode(batch).to_bytes(with_schema=True)


def decode_columns(payload: bytes | bytearray) -> ColumnBatch:
    """The batch of a payload that has its schema."""
    return ColumnDecoder().decode(payload)


def _has_dictionaries(schema: Any) -> bool:
    types = require_pyarrow("Columns").types

    def is_or_has(type_: Any) -> bool:
        return types.is_dictionary(type_) or any(is_or_has(type_.field(i).type) for i in range(type_.num_fields))

    return any(is_or_has(field.type) for field in schema)


def _write_stream(data: Any) -> Any:
    pa = require_pyarrow("Columns")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_batch(data)
    return sink.getvalue()
