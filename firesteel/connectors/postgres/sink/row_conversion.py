"""Conversion of records to table rows, with values in column order and in COPY's form."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import RecordSerializationError
from firesteel.common.types import Row, RowKind
from firesteel.connectors.postgres.connection import import_psycopg
from firesteel.connectors.postgres.sink.copy_values import (
    BINARY_TYPES,
    Converter,
    binary_check,
    binary_converter,
    checked_dumpers,
    text_converter,
)
from firesteel.connectors.postgres.table_description import PostgresColumn

if TYPE_CHECKING:
    import psycopg

__all__ = ["CopyFormat", "RecordMapper", "values_of"]

RecordMapper = Callable[[Any], Sequence[Any]]

_log = logging.getLogger(__name__)

_INSERT = RowKind.INSERT


def values_of(record: Any, columns: tuple[str, ...]) -> Sequence[Any]:
    """A record's values in the order of the columns, by name if it has names."""
    kind = record.__class__
    values: Sequence[Any]
    if kind is Row:
        values = record._values
        if record._fields == columns:
            return values
        values = record._values if record._fields is None else _by_name(record, columns, record._fields)
    elif kind is tuple or kind is list:
        values = record
    elif isinstance(record, dict):
        return _by_name(record, columns, record)
    elif isinstance(record, (tuple, list)):
        values = record
    elif len(columns) == 1:
        return (record,)
    else:
        raise RecordSerializationError(
            f"A {kind.__name__} is not a row of {len(columns)} columns ({', '.join(columns)}).",
            record=repr(record)[:200],
            hint="Give the sink Rows, tuples, lists or dicts, or a function with set_record_mapper().",
        )
    if len(values) != len(columns):
        raise RecordSerializationError(
            f"A record has {len(values)} values, but there are {len(columns)} columns ({', '.join(columns)}).",
            record=repr(record)[:200],
            hint="Name the columns to write with set_columns(), in the order of the record's values.",
        )
    return values


def _by_name(record: Any, columns: tuple[str, ...], fields: Iterable[str]) -> list[Any]:
    try:
        return [record[name] for name in columns]
    except (KeyError, ValueError):
        missing = [name for name in columns if name not in fields]
        raise RecordSerializationError(
            f"A record has no field {', '.join(map(repr, missing))}.",
            record=repr(record)[:200],
            hint=f"The sink writes the columns {', '.join(columns)}; set_columns() changes that.",
        ) from None


class CopyFormat:
    """Sends rows with COPY: in binary form as long as all types and values allow, else as text, which the server reads.

    As text, values of other Python types than the column's own are taken too, if the server can read them; what it
    cannot read it refuses, naming row, column and value.
    """

    def __init__(self, columns: Sequence[PostgresColumn], extra: Sequence[str] = ()) -> None:
        """``extra`` are the types of columns that come before those of the records."""
        self._names = [column.name for column in columns]
        self._oids = [column.oid for column in columns]
        self._extra = list(extra)
        types = [*extra, *(column.base_type for column in columns)]
        self._for_text = _converters(types, text_converter)
        self._for_binary = _converters(types, binary_converter)
        self._check = binary_check(types)
        self._is_binary = all(name.removesuffix("[]") in BINARY_TYPES for name in types) and all(self._oids)

    def write(self, connection: psycopg.Connection[Any], target: Any, rows: Sequence[Sequence[Any]]) -> None:
        """Copies rows into a table; ``target`` is its name and columns, as SQL."""
        if self._is_binary:
            try:
                self._check(rows)
                converted = _converted(rows, self._for_binary)
                # within a transaction a COPY that is given up must not take the rest with it
                with connection.transaction() if _in_transaction(connection) else nullcontext():
                    self._copy(connection, target, converted, binary=True)
            except (TypeError, AttributeError, LookupError, ValueError, OverflowError, struct.error) as error:
                # a value that is not of its column's type, found before it was sent
                _log.info("Rows are sent as text from now on: %s", error)
                self._is_binary = False
            except import_psycopg().DataError as error:
                if error.sqlstate is not None:
                    raise
                self._is_binary = False
            else:
                return
        try:
            self._copy(connection, target, _converted(rows, self._for_text), binary=False)
        except (TypeError, ValueError, AttributeError, import_psycopg().ProgrammingError) as error:
            if getattr(error, "sqlstate", None) is None:
                # not the server's: of a value that has no form as text
                self._find_unwritable(rows)
            raise

    def _copy(
        self, connection: psycopg.Connection[Any], target: Any, rows: Sequence[Sequence[Any]], *, binary: bool
    ) -> None:
        from psycopg import sql

        ending = sql.SQL(" (FORMAT binary)") if binary else sql.SQL("")
        with connection.cursor() as cursor:
            if binary:
                for dumper in checked_dumpers():
                    cursor.adapters.register_dumper(*dumper)
            with cursor.copy(sql.SQL("COPY {} FROM STDIN{}").format(target, ending)) as copy:
                if binary:
                    copy.set_types([*self._extra, *self._oids])
                write = copy.write_row
                for row in rows:
                    write(row)

    def _find_unwritable(self, rows: Sequence[Sequence[Any]]) -> None:
        from psycopg.adapt import PyFormat, Transformer

        transformer = Transformer()
        for row in rows:
            record = row[len(self._extra) :]
            for index, (name, value) in enumerate(zip(self._names, record, strict=True), len(self._extra)):
                only = [value if i == index else None for i in range(len(row))]
                try:
                    text = _converted([only], self._for_text)[0][index]
                    if text is not None:
                        transformer.get_dumper(text, PyFormat.TEXT).dump(text)
                except Exception as error:
                    raise RecordSerializationError(
                        f"The {type(value).__name__} {repr(value)[:100]} cannot be written to the column '{name}': "
                        f"{str(error).partition(' using placeholder')[0]}.",
                        record=repr(record)[:200],
                        hint="Map it to a value of the column's type, for instance with set_record_mapper().",
                    ) from error


def _converters(types: Sequence[str], find: Callable[[str], Converter | None]) -> list[tuple[int, Converter]]:
    """The columns that are converted, and how."""
    return [(index, convert) for index, name in enumerate(types) if (convert := find(name)) is not None]


def _converted(rows: Sequence[Sequence[Any]], converters: list[tuple[int, Converter]]) -> Sequence[Sequence[Any]]:
    if not converters:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for index, convert in converters:
            if values[index] is not None:
                values[index] = convert(values[index])
        converted.append(values)
    return converted


def _in_transaction(connection: psycopg.Connection[Any]) -> bool:
    from psycopg.pq import TransactionStatus

    return connection.info.transaction_status is not TransactionStatus.IDLE
