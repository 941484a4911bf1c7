"""Compares the state of a capture with the server: encoding, tables and publication.

A publication has tables by their ids. A table that takes the name of a captured one is not in it, so its changes are
never in the log; nor are those of a table that was taken out of it for a while. The loss would be silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.cdc.captured_table import CapturedTable
from firesteel.connectors.postgres.cdc.errors import CaptureSetupError, SchemaChangedError
from firesteel.connectors.postgres.cdc.options import CdcOptions

if TYPE_CHECKING:
    import psycopg

__all__ = ["ServerIds", "check_tables", "present_name", "read_server_ids", "table_renamed", "table_replaced"]

_READ_AGAIN = "Start the job without a checkpoint: it reads the tables again."

_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relpersistence, c.relispartition FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s::oid[]) OR (c.relkind IN ('r', 'p') AND (n.nspname || '.' || c.relname) = ANY(%s))
"""

_PUBLICATION = """
SELECT p.oid, p.pubinsert AND p.pubupdate AND p.pubdelete, p.puballtables FROM pg_publication p WHERE p.pubname = %s
"""


@dataclass(frozen=True)
class ServerIds:
    """Distinguishes a database and a publication from later ones with the same names."""

    encoding: str
    system: str = ""
    """The cluster's identifier, "" if the user may not see it: after an upgrade publications have other ids."""
    publication: int = 0
    memberships: dict[int, frozenset[str]] = field(default_factory=dict)
    """By a table's id, by what it is in the publication."""


def read_server_ids(
    connection: psycopg.Connection[Any], options: CdcOptions, tables: Sequence[CapturedTable]
) -> ServerIds:
    """The ids as they are now; those of the publication if the log is read."""
    (encoding,) = _one(connection, "SELECT getdatabaseencoding()")
    (may_see,) = _one(connection, "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')")
    system = _one(connection, "SELECT system_identifier::text FROM pg_control_system()")[0] if may_see else ""
    if not options.reads_log:
        return ServerIds(encoding, system)
    found = connection.execute(_PUBLICATION, [options.publication_name]).fetchone()
    if found is None:
        return ServerIds(encoding, system)
    publication, _, has_all = found
    by: dict[int, set[str]] = {table.oid: {"all"} if has_all else set() for table in tables}
    ids = list(by)
    for table, membership in connection.execute(
        "SELECT prrelid, oid FROM pg_publication_rel WHERE prpubid = %s AND prrelid = ANY(%s::oid[])",
        [publication, ids],
    ):
        by[table].add(f"table {membership}")
    if connection.info.server_version >= 150_000:
        for table, membership in connection.execute(
            "SELECT c.oid, s.oid FROM pg_publication_namespace s JOIN pg_class c ON c.relnamespace = s.pnnspid "
            "WHERE s.pnpubid = %s AND c.oid = ANY(%s::oid[])",
            [publication, ids],
        ):
            by[table].add(f"schema {membership}")
    return ServerIds(encoding, system, publication, {table: frozenset(names) for table, names in by.items()})


def check_tables(
    connection: psycopg.Connection[Any],
    options: CdcOptions,
    tables: Sequence[CapturedTable],
    before: ServerIds | None,
) -> ServerIds:
    """Raises if changes of the tables could be missing from now on, or have been since ``before``; the ids as of now.

    Tables and ids of checkpoints of earlier versions, which do not have them, are not compared.
    """
    server = options.connection.describe()
    known = [table for table in tables if table.oid]
    with connection.transaction():
        # the catalog at one moment
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        now = read_server_ids(connection, options, known)
        rows = connection.execute(_TABLES, [[table.oid for table in known], [table.table_id for table in known]])
        by_id = {row[0]: row[1:] for row in rows.fetchall()}
        found = connection.execute(_PUBLICATION, [options.publication_name]).fetchone() if options.reads_log else None
    if before is not None and before.encoding != now.encoding:
        raise CaptureSetupError(
            f"The database at {server} is in the encoding {now.encoding}, but was in {before.encoding} when the "
            "capture began: it is another one.",
            server=server,
            hint=_READ_AGAIN,
        )
    by_name = {f"{schema}.{name}": oid for oid, (schema, name, *_) in by_id.items()}
    for table in known:
        _check_table(table, by_id.get(table.oid), by_name.get(table.table_id), options)
    if options.reads_log and known:
        there = [table for table in known if table.oid in by_id]
        _check_publication(options, there, before, now, found)
    return now


