"""Prepares a server for a capture: publication, replication slot, and chunks of the tables. All calls may block.

Nothing is lost between the tables and the log, for this order:

1. The publication exists and has the tables.
2. The slot exists: the log has all changes of transactions that are committed from now on.
3. Every transaction that ran at this time has ended.
4. Only then is the first row read.

Without 3, a transaction could be missing in both: one whose commit is in the log before the slot's beginning but not
yet visible to others (it waits for a standby), or one that wrote to a table before the publication had it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.connectors.postgres.cdc.capture_check import ServerIds, check_tables, present_name, read_server_ids
from firesteel.connectors.postgres.cdc.capture_session import connect_capture
from firesteel.connectors.postgres.cdc.captured_table import CapturedTable, Key, KeyOrder, quote
from firesteel.connectors.postgres.cdc.errors import CaptureSetupError, ReplicationSlotLostError
from firesteel.connectors.postgres.cdc.options import CdcOptions, StartupMode
from firesteel.connectors.postgres.cdc.pgoutput import parse_lsn
from firesteel.connectors.postgres.cdc.table_discovery import discover_tables
from firesteel.connectors.postgres.connection import connect, import_psycopg, translating
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError, translate

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "PreparedCapture",
    "check_capture",
    "cut_into_chunks",
    "drop_slot",
    "look_at_capture",
    "prepare_capture",
]

_log = logging.getLogger(__name__)

MIN_VERSION = 130_000
POLL_INTERVAL_S = 0.05


@dataclass(frozen=True)
class PreparedCapture:
    """What is captured, and from where in the log on."""

    tables: tuple[CapturedTable, ...]
    start_lsn: int
    timestamp_ms: int
    ids: ServerIds | None = None
    """None in checkpoints of earlier versions."""


def prepare_capture(options: CdcOptions) -> PreparedCapture:
    """Checks and creates what the capture needs on the server."""
    with connect_capture(options) as connection:
        _check_server(connection, options)
        tables = discover_tables(connection, options)
        (now_ms,) = _one(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        start_lsn = 0
        if options.reads_log:
            _prepare_publication(connection, options, tables)
            start_lsn = _prepare_slot(connection, options)
        if options.startup.mode is StartupMode.INITIAL:
            _await_running_transactions(connection, options)
        with translating("The tables cannot be looked up", options.connection.describe()):
            ids = read_server_ids(connection, options, tables)
            # since the tables were found, another one may have taken a name
            check_tables(connection, options, tables, ids)
        return PreparedCapture(tables, start_lsn, now_ms, ids)


def check_capture(options: CdcOptions, prepared: PreparedCapture) -> None:
    """Checks that a capture restored from a checkpoint still finds its slot, and the tables as they were."""
    with connect_capture(options) as connection:
        if options.reads_log:
            with translating("The replication slot cannot be looked up", options.connection.describe()):
                found = _find_slot(connection, options)
            if found is None:
                raise ReplicationSlotLostError(
                    f"The replication slot '{options.slot_name}' at {options.connection.describe()} no longer exists, "
                    "and the changes since the checkpoint are lost.",
                    server=options.connection.describe(),
                    hint="Start the job without the checkpoint: it reads the tables again.",
                )
            _check_not_lost(found, options)
        with translating("The tables cannot be looked up", options.connection.describe()):
            check_tables(connection, options, prepared.tables, prepared.ids)


def look_at_capture(options: CdcOptions, prepared: PreparedCapture) -> ServerIds | None:
    """Checks the tables of a capture that is under way, and returns the ids as they are now.

    That the server cannot be reached is for the readers to find: then there is None.
    """
    try:
        with connect_capture(options, "check") as connection:
            with translating("The tables cannot be looked up", options.connection.describe()):
                return check_tables(connection, options, prepared.tables, prepared.ids)
    except PostgresConnectionError as error:
        _log.info("The captured tables could not be looked up: %s", error)
        return None


def drop_slot(options: CdcOptions, *, publication: bool) -> None:
    """Drops the slot, and the publication if asked for; neither needs to exist. A reader may just have gone."""
    server, psycopg = options.connection.describe(), import_psycopg()
    deadline = time.monotonic() + options.connection.connect_timeout_s
    with connect(options.connection) as connection:
        with translating(f"The replication slot '{options.slot_name}' cannot be dropped", server):
            while _find_slot(connection, options) is not None:
                try:
                    connection.execute("SELECT pg_drop_replication_slot(%s)", [options.slot_name])
                except psycopg.errors.ObjectInUse:
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(POLL_INTERVAL_S)
        if publication:
            with translating(f"The publication '{options.publication_name}' cannot be dropped", server):
                connection.execute(f"DROP PUBLICATION IF EXISTS {quote(options.publication_name)}", [])


def cut_into_chunks(options: CdcOptions, table: CapturedTable, parallelism: int) -> list[tuple[Key | None, Key | None]]:
    """Ranges of keys of about ``split_size`` rows that together are all keys there can be.

    Without an index for the order, each chunk is read by going through the whole table: then there are no more of them
    than readers.
    """
    server = options.connection.describe()
    with connect_capture(options, "chunks") as connection:
        with translating(f"Table {table.table_id} cannot be cut into chunks", server, table=table.table_id):
            size = options.split_size
            source = table.sql_name(*present_name(connection, table))
            if not table.uses_index:
                (rows,) = _one(connection, f"SELECT count(*) FROM {source}")  # noqa: S608
                size = max(size, -(-rows // parallelism))
            # one column of the key in the given order after the other; only those, so that the index alone will do
            keys = [
                f"{quote(column.name)}{'::text' if column.order == KeyOrder.AS_TEXT else ''} AS key_{index}"
                for index, column in enumerate(table.key)
            ]
            found = connection.execute(
                f"SELECT {', '.join(f'key_{index}' for index in range(len(keys)))} FROM (SELECT {', '.join(keys)}, "  # noqa: S608
                f"row_number() OVER (ORDER BY {table.key_expressions}) AS chunk_row FROM {source}) AS numbered "
                f"WHERE chunk_row %% %s = 0 ORDER BY chunk_row",
                [size],
            ).fetchall()
    bounds: list[Key | None] = [None, *(tuple(row) for row in found), None]
    return list(pairwise(bounds))


def _check_server(connection: psycopg.Connection[Any], options: CdcOptions) -> None:
    server = options.connection.describe()
    if connection.info.server_version < MIN_VERSION:
        raise CaptureSetupError(
            f"PostgreSQL at {server} is of version {connection.info.server_version // 10000}.",
            server=server,
            hint="Change data capture needs version 13 or later.",
        )
    with translating("The settings of the server cannot be read", server):
        standby, wal_level = _one(connection, "SELECT pg_is_in_recovery(), current_setting('wal_level')")
    if standby:
        raise CaptureSetupError(
            f"PostgreSQL at {server} is a standby.", server=server, hint="Connect to the primary server."
        )
    if options.reads_log and wal_level != "logical":
        raise CaptureSetupError(
            f"PostgreSQL at {server} has wal_level '{wal_level}': its log is not fit for logical replication.",
            server=server,
            hint="ALTER SYSTEM SET wal_level = 'logical', and restart the server.",
        )


# -- the publication ------------------------------------------------------------------------------------


def _prepare_publication(
    connection: psycopg.Connection[Any], options: CdcOptions, tables: tuple[CapturedTable, ...]
) -> None:
    server, name = options.connection.describe(), options.publication_name
    with translating(f"The publication '{name}' cannot be looked up", server):
        found = connection.execute(
            "SELECT pubinsert AND pubupdate AND pubdelete, pubviaroot FROM pg_publication WHERE pubname = %s", [name]
        ).fetchone()
        published = {
            f"{row[0]}.{row[1]}"
            for row in connection.execute(
                "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [name]
            )
        }
    if found is None:
        _create_publication(connection, options, tables)
        return
    missing = [table for table in tables if table.table_id not in published]
    if missing and options.publication_autocreate_mode == "filtered":
        listed = ", ".join(_published_name(table) for table in missing)
        _alter(connection, options, f"ALTER PUBLICATION {quote(name)} ADD TABLE {listed}")
    elif missing:
        listed = ", ".join(_published_name(table).replace("%%", "%") for table in missing)
        raise CaptureSetupError(
            f"The publication '{name}' at {server} lacks {', '.join(table.table_id for table in missing)}.",
            server=server,
            table=missing[0].table_id,
            hint=f"ALTER PUBLICATION {name} ADD TABLE {listed}",
        )
    if not found[0]:
        raise CaptureSetupError(
            f"The publication '{name}' at {server} does not publish all of insert, update and delete.",
            server=server,
            hint=f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')",
        )
    if not found[1] and any(table.is_partitioned for table in tables):
        raise CaptureSetupError(
            f"The publication '{name}' at {server} publishes partitions instead of partitioned tables.",
            server=server,
            hint=f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true)",
        )
    _check_whole_tables(connection, options, tables)


def _check_whole_tables(
    connection: psycopg.Connection[Any], options: CdcOptions, tables: tuple[CapturedTable, ...]
) -> None:
    """Rows and columns that the publication leaves out would be in what is read from the table, but not in the log."""
    if connection.info.server_version < 150_000:
        return
    server, name = options.connection.describe(), options.publication_name
    with translating(f"The publication '{name}' cannot be looked up", server):
        rows = connection.execute(
            "SELECT schemaname, tablename, attnames, rowfilter FROM pg_publication_tables WHERE pubname = %s", [name]
        ).fetchall()
    columns = {table.table_id: set(table.column_names) for table in tables}
    for schema, table, names, row_filter in rows:
        wanted = columns.get(f"{schema}.{table}")
        if wanted is not None and (row_filter is not None or not wanted <= set(names)):
            raise CaptureSetupError(
                f"The publication '{name}' at {server} has only some rows or columns of {schema}.{table}.",
                server=server,
                table=f"{schema}.{table}",
                hint="Remove the row filter and the column list, or use a separate publication for the source.",
            )


def _create_publication(
    connection: psycopg.Connection[Any], options: CdcOptions, tables: tuple[CapturedTable, ...]
) -> None:
    server, name = options.connection.describe(), options.publication_name
    listed = ", ".join(_published_name(table) for table in tables)
    if options.publication_autocreate_mode == "disabled":
        raise CaptureSetupError(
            f"There is no publication '{name}' at {server}.",
            server=server,
            hint=f"CREATE PUBLICATION {name} FOR TABLE {listed.replace('%%', '%')}",
        )
    what = "ALL TABLES" if options.publication_autocreate_mode == "all_tables" else f"TABLE {listed}"
    _alter(connection, options, f"CREATE PUBLICATION {quote(name)} FOR {what} WITH (publish_via_partition_root = true)")


def _alter(connection: psycopg.Connection[Any], options: CdcOptions, statement: str) -> None:
    server, name = options.connection.describe(), options.publication_name
    psycopg = import_psycopg()
    try:
        connection.execute(statement, [])
    except psycopg.Error as error:
        raise CaptureSetupError(
            f"The publication '{name}' at {server} cannot be set up: {error.diag.message_primary or error}",
            server=server,
            sqlstate=error.sqlstate,
            hint=f"Have an owner of the tables do it: {statement.replace('%%', '%')}",
        ) from error


def _published_name(table: CapturedTable) -> str:
    return f"{quote(table.schema)}.{quote(table.name)}"


# -- the slot -------------------------------------------------------------------------------------------


def _prepare_slot(connection: psycopg.Connection[Any], options: CdcOptions) -> int:
    """Where in the log to begin. An existing slot is taken as it is: what the tables show already is left out later."""
    server, mode = options.connection.describe(), options.startup.mode
    with translating(f"The replication slot '{options.slot_name}' cannot be looked up", server):
        found = _find_slot(connection, options)
        if found is not None:
            _check_fit(found, options)
            _check_not_lost(found, options)
            if mode is StartupMode.LATEST_OFFSET:
                (lsn,) = _one(connection, "SELECT pg_current_wal_insert_lsn()::text")
                return parse_lsn(lsn)
            return parse_lsn(found["confirmed_flush_lsn"])
    if mode is StartupMode.COMMITTED_OFFSETS:
        raise CaptureSetupError(
            f"There is no replication slot '{options.slot_name}' at {server} to resume from.",
            server=server,
            hint="Correct slot_name, or begin with StartupOptions.initial().",
        )
    return _create_slot(connection, options)


def _create_slot(connection: psycopg.Connection[Any], options: CdcOptions) -> int:
    psycopg = import_psycopg()
    server, name = options.connection.describe(), options.slot_name
    timeout_ms = int(options.slot_creation_timeout_s * 1000)
    try:
        connection.execute(f"SET statement_timeout = {timeout_ms}")
        connection.execute(f"SET lock_timeout = {timeout_ms}")
        (lsn,) = _one(connection, "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
        connection.execute("SET statement_timeout = DEFAULT")
    except psycopg.errors.InsufficientPrivilege as error:
        raise CaptureSetupError(
            f"The user may not create a replication slot at {server}: {error.diag.message_primary}",
            server=server,
            sqlstate=error.sqlstate,
            hint="ALTER ROLE … REPLICATION (on managed servers: grant the provider's replication role).",
        ) from error
    except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
        raise _waited_in_vain(options, error.sqlstate) from error
    except psycopg.Error as error:
        hint = "Drop unused slots, or increase max_replication_slots." if error.sqlstate == "53400" else None
        raise translate(error, f"The replication slot '{name}' cannot be created", server=server, hint=hint) from error
    return parse_lsn(lsn)


def _find_slot(connection: psycopg.Connection[Any], options: CdcOptions) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT slot_type, plugin, database = current_database(), wal_status, confirmed_flush_lsn::text "
        "FROM pg_replication_slots WHERE slot_name = %s",
        [options.slot_name],
    ).fetchone()
    names = ("slot_type", "plugin", "is_here", "wal_status", "confirmed_flush_lsn")
    return None if row is None else dict(zip(names, row, strict=True))


def _check_fit(slot: dict[str, Any], options: CdcOptions) -> None:
    if slot["slot_type"] != "logical" or slot["plugin"] != "pgoutput" or not slot["is_here"]:
        raise CaptureSetupError(
            f"The replication slot '{options.slot_name}' at {options.connection.describe()} is for something else: "
            f"{slot['slot_type']}, plugin {slot['plugin']}{'' if slot['is_here'] else ', of another database'}.",
            server=options.connection.describe(),
            hint="Choose another slot_name.",
        )


def _check_not_lost(slot: dict[str, Any], options: CdcOptions) -> None:
    if slot["wal_status"] == "lost" or slot["confirmed_flush_lsn"] is None:
        raise ReplicationSlotLostError(
            f"The replication slot '{options.slot_name}' at {options.connection.describe()} fell so far behind that "
            "the server has removed the log it needs.",
            server=options.connection.describe(),
            hint=f"Drop it with SELECT pg_drop_replication_slot('{options.slot_name}') and start the job without a "
            "checkpoint: it reads the tables again. Raise max_slot_wal_keep_size so that this does not come again.",
        )


def _await_running_transactions(connection: psycopg.Connection[Any], options: CdcOptions) -> None:
    """Returns when every transaction that runs now has ended."""
    deadline = time.monotonic() + options.slot_creation_timeout_s
    with translating("Running transactions cannot be waited for", options.connection.describe()):
        # the number of a transaction of our own: all that run now have lower ones
        (own,) = _one(connection, "SELECT pg_current_xact_id()::text::bigint")
        while True:
            (oldest,) = _one(connection, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
            if oldest > own:
                return
            if time.monotonic() >= deadline:
                raise _waited_in_vain(options, None)
            time.sleep(POLL_INTERVAL_S)


def _waited_in_vain(options: CdcOptions, sqlstate: str | None) -> PostgresError:
    server = options.connection.describe()
    pids = "?"
    try:
        with connect(options.connection) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start LIMIT 5"
            ).fetchall()
            pids = ", ".join(str(row[0]) for row in rows) or "a prepared transaction"
    except FiresteelError:
        pass  # the message has to do without
    return CaptureSetupError(
        f"The capture at {server} could not begin within {options.slot_creation_timeout_s:g} s: a transaction has been "
        f"running all the time (server process {pids}).",
        server=server,
        sqlstate=sqlstate,
        hint="End the transaction (pg_stat_activity, pg_prepared_xacts), or raise slot_creation_timeout.",
    )


def _one(connection: psycopg.Connection[Any], statement: str, parameters: list[Any] | None = None) -> Any:
    row = connection.execute(statement, [] if parameters is None else parameters).fetchone()
    assert row is not None
    return row
