"""PostgreSQL errors, with their remedy."""

from __future__ import annotations

from typing import Any

from firesteel.common.errors import FiresteelError

__all__ = ["PostgresConnectionError", "PostgresError", "hint_for", "is_connection_lost", "translate"]


class PostgresError(FiresteelError):
    """An error of a PostgreSQL server; ``sqlstate`` is its code, ``server`` its address, without password."""

    def __init__(
        self,
        message: str,
        *,
        server: str | None = None,
        table: str | None = None,
        sqlstate: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.server = server
        self.table = table
        self.sqlstate = sqlstate


class PostgresConnectionError(PostgresError):
    """A server that cannot be reached, does not let us in, or has dropped the connection."""


# of a server that stops or starts, or has ended the session
_LOST = frozenset({"57P01", "57P02", "57P03", "57P05"})

_HINTS = {
    "28000": "Check user and pg_hba.conf of the server.",
    "28P01": "Check user and password.",
    "3D000": "Create the database, or correct its name in the URL.",
    "3F000": "Create the schema, or correct its name.",
    "42P01": "Create the table first, or correct its name; a name without schema is looked for in the search path.",
    "42703": "Correct the column's name; names in capitals are case-sensitive.",
    "42501": "Grant the user the required privileges: INSERT, UPDATE, DELETE, SELECT on the table; CREATE on the "
    "schema for the staging table of an exactly-once append, or create that table beforehand.",
    "42601": "Correct the SQL statement.",
    "42804": "Give the column values of its type, or change the type of the column.",
    "42P10": "An upsert needs a primary key or a unique index (not a partial one) of exactly the key columns.",
    "23505": "An append inserts every record: use upsert mode if records of a key replace each other.",
    "23502": "Give the column a value in every record, or a default in the table and leave it out of the columns.",
    "23503": "The row that the record refers to must be there first.",
    "23514": "The record does not satisfy a check of the table.",
    "22P02": "Give the column values of its type, or change the type of the column.",
    "22P03": "Give the column values of its type, or change the type of the column.",
    "22003": "The value does not fit into the column's type: take a wider one.",
    "22001": "The text is longer than the column allows.",
    "53300": "The server has no connection left: raise max_connections, or use fewer subtasks.",
    "55P03": "Another session holds a lock on the table: see pg_locks and pg_stat_activity.",
}


def hint_for(sqlstate: str | None) -> str | None:
    """What to do about an error of this code; None if that is not known."""
    return _HINTS.get(sqlstate or "")


def is_connection_lost(error: Any) -> bool:
    """Whether a psycopg error means that the connection is gone, so that a new one may do."""
    sqlstate = getattr(error, "sqlstate", None)
    if sqlstate is not None:
        return sqlstate in _LOST or sqlstate.startswith("08")
    # libpq has no code for what it finds out by itself: the connection is gone, or never was there
    return type(error).__name__ in ("OperationalError", "ConnectionTimeout")


def translate(
    error: Any, doing: str, *, server: str, table: str | None = None, hint: str | None = None
) -> PostgresError:
    """The PostgresError for a psycopg error; ``doing`` is what failed, as the beginning of a sentence.

    The server's own words are kept: they name the table, column, constraint or value.
    """
    sqlstate = getattr(error, "sqlstate", None)
    said = _first_lines(error)
    hint = hint or hint_for(sqlstate)
    if is_connection_lost(error):
        return PostgresConnectionError(
            f"{doing}: the connection to {server} is lost: {said}",
            server=server,
            table=table,
            sqlstate=sqlstate,
            hint=hint or "Check that the server is running; the job restarts by its restart strategy.",
        )
    return PostgresError(f"{doing} ({server}): {said}", server=server, table=table, sqlstate=sqlstate, hint=hint)


def _first_lines(error: Any) -> str:
    diagnostics = getattr(error, "diag", None)
    primary = getattr(diagnostics, "message_primary", None)
    if primary is None:
        return " ".join(str(error).split()) or type(error).__name__
    parts = [primary, getattr(diagnostics, "message_detail", None), getattr(diagnostics, "context", None)]
    return ". ".join(" ".join(part.split()).rstrip(".") for part in parts if part)
