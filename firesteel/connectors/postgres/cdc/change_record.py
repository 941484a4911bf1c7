"""Change record, and its representation in the stream."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.types import Row, RowKind, named_rows
from firesteel.connectors.postgres.cdc.pgoutput import format_lsn
from firesteel.moved_modules import stored_as

__all__ = [
    "ChangeRecord",
    "ChangelogMode",
    "DebeziumDeserializationSchema",
    "EnvelopeDeserializationSchema",
    "JsonDebeziumDeserializationSchema",
    "RowDebeziumDeserializationSchema",
]


class ChangelogMode:
    """How updates are represented: Flink CDC's ``changelog-mode``."""

    ALL = "all"
    """The row before and the row after: needs REPLICA IDENTITY FULL."""
    UPSERT = "upsert"
    """Only the row after; of a deleted row only the key."""


@stored_as("firesteel.connectors.postgres.change_record")
@dataclass(slots=True)
class ChangeRecord:
    """A row that was read, inserted, updated or deleted; values are in the order of ``columns``."""

    database: str
    schema: str
    table: str
    columns: tuple[str, ...]
    op: str
    """As Debezium has it: r (read from the table), c (inserted), u (updated), d (deleted)."""
    before: Sequence[Any] | None
    after: Sequence[Any] | None
    timestamp_ms: int
    """When the transaction was committed; for a row read from the table, when the capture began."""
    lsn: int = 0
    """Where the commit is in the log; 0 for a row read from the table."""
    xid: int = 0
    """The transaction's number, 32 bits; 0 for a row read from the table."""


class DebeziumDeserializationSchema(ABC):
    """Makes stream elements of captured changes; picklable."""

    @abstractmethod
    def deserialize(self, record: ChangeRecord, out: list[Any]) -> None:
        """Appends what becomes of a change: nothing, one or several elements."""

    def deserialize_rows(self, like: ChangeRecord, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The elements of rows read from a table; ``like`` has all but their values."""
        out: list[Any] = []
        for row in rows:
            self.deserialize(
                ChangeRecord(like.database, like.schema, like.table, like.columns, "r", None, row, like.timestamp_ms),
                out,
            )
        return out


class RowDebeziumDeserializationSchema(DebeziumDeserializationSchema):
    """Rows with their kind: +I, -U and +U, -D.

    ``metadata`` names what is appended to the columns: ``table_name``, ``schema_name``, ``database_name``, ``op_ts``
    (milliseconds, 0 for rows read from a table) and ``row_kind``, as Flink CDC's metadata columns.
    """

    METADATA: ClassVar[tuple[str, ...]] = ("table_name", "schema_name", "database_name", "op_ts", "row_kind")

    def __init__(self, *metadata: str) -> None:
        for name in metadata:
            if name not in self.METADATA:
                raise InvalidProgramError(
                    f"PostgresCdcSource: there is no metadata column '{name}'.", hint=f"There are {self.METADATA}."
                )
        self.metadata = metadata

    def deserialize(self, record: ChangeRecord, out: list[Any]) -> None:
        """One row, or two for an update of which the row before is known."""
        op = record.op
        if op == "d":
            out.append(self._row(record, record.before or (), RowKind.DELETE))
        elif op == "u":
            if record.before is not None:
                out.append(self._row(record, record.before, RowKind.UPDATE_BEFORE))
            out.append(self._row(record, record.after or (), RowKind.UPDATE_AFTER))
        else:
            out.append(self._row(record, record.after or (), RowKind.INSERT))

    def deserialize_rows(self, like: ChangeRecord, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """One row each."""
        if not self.metadata:
            return named_rows(like.columns, rows)
        return super().deserialize_rows(like, rows)

    def _row(self, record: ChangeRecord, values: Sequence[Any], kind: RowKind) -> Row:
        names = record.columns
        if self.metadata:
            names = names + self.metadata
            values = [*values, *(self._metadata(name, record, kind) for name in self.metadata)]
        (row,) = named_rows(names, (values,))
        row.set_row_kind(kind)
        return row

    @staticmethod
    def _metadata(name: str, record: ChangeRecord, kind: RowKind) -> Any:
        if name == "table_name":
            return record.table
        if name == "schema_name":
            return record.schema
        if name == "database_name":
            return record.database
        if name == "op_ts":
            return 0 if record.op == "r" else record.timestamp_ms
        return str(kind)


class EnvelopeDeserializationSchema(DebeziumDeserializationSchema):
    """Dicts with ``before``, ``after``, ``op``, ``ts_ms`` and ``source``, as Debezium's envelope."""

    def deserialize(self, record: ChangeRecord, out: list[Any]) -> None:
        """One dict."""
        out.append(_envelope(record))


class JsonDebeziumDeserializationSchema(DebeziumDeserializationSchema):
    """The envelope as a JSON string; what JSON has no type for is written as text, bytes as base64."""

    def deserialize(self, record: ChangeRecord, out: list[Any]) -> None:
        """One string."""
        out.append(json.dumps(_finite(_envelope(record)), default=_to_json, ensure_ascii=False))


def _envelope(record: ChangeRecord) -> dict[str, Any]:
    names = record.columns
    return {
        "before": None if record.before is None else dict(zip(names, record.before, strict=True)),
        "after": None if record.after is None else dict(zip(names, record.after, strict=True)),
        "op": record.op,
        "ts_ms": record.timestamp_ms,
        "source": {
            "db": record.database,
            "schema": record.schema,
            "table": record.table,
            "lsn": format_lsn(record.lsn) if record.lsn else None,
            "txid": record.xid or None,
            "ts_ms": record.timestamp_ms,
            "snapshot": record.op == "r",
        },
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _to_json(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return str(value)
