"""Table discovery: finds the tables to capture in the server's catalog, and checks that they can be captured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.cdc.captured_table import CapturedColumn, CapturedTable, KeyColumn, KeyOrder
from firesteel.connectors.postgres.cdc.change_record import ChangelogMode
from firesteel.connectors.postgres.cdc.errors import CaptureSetupError
from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.connection import translating

if TYPE_CHECKING:
    import psycopg

__all__ = ["discover_tables"]

_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident, c.relpersistence, i.indkey::int2[],
       r.indexrelid = i.indexrelid
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
LEFT JOIN pg_index r ON r.indrelid = c.oid AND r.indisreplident
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
ORDER BY 2, 3
"""

# a generated column is not in the log
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname, t.oid AS declared, t.oid, t.typbasetype, t.typtype, a.attcollation
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION ALL
    SELECT base.attnum, base.attname, base.declared, t.oid, t.typbasetype, t.typtype, base.attcollation
    FROM base JOIN pg_type t ON t.oid = base.typbasetype WHERE base.typtype = 'd'
)
SELECT base.attnum, base.attname, base.declared, base.oid, format_type(base.oid, NULL),
       CASE WHEN c.collname = 'default' THEN d.datcollate IN ('C', 'POSIX') ELSE c.collname IN ('C', 'POSIX') END
FROM base
LEFT JOIN pg_collation c ON c.oid = base.attcollation
JOIN pg_database d ON d.datname = current_database()
WHERE base.typtype <> 'd'
ORDER BY base.attnum
"""

_NATIVE = frozenset({16, 17, 20, 21, 23, 26, 1082, 1114, 1184, 2950})
"""bool, bytea, int8, int2, int4, oid, date, timestamp, timestamptz, uuid"""
_NUMERIC_OID = 1700
_TEXT = frozenset({25, 1043})
_PADDED_TEXT = 1042


def discover_tables(connection: psycopg.Connection[Any], options: CdcOptions) -> tuple[CapturedTable, ...]:
    """The tables that the options name, in order of their names."""
    server = options.connection.describe()
    with translating("The catalog cannot be read", server):
        found = connection.execute(_TABLES, []).fetchall()
        chosen = _choose(found, options, server)
        row = connection.execute("SELECT getdatabaseencoding()").fetchone()
        is_utf8 = row is not None and row[0] == "UTF8"
        tables = []
        for row in chosen:
            _check(row, options, server)
            tables.append(_describe(connection, row, is_utf8))
    return tuple(tables)


def _choose(found: list[Any], options: CdcOptions, server: str) -> list[Any]:
    names = {f"{row[1]}.{row[2]}": row for row in found}
    chosen: dict[str, Any] = {}
    for pattern in options.table_list or (r".*\..*",):
        matching = {
            name: row
            for name, row in names.items()
            if re.fullmatch(pattern, name)
            and (not options.schema_list or any(re.fullmatch(schema, row[1]) for schema in options.schema_list))
        }
        if not matching:
            known = ", ".join(list(names)[:10]) or "none"
            raise CaptureSetupError(
                f"No table at {server} matches {pattern!r}"
                + (f" in the schemas {', '.join(options.schema_list)}" if options.schema_list else "")
                + f". There are: {known}{', …' if len(names) > 10 else ''}.",
                server=server,
                hint="Names are schema.table, as regular expressions. Partitions are read through their root.",
            )
        chosen.update(matching)
    return [chosen[name] for name in sorted(chosen)]


def _check(row: Any, options: CdcOptions, server: str) -> None:
    _oid, schema, name, _kind, identity, persistence, key, identity_is_key = row
    table = f"{schema}.{name}"

    def refuse(what: str, hint: str) -> CaptureSetupError:
        return CaptureSetupError(f"Table {table} at {server} {what}", server=server, table=table, hint=hint)

    quoted = f'"{schema}"."{name}"'
    if options.reads_log and persistence != "p":
        raise refuse("is unlogged or temporary: its changes are not in the log.", f"ALTER TABLE {quoted} SET LOGGED")
    if options.reads_tables and not key:
        raise refuse(
            "has no primary key, by which its rows are read.",
            f"ALTER TABLE {quoted} ADD PRIMARY KEY (…), or begin with StartupOptions.latest().",
        )
    if not options.reads_log or identity == "f":
        return
    if options.changelog_mode == ChangelogMode.ALL:
        raise refuse(
            "does not have REPLICA IDENTITY FULL: the log does not contain the row before an update.",
            f"ALTER TABLE {quoted} REPLICA IDENTITY FULL, or use changelog_mode('upsert').",
        )
    if identity == "n" or not key or (identity == "i" and not identity_is_key):
        raise refuse(
            "has a replica identity without its primary key: the log does not identify deleted rows.",
            f"ALTER TABLE {quoted} REPLICA IDENTITY DEFAULT (it needs a primary key), or FULL.",
        )


def _describe(connection: psycopg.Connection[Any], row: Any, is_utf8: bool) -> CapturedTable:
    oid, schema, name, kind, _identity, _persistence, key, _identity_is_key = row
    columns = connection.execute(_COLUMNS, [oid]).fetchall()
    numbers = [column[0] for column in columns]
    key_columns = []
    for number in key or ():
        if number not in numbers:
            raise CaptureSetupError(
                f"Table {schema}.{name} has a generated column in its primary key, which is not in the log.",
                table=f"{schema}.{name}",
                hint="Capture tables whose primary key is of ordinary columns.",
            )
        index = numbers.index(number)
        _number, column, _declared, type_oid, type_name, by_code_point = columns[index]
        order = _order_of(type_oid, by_code_point and is_utf8)
        key_columns.append(KeyColumn(column, index, type_name, order, is_utf8))
    return CapturedTable(
        connection.info.dbname,
        schema,
        name,
        tuple(CapturedColumn(*column[1:5]) for column in columns),
        tuple(key_columns),
        is_partitioned=kind == "p",
        oid=oid,
    )


def _order_of(type_oid: int, by_code_point: bool | None) -> str:
    if type_oid in _NATIVE or (type_oid in _TEXT and by_code_point):
        return KeyOrder.NATIVE
    if type_oid == _NUMERIC_OID:
        return KeyOrder.NUMERIC
    if type_oid in _TEXT:
        return KeyOrder.TEXT
    return KeyOrder.PADDED if type_oid == _PADDED_TEXT else KeyOrder.AS_TEXT
