"""Rows of a table of PostgreSQL by keys, with a cache."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, split_name, translating
from firesteel.table.connector.source import LookupFunction
from firesteel.table.connectors.postgres.rows import RowColumns
from firesteel.types.internal import from_column
from firesteel.types.logical import RowType

__all__ = ["Cache", "PostgresLookup"]

Keys = tuple[Any, ...]


@dataclass(frozen=True)
class Cache:
    """How many keys are kept, and for how long after they were read or used; None for no limit."""

    max_rows: int | None = None
    expire_after_write_ms: int | None = None
    expire_after_access_ms: int | None = None
    keeps_missing: bool = True


class PostgresLookup(LookupFunction):
    """Asks for the rows of all keys of a batch in one statement."""

    def __init__(
        self,
        connection: PostgresConnectionOptions,
        table: str,
        row_type: RowType,
        key_columns: Sequence[int],
        cache: Cache | None,
    ) -> None:
        self._options = connection
        self._table = table
        self._row_type = row_type
        self._keys = tuple(key_columns)
        self._cache = cache
        self._connection: Any = None
        self._kept: OrderedDict[Keys, tuple[float, float, Sequence[Keys]]] = OrderedDict()

    def open(self) -> None:
        self._connection = connect(self._options, name="firesteel lookup")
        self._columns = RowColumns(self._row_type)
        self._columns.open()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def lookup_many(self, keys: Sequence[Keys]) -> Sequence[Sequence[Keys]]:
        now = time.monotonic() * 1000
        found: dict[Keys, Sequence[Keys]] = {}
        for key in keys:
            kept = self._from_cache(key, now)
            if kept is not None:
                found[key] = kept
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            for key, rows in self._read(missing).items():
                found[key] = rows
                self._keep(key, rows, now)
        return [found[key] for key in keys]

    def _from_cache(self, key: Keys, now: float) -> Sequence[Keys] | None:
        cache, entry = self._cache, self._kept.get(key)
        if cache is None or entry is None:
            return None
        written, used, rows = entry
        for limit, since in ((cache.expire_after_write_ms, written), (cache.expire_after_access_ms, used)):
            if limit is not None and now - since >= limit:
                del self._kept[key]
                return None
        self._kept[key] = written, now, rows
        self._kept.move_to_end(key)
        return rows

    def _keep(self, key: Keys, rows: Sequence[Keys], now: float) -> None:
        cache = self._cache
        if cache is None or not (rows or cache.keeps_missing):
            return
        self._kept[key] = now, now, rows
        while cache.max_rows is not None and len(self._kept) > cache.max_rows:
            self._kept.popitem(last=False)

    def _read(self, keys: Sequence[Keys]) -> dict[Keys, list[Keys]]:
        from psycopg import sql

        names = self._row_type.field_names
        found: dict[Keys, list[Keys]] = {key: [] for key in keys}
        # null equals nothing
        wanted = [key for key in keys if None not in key]
        if not wanted:
            return found
        columns = sql.SQL(", ").join(sql.Identifier(name) for name in names)
        key_columns = sql.SQL(", ").join(sql.Identifier(names[index]) for index in self._keys)
        holders = sql.SQL("({})").format(sql.SQL(", ").join([sql.Placeholder()] * len(self._keys)))
        statement = sql.SQL("SELECT {} FROM {} WHERE ({}) IN ({})").format(
            columns, sql.Identifier(*split_name(self._table)), key_columns, sql.SQL(", ").join([holders] * len(wanted))
        )
        values = [value for key in self._external(wanted) for value in key]
        with translating(f"Rows of {self._table} cannot be looked up", self._options.describe()):
            rows = self._connection.execute(statement, values).fetchall()
            self._connection.rollback()
        for row in self._decoded(rows):
            found.setdefault(tuple(row[index] for index in self._keys), []).append(row)
        return found

    def read_all(self) -> Iterator[Keys]:
        from psycopg import sql

        columns = sql.SQL(", ").join(sql.Identifier(name) for name in self._row_type.field_names)
        statement = sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(*split_name(self._table)))
        with translating(f"Rows of {self._table} cannot be read", self._options.describe()):
            rows = self._connection.execute(statement).fetchall()
            self._connection.rollback()
        yield from self._decoded(rows)

    def _decoded(self, rows: Sequence[Keys]) -> Iterator[Keys]:
        if not rows:
            return
        data = self._columns.batch(rows)
        parts = [from_column(data.column(place), part.type) for place, part in enumerate(self._row_type.fields)]
        yield from zip(*parts, strict=True)

    def _external(self, keys: Sequence[Keys]) -> list[Keys]:
        """Keys as the server takes them: dates and times are no numbers there."""
        from firesteel.types.internal import to_column

        fields = [self._row_type.fields[index] for index in self._keys]
        columns = zip(*keys, strict=True)
        made = [to_column(column, part.type).to_pylist() for column, part in zip(columns, fields, strict=True)]
        return list(zip(*made, strict=True))