def present_name(connection: psycopg.Connection[Any], table: CapturedTable) -> tuple[str, str]:
    """The schema and the name that a captured table has now; those it was captured with if it is gone."""
    row = connection.execute(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s",
        [table.oid],
    ).fetchone()
    return (table.schema, table.name) if row is None else (row[0], row[1])


def table_replaced(table: CapturedTable, server: str | None = None) -> SchemaChangedError:
    """The error for a table whose name another one has."""
    return SchemaChangedError(
        f"Table {table.table_id} has been replaced: another table has its name now{f' ({server})' if server else ''}. "
        "Changes of the new table are not captured.",
        server=server,
        table=table.table_id,
        hint=f"{_READ_AGAIN} The publication is to have the new table: with publication_autocreate_mode 'filtered' the "
        "source adds it.",
    )


def table_renamed(table: CapturedTable, name: str, server: str | None = None) -> SchemaChangedError:
    """The error for a table that has another name than when the capture began."""
    return SchemaChangedError(
        f"Table {table.table_id} has been renamed to {name}{f' ({server})' if server else ''}.",
        server=server,
        table=table.table_id,
        hint="Rename it back, or set schema_change_behavior('ignore') or 'evolve' to continue under the captured "
        "name, and restart from the last checkpoint.",
    )


def _check_table(table: CapturedTable, now: Any, has_name: int | None, options: CdcOptions) -> None:
    server = options.connection.describe()
    if has_name is not None and has_name != table.oid:
        raise table_replaced(table, server)
    is_strict = options.schema_change_behavior == "exception"
    if now is None:
        if is_strict:
            raise SchemaChangedError(
                f"Table {table.table_id} has been dropped ({server}): the deletion of its rows is not in the log.",
                server=server,
                table=table.table_id,
                hint="Start the job without a checkpoint and without this table, or set "
                "schema_change_behavior('ignore') to continue with the others.",
            )
        return
    schema, name, persistence, is_partition = now
    if is_strict and (schema, name) != (table.schema, table.name):
        raise table_renamed(table, f"{schema}.{name}", server)
    if is_partition or (options.reads_log and persistence != "p"):
        what = "has become a partition of another table" if is_partition else "has become unlogged"
        raise SchemaChangedError(
            f"Table {table.table_id} {what} ({server}): its changes are not in the log, or not as its own.",
            server=server,
            table=table.table_id,
            hint=_READ_AGAIN,
        )


def _check_publication(
    options: CdcOptions, tables: Sequence[CapturedTable], before: ServerIds | None, now: ServerIds, found: Any
) -> None:
    server, name = options.connection.describe(), options.publication_name

    def refuse(what: str, table: CapturedTable | None = None) -> CaptureSetupError:
        return CaptureSetupError(
            f"The publication '{name}' at {server} {what}: changes are missing in the log.",
            server=server,
            table=None if table is None else table.table_id,
            hint=f"Leave the publication alone while a job uses it. {_READ_AGAIN}",
        )

    if found is None:
        raise refuse("has been dropped")
    if not found[1]:
        raise refuse("no longer publishes all of insert, update and delete")
    if before is not None and before.system != now.system:
        before = None  # ids of another cluster are not comparable: an upgrade keeps those of tables only
    if before is not None and before.publication not in (0, now.publication):
        raise refuse("has been dropped and created again")
    for table in tables:
        memberships = now.memberships.get(table.oid, frozenset())
        # by one and the same of them it must have been there all the time
        kept = memberships if before is None else memberships & before.memberships.get(table.oid, memberships)
        if not kept:
            raise refuse(f"does not have {table.table_id} any more, or has not had it for a while", table)


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row
